// Operations of the multiply-add units for an element, so that their peak is a limit for work that is no product.
//
// Counted in the kernels for instruction sets with scalef: a multiply-add, an addition, a comparison, a minimum or a
// rounding is one, a division or root too, though they take longer; loads, stores and integer work are none. A
// polynomial of degree N takes N.
#pragma once

namespace headlight::bench {

// lib/simd/math-inl.h
inline constexpr int kExp2NonpositiveOperations = 9;
inline constexpr int kExp2Operations = 10;
inline constexpr int kExpOperations = 13;
inline constexpr int kLogOperations = 21;
inline constexpr int kExp2NormalOperations = 8;
inline constexpr int kGeluOperations = 14 + kExp2NormalOperations;
inline constexpr int kGeluTanhOperations = 10 + kExp2NormalOperations;
inline constexpr int kSiluOperations = 7 + kExp2NormalOperations;
inline constexpr int kReluOperations = 1;
// lib/kernels/rows/softmax-inl.h: the maximum; difference, product with log₂ e, exponential, sum; product with 1 / sum.
inline constexpr int kSoftmaxOperations = 1 + (3 + kExp2NonpositiveOperations) + 1;
// lib/kernels/rows/layer_norm-inl.h: sum; distance, its sum and sum of squares; two differences, product, weight and
// bias. A residual is one more.
inline constexpr int kLayerNormOperations = 1 + 3 + 4;
// lib/kernels/rows/rms_norm-inl.h: sum of squares; product and weight.
inline constexpr int kRmsNormOperations = 1 + 2;
// lib/kernels/rows/head_rows-inl.h: two products of each number, a sum.
inline constexpr int kRotationOperations = 2;
// lib/kernels/rows/optimizer_kernels.cc
inline constexpr int kAdamWOperations = 12;

}  // namespace headlight::bench
