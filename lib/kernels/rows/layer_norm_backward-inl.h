// The gradient of layer normalisation along a row: mean and variance as forward found them, the two means of the
// gradient, then the result. The gradients of weight and bias grow along the way. Normalisation by the root mean square
// is the same about a mean of 0, which takes no gradient.
#pragma once

#include "kernels/rows/gradient_kernels.h"
#include "kernels/rows/layer_norm-inl.h"
#include "kernels/rows/rms_norm-inl.h"

namespace headlight::HEADLIGHT_TARGET {

struct GradientSums {
  float plain;     // Σ g
  float weighted;  // Σ g n
};

// g = y_gradient · w of so many numbers.
template <bool kWeight, class Some>
HEADLIGHT_INLINE Vec weighted_gradient(const kernels::LayerNormBackwardArguments& a, Some some, const float* y_gradient,
                                       std::int64_t at) {
  const Vec g = some.get(y_gradient + at);
  if constexpr (kWeight) {
    return mul(g, some.get(a.weight + at));
  } else {
    return g;
  }
}

template <bool kWeight>
HEADLIGHT_INLINE GradientSums gradient_sums(const kernels::LayerNormBackwardArguments& a, const float* x,
                                            const float* y_gradient, const Normal& normal) {
  Vec plain[kRowAccumulators];
  Vec weighted[kRowAccumulators];
#pragma GCC unroll 4
  for (int index = 0; index < kRowAccumulators; ++index) plain[index] = weighted[index] = zero();
  sweep_row(a.columns, [&](auto some, int index, std::int64_t at) {
    const Vec g = weighted_gradient<kWeight>(a, some, y_gradient, at);
    plain[index] = add(plain[index], g);
    // Where x ends n is no zero, but g is.
    const Vec n = some.ended_by(normal.of(some.get(x + at)), zero());
    weighted[index] = fma(g, n, weighted[index]);
  });
  return {sum_of_accumulators(plain), sum_of_accumulators(weighted)};
}

// weight_gradient += y_gradient · n, bias_gradient += y_gradient
HEADLIGHT_INLINE void add_parameter_gradients(const kernels::LayerNormBackwardArguments& a, const float* x,
                                              const float* y_gradient, const Normal& normal) {
  if (a.weight_gradient != nullptr) {
    float* to = a.weight_gradient;
    sweep_row(a.columns, [&](auto some, int, std::int64_t at) {
      some.put(fma(some.get(y_gradient + at), normal.of(some.get(x + at)), some.get(to + at)), to + at);
    });
  }
  if (a.bias_gradient != nullptr) {
    float* to = a.bias_gradient;
    sweep_row(a.columns, [&](auto some, int, std::int64_t at) {
      some.put(add(some.get(to + at), some.get(y_gradient + at)), to + at);
    });
  }
}

// x_gradient = (g − mean(g) − n · mean(g n)) · inverse + residual
template <bool kWeight>
HEADLIGHT_INLINE void gradient_row(const kernels::LayerNormBackwardArguments& a, const float* x,
                                   const float* y_gradient, const float* residual, float* x_gradient,
                                   const Normal& normal) {
  const GradientSums sums = gradient_sums<kWeight>(a, x, y_gradient, normal);
  const auto columns = static_cast<float>(a.columns);
  const Vec plain = broadcast(a.root_mean_square ? 0.0f : sums.plain / columns);
  const Vec weighted = broadcast(sums.weighted / columns);
  sweep_row(a.columns, [&](auto some, int, std::int64_t at) {
    const Vec g = weighted_gradient<kWeight>(a, some, y_gradient, at);
    const Vec centred = fnma(normal.of(some.get(x + at)), weighted, sub(g, plain));
    Vec gradient = mul(centred, normal.inverse);
    if (residual != nullptr) gradient = add(gradient, some.get(residual + at));
    some.put(gradient, x_gradient + at);
  });
}

HEADLIGHT_INLINE Normal normal_of(const kernels::LayerNormBackwardArguments& a, const float* x) {
  // Part by part, not one struct or the other: that would go through memory.
  Vec mean = zero(), correction = zero(), inverse;
  if (a.root_mean_square) {
    inverse = inverse_root_mean_square(x, a.columns, a.epsilon);
  } else {
    const Normal normal = normal_of_row(x, a.columns, sum_of_row<false>(x, nullptr, nullptr, a.columns), a.epsilon);
    mean = normal.mean;
    correction = normal.correction;
    inverse = normal.inverse;
  }
  return {mean, correction, inverse};
}

template <bool kWeight>
inline void layer_norm_backward_rows(const kernels::LayerNormBackwardArguments& a) {
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const float* x = a.x.row(row);
    const float* y_gradient = a.y_gradient.row(row);
    const Normal normal = normal_of(a, x);
    add_parameter_gradients(a, x, y_gradient, normal);
    if (a.x_gradient.data == nullptr) continue;
    const float* residual = a.residual.data != nullptr ? a.residual.row(row) : nullptr;
    gradient_row<kWeight>(a, x, y_gradient, residual, a.x_gradient.row(row), normal);
  }
}

inline void layer_norm_backward(const kernels::LayerNormBackwardArguments& a) noexcept {
  a.weight != nullptr ? layer_norm_backward_rows<true>(a) : layer_norm_backward_rows<false>(a);
}

}  // namespace headlight::HEADLIGHT_TARGET
