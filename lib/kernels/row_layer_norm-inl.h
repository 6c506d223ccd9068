// Layer normalisation along a row, three sweeps over a row in L1: sum, squared distances from the mean, result.
//
// Two sweeps (Σz and Σz² at once) lose every digit of the variance where the mean is large against it, so the second is
// taken about the mean. A large mean also carries a large rounding error, which would shift the whole row: the second
// sweep measures it, and mean and variance are corrected for it (Chan, Golub & LeVeque 1983, the corrected two-pass
// algorithm). The sweeps wait for memory, so this costs nothing.
#pragma once

#include "kernels/row_kernels.h"
#include "kernels/row_sweep-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// Σ z. With a residual z = x + residual is left in y.
template <bool kResidual>
HEADLIGHT_INLINE float sum_of_row(const float* x, const float* residual, float* y, std::int64_t columns) {
  return sum_along_row(
      columns,
      [&](Vec& sum, std::int64_t at) {
        Vec z = load(x + at);
        if constexpr (kResidual) {
          z = add(z, load(residual + at));
          store(z, y + at);
        }
        sum = add(sum, z);
      },
      [&](Vec& sum, std::int64_t at, int count) {
        Vec z = load_partial(x + at, count);
        if constexpr (kResidual) {
          z = add(z, load_partial(residual + at, count));
          store_partial(z, y + at, count);
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
  sweep_row(
      columns,
      [&](int index, std::int64_t at) {
        const Vec distance = sub(load(z + at), mean);
        sums[index] = add(sums[index], distance);
        squares[index] = fma(distance, distance, squares[index]);
      },
      [&](std::int64_t at, int count) {
        const Vec distance = select(mask_first(count), sub(load_partial(z + at, count), mean), zero());
        sums[0] = add(sums[0], distance);
        squares[0] = fma(distance, distance, squares[0]);
      });
  return {sum_of_accumulators(sums), sum_of_accumulators(squares)};
}

// y = (z − mean − correction) · inverse · weight + bias
template <bool kWeight, bool kBias>
HEADLIGHT_INLINE void normalize_row(const float* z, float* y, std::int64_t columns, Vec mean, Vec correction,
                                    Vec inverse, const float* weight, const float* bias) {
  sweep_row(
      columns,
      [&](int, std::int64_t at) {
        Vec normal = mul(sub(sub(load(z + at), mean), correction), inverse);
        if constexpr (kWeight && kBias) {
          normal = fma(normal, load(weight + at), load(bias + at));
        } else if constexpr (kWeight) {
          normal = mul(normal, load(weight + at));
        } else if constexpr (kBias) {
          normal = add(normal, load(bias + at));
        }
        store(normal, y + at);
      },
      [&](std::int64_t at, int count) {
        Vec normal = mul(sub(sub(load_partial(z + at, count), mean), correction), inverse);
        if constexpr (kWeight && kBias) {
          normal = fma(normal, load_partial(weight + at, count), load_partial(bias + at, count));
        } else if constexpr (kWeight) {
          normal = mul(normal, load_partial(weight + at, count));
        } else if constexpr (kBias) {
          normal = add(normal, load_partial(bias + at, count));
        }
        store_partial(normal, y + at, count);
      });
}

template <bool kResidual, bool kWeight, bool kBias>
inline void layer_norm_rows(const kernels::LayerNormArguments& a) {
  const auto columns = static_cast<float>(a.columns);
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const float* x = a.x + row * a.x_stride;
    float* y = a.y + row * a.y_stride;
    const float* residual = kResidual ? a.residual + row * a.residual_stride : nullptr;
    const Vec mean = broadcast(sum_of_row<kResidual>(x, residual, y, a.columns) / columns);
    const float* z = kResidual ? y : x;
    const Distances distances = distances_of_row(z, a.columns, mean);
    const float correction = distances.sum / columns;
    const float rounded = (distances.squares - distances.sum * correction) / columns;
    const float variance = rounded < 0.0f ? 0.0f : rounded;  // NaN stays
    const Vec inverse = div(broadcast(1.0f), sqrt(broadcast(variance + a.epsilon)));
    normalize_row<kWeight, kBias>(z, y, a.columns, mean, broadcast(correction), inverse, a.weight, a.bias);
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
  arguments.residual != nullptr ? layer_norm_with<true>(arguments) : layer_norm_with<false>(arguments);
}

}  // namespace headlight::HEADLIGHT_TARGET
