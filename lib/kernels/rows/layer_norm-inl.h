// Layer normalisation along a row, three sweeps over a row in L1: sum, squared distances from the mean, result.
//
// Two sweeps (Σz and Σz² at once) lose every digit of the variance where the mean is large against it, so the second is
// taken about the mean. A large mean also carries a large rounding error, which would shift the whole row: the second
// sweep measures it, and mean and variance are corrected for it (Chan, Golub & LeVeque 1983, the corrected two-pass
// algorithm). The sweeps wait for memory, so this costs nothing.
#pragma once

#include "kernels/rows/kernels.h"
#include "kernels/rows/sweep-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// Σ z. With a residual z = x + residual is left in y.
template <bool kResidual>
HEADLIGHT_INLINE float sum_of_row(const float* x, const float* residual, float* y, std::int64_t columns) {
  return sum_along_row(columns, [&](auto some, Vec& sum, std::int64_t at) {
    Vec z = some.get(x + at);
    if constexpr (kResidual) {
      z = add(z, some.get(residual + at));
      some.put(z, y + at);
    }
    sum = add(sum, z);
  });
}

// Σ (z − mean) and Σ (z − mean)². The first is what rounding left in the mean: n times its error.
struct Distances {
  float sum;
  float squares;
};

HEADLIGHT_INLINE Distances distances_of_row(const float* z, std::int64_t columns, Vec mean) {
  Vec sums[kRowAccumulators];
  Vec squares[kRowAccumulators];
#pragma GCC unroll 4
  for (int index = 0; index < kRowAccumulators; ++index) sums[index] = squares[index] = zero();
  sweep_row(columns, [&](auto some, int index, std::int64_t at) {
    const Vec distance = some.ended_by(sub(some.get(z + at), mean), zero());
    sums[index] = add(sums[index], distance);
    squares[index] = fma(distance, distance, squares[index]);
  });
  return {sum_of_accumulators(sums), sum_of_accumulators(squares)};
}

// n = (z − mean − correction) · inverse
struct Normal {
  Vec mean;
  Vec correction;
  Vec inverse;

  HEADLIGHT_INLINE Vec of(Vec z) const { return mul(sub(sub(z, mean), correction), inverse); }
};

// Of a row with that sum.
HEADLIGHT_INLINE Normal normal_of_row(const float* z, std::int64_t columns, float sum, float epsilon) {
  const auto count = static_cast<float>(columns);
  const Vec mean = broadcast(sum / count);
  const Distances distances = distances_of_row(z, columns, mean);
  const float correction = distances.sum / count;
  const float rounded = (distances.squares - distances.sum * correction) / count;
  const float variance = rounded < 0.0f ? 0.0f : rounded;  // NaN stays
  return {mean, broadcast(correction), div(broadcast(1.0f), sqrt(broadcast(variance + epsilon)))};
}

// y = n · weight + bias
template <bool kWeight, bool kBias>
HEADLIGHT_INLINE void normalize_row(const Normal& normal, const float* z, float* y, std::int64_t columns,
                                    const float* weight, const float* bias) {
  sweep_row(columns, [&](auto some, int, std::int64_t at) {
    Vec n = normal.of(some.get(z + at));
    if constexpr (kWeight && kBias) {
      n = fma(n, some.get(weight + at), some.get(bias + at));
    } else if constexpr (kWeight) {
      n = mul(n, some.get(weight + at));
    } else if constexpr (kBias) {
      n = add(n, some.get(bias + at));
    }
    some.put(n, y + at);
  });
}

template <bool kResidual, bool kWeight, bool kBias>
inline void layer_norm_rows(const kernels::LayerNormArguments& a) {
  const std::int64_t columns = a.columns;
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const float* x = a.x.row(row);
    float* y = a.y.row(row);
    const float* residual = kResidual ? a.residual.row(row) : nullptr;
    const float sum = sum_of_row<kResidual>(x, residual, y, columns);
    const float* z = kResidual ? y : x;
    const Normal normal = normal_of_row(z, columns, sum, a.epsilon);
    normalize_row<kWeight, kBias>(normal, z, y, columns, a.weight, a.bias);
  }
}

template <bool kResidual>
inline void layer_norm_with(const kernels::LayerNormArguments& a) {
  if (a.weight != nullptr) {
    a.bias != nullptr ? layer_norm_rows<kResidual, true, true>(a) : layer_norm_rows<kResidual, true, false>(a);
  } else {
    a.bias != nullptr ? layer_norm_rows<kResidual, false, true>(a) : layer_norm_rows<kResidual, false, false>(a);
  }
}

inline void layer_norm(const kernels::LayerNormArguments& arguments) noexcept {
  arguments.residual.data != nullptr ? layer_norm_with<true>(arguments) : layer_norm_with<false>(arguments);
}

}  // namespace headlight::HEADLIGHT_TARGET
