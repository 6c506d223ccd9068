// Softmax weights of random heads, and how closely their measures are known.
#pragma once

#include <cstdint>

#include "headlight/tensor.h"
#include "support/head_case.h"
#include "support/random.h"

namespace headlight::test {

// Entropies are summed in float32: a term p ln p errs by some 4 ε p |ln p|, a sum over the vector's lanes and a unit's
// 32 rows by √n ε of itself. With ε = 2⁻²⁴ and at most ln 130 nats a row that is below 16 ε = 1e-6.
inline constexpr double kFloatTolerance = 16 * 0x1p-24;
inline constexpr double kTolerance = 1e-9;

// A text's weights as float32, and those in float64 for the twins.
struct Text {
  Text(Random& random, std::int64_t heads, std::int64_t length)
      : weights(converted<float>(head_weights(random, heads, length))), wide(converted<double>(weights)) {}
  Tensor<float, 3> weights;
  Tensor<double, 3> wide;
};

}  // namespace headlight::test
