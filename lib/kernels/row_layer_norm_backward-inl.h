// The gradient of layer normalisation along a row: mean and variance as forward found them, the two means of the
// gradient, then the result. The gradients of weight and bias grow along the way.
#pragma once

#include "kernels/row_gradient_kernels.h"
#include "kernels/row_layer_norm-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// n = (x − mean − correction) · inverse
struct Normal {
  Vec mean;
  Vec correction;
  Vec inverse;

  HEADLIGHT_INLINE Vec of(Vec x) const { return mul(sub(sub(x, mean), correction), inverse); }
};

HEADLIGHT_INLINE Normal normal_of_row(const float* x, std::int64_t columns, float epsilon) {
  const auto count = static_cast<float>(columns);
  const Vec mean = broadcast(sum_of_row<false>(x, nullptr, nullptr, columns) / count);
  const Distances distances = distances_of_row(x, columns, mean);
  const float correction = distances.sum / count;
  const float rounded = (distances.squares - distances.sum * correction) / count;
  const float variance = rounded < 0.0f ? 0.0f : rounded;  // NaN stays
  return {mean, broadcast(correction), div(broadcast(1.0f), sqrt(broadcast(variance + epsilon)))};
}

struct GradientSums {
  float plain;     // Σ g
  float weighted;  // Σ g n
};

// g = y_gradient · weight
template <bool kWeight>
HEADLIGHT_INLINE GradientSums gradient_sums(const kernels::LayerNormBackwardArguments& a, const float* x,
                                            const float* y_gradient, const Normal& normal) {
  Vec plain[kRowAccumulators];
  Vec weighted[kRowAccumulators];
#pragma GCC unroll 4
  for (int index = 0; index < kRowAccumulators; ++index) plain[index] = weighted[index] = zero();
  sweep_row(
      a.columns,
      [&](int index, std::int64_t at) {
        Vec g = load(y_gradient + at);
        if constexpr (kWeight) g = mul(g, load(a.weight + at));
        plain[index] = add(plain[index], g);
        weighted[index] = fma(g, normal.of(load(x + at)), weighted[index]);
      },
      [&](std::int64_t at, int count) {
        Vec g = load_partial(y_gradient + at, count);
        if constexpr (kWeight) g = mul(g, load_partial(a.weight + at, count));
        plain[0] = add(plain[0], g);
        // Where x ends n is no zero, but g is.
        const Vec n = select(mask_first(count), normal.of(load_partial(x + at, count)), zero());
        weighted[0] = fma(g, n, weighted[0]);
      });
  return {sum_of_accumulators(plain), sum_of_accumulators(weighted)};
}

// weight_gradient += y_gradient · n, bias_gradient += y_gradient
HEADLIGHT_INLINE void add_parameter_gradients(const kernels::LayerNormBackwardArguments& a, const float* x,
                                              const float* y_gradient, const Normal& normal) {
  if (a.weight_gradient != nullptr) {
    float* to = a.weight_gradient;
    sweep_row(
        a.columns,
        [&](int, std::int64_t at) {
          store(fma(load(y_gradient + at), normal.of(load(x + at)), load(to + at)), to + at);
        },
        [&](std::int64_t at, int count) {
          const Vec n = normal.of(load_partial(x + at, count));
          store_partial(fma(load_partial(y_gradient + at, count), n, load_partial(to + at, count)), to + at, count);
        });
  }
  if (a.bias_gradient != nullptr) {
    float* to = a.bias_gradient;
    sweep_row(
        a.columns, [&](int, std::int64_t at) { store(add(load(to + at), load(y_gradient + at)), to + at); },
        [&](std::int64_t at, int count) {
          store_partial(add(load_partial(to + at, count), load_partial(y_gradient + at, count)), to + at, count);
        });
  }
}

// x_gradient = (g − mean(g) − n · mean(g n)) · inverse + residual
template <bool kWeight, bool kResidual>
HEADLIGHT_INLINE void gradient_row(const kernels::LayerNormBackwardArguments& a, const float* x,
                                   const float* y_gradient, const float* residual, float* x_gradient,
                                   const Normal& normal) {
  const GradientSums sums = gradient_sums<kWeight>(a, x, y_gradient, normal);
  const auto columns = static_cast<float>(a.columns);
  const Vec plain = broadcast(sums.plain / columns);
  const Vec weighted = broadcast(sums.weighted / columns);
  sweep_row(
      a.columns,
      [&](int, std::int64_t at) {
        Vec g = load(y_gradient + at);
        if constexpr (kWeight) g = mul(g, load(a.weight + at));
        const Vec centred = fnma(normal.of(load(x + at)), weighted, sub(g, plain));
        Vec gradient = mul(centred, normal.inverse);
        if constexpr (kResidual) gradient = add(gradient, load(residual + at));
        store(gradient, x_gradient + at);
      },
      [&](std::int64_t at, int count) {
        Vec g = load_partial(y_gradient + at, count);
        if constexpr (kWeight) g = mul(g, load_partial(a.weight + at, count));
        const Vec centred = fnma(normal.of(load_partial(x + at, count)), weighted, sub(g, plain));
        Vec gradient = mul(centred, normal.inverse);
        if constexpr (kResidual) gradient = add(gradient, load_partial(residual + at, count));
        store_partial(gradient, x_gradient + at, count);
      });
}

template <bool kWeight, bool kResidual>
inline void layer_norm_backward_rows(const kernels::LayerNormBackwardArguments& a) {
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const float* x = a.x + row * a.x_stride;
    const float* y_gradient = a.y_gradient + row * a.y_gradient_stride;
    const Normal normal = normal_of_row(x, a.columns, a.epsilon);
    add_parameter_gradients(a, x, y_gradient, normal);
    if (a.x_gradient == nullptr) continue;
    const float* residual = kResidual ? a.residual + row * a.residual_stride : nullptr;
    gradient_row<kWeight, kResidual>(a, x, y_gradient, residual, a.x_gradient + row * a.x_gradient_stride, normal);
  }
}

inline void layer_norm_backward(const kernels::LayerNormBackwardArguments& a) noexcept {
  if (a.weight != nullptr) {
    a.residual != nullptr ? layer_norm_backward_rows<true, true>(a) : layer_norm_backward_rows<true, false>(a);
  } else {
    a.residual != nullptr ? layer_norm_backward_rows<false, true>(a) : layer_norm_backward_rows<false, false>(a);
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
