// Plain twins of rotary.h and head_rows.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "headlight/head_rows.h"
#include "headlight/rotary.h"
#include "headlight/tensor.h"
#include "reference/normalization.h"

namespace headlight::reference {

// θ of each pair of a head, of a sequence of so many tokens.
inline std::vector<double> rotary_frequencies(const RotarySpec& spec, std::int64_t head_dim, std::int64_t length) {
  using Kind = RotaryScalingKind;
  const RotaryScaling& scaling = spec.scaling;
  const double original = static_cast<double>(scaling.original_length), factor = scaling.factor;
  const double dims = static_cast<double>(scaling.kind == Kind::proportional ? head_dim : spec.dims);
  double base = spec.base;
  if (scaling.kind == Kind::dynamic && length > scaling.original_length) {
    base *= std::pow(factor * static_cast<double>(length) / original - (factor - 1), dims / (dims - 2));
  }
  // Of yarn: the number of the pair, as a real one, that turns so often in the length of training.
  const auto pair_of = [&](double turns, double (*rounded)(double)) {
    const double pair = dims / 2 * std::log(original / (2 * std::numbers::pi * turns)) / std::log(base);
    return scaling.whole_pairs ? rounded(pair) : pair;
  };
  std::vector<double> theta(static_cast<std::size_t>(rotary_columns(spec, head_dim) / 2));
  for (std::int64_t i = 0; i < spec.dims / 2; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const double plain = std::pow(base, -2 * static_cast<double>(i) / dims);
    const double turns = original * plain / (2 * std::numbers::pi);
    double share = 0;  // of θ, beside θ / factor
    switch (scaling.kind) {
      case Kind::none:
      case Kind::dynamic:
        share = 1;
        break;
      case Kind::linear:
      case Kind::proportional:
        break;
      case Kind::llama3:
        share = std::clamp(
            (turns - scaling.low_frequency_factor) / (scaling.high_frequency_factor - scaling.low_frequency_factor),
            0.0, 1.0);
        break;
      case Kind::yarn: {
        const double first = std::max(0.0, pair_of(scaling.fast_turns, std::floor));
        const double last = std::min(dims - 1, pair_of(scaling.slow_turns, std::ceil));
        const double distance = first == last ? 0.001 : last - first;
        share = 1 - std::clamp((static_cast<double>(i) - first) / distance, 0.0, 1.0);
        break;
      }
      case Kind::longrope:
        theta[at] = plain / (length > scaling.original_length ? scaling.long_factors : scaling.short_factors)[at];
        continue;
    }
    theta[at] = share * plain + (1 - share) * plain / factor;
  }
  return theta;
}

// What cos and sin are multiplied by.
inline double rotary_attention_factor(const RotaryScaling& scaling) {
  using Kind = RotaryScalingKind;
  if (scaling.kind != Kind::yarn && scaling.kind != Kind::longrope) return 1;
  if (scaling.attention_factor != 0) return scaling.attention_factor;
  if (scaling.factor <= 1) return 1;
  return scaling.kind == Kind::yarn
             ? 1 + std::log(scaling.factor) / 10
             : std::sqrt(1 + std::log(scaling.factor) / std::log(static_cast<double>(scaling.original_length)));
}

// y = x with the pairs of each head turned by the angles of its row; `inverse`: turned back. y may be x.
template <class Scalar>
void rotate(View<const Scalar, 3> x, View<const Scalar, 2> cosines_and_sines, RotaryPairing pairing, bool inverse,
            View<Scalar, 3> y) {
  const std::int64_t dims = cosines_and_sines ? cosines_and_sines.extent(1) : 0;
  const bool halves = pairing == RotaryPairing::halves;
  for (std::int64_t n = 0; n < x.extent(0); ++n) {
    for (std::int64_t h = 0; h < x.extent(1); ++h) {
      for (std::int64_t i = 0; i < dims / 2; ++i) {
        const std::int64_t first = halves ? i : 2 * i, second = halves ? dims / 2 + i : 2 * i + 1;
        const Scalar cosine = cosines_and_sines(n, first);
        const Scalar sine = inverse ? -cosines_and_sines(n, second) : cosines_and_sines(n, second);
        const Scalar a = x(n, h, first), b = x(n, h, second);
        y(n, h, first) = a * cosine - b * sine;
        y(n, h, second) = a * sine + b * cosine;
      }
      for (std::int64_t d = dims; d < x.extent(2); ++d) y(n, h, d) = x(n, h, d);
    }
  }
}

// What is done to the heads of rows, as HeadRowsOptions in numbers of any kind.
template <class Scalar>
struct HeadRows {
  NormKind norm = NormKind::none;
  View<const Scalar, 1> weight{};
  View<const Scalar, 1> bias{};
  bool one_plus_weight = false;
  Scalar epsilon{};
  View<const Scalar, 2> cosines_and_sines{};
  RotaryPairing pairing = RotaryPairing::halves;
};

// x, y [N, H, D] in one piece each.
template <class Scalar>
void head_rows(const Tensor<Scalar, 3>& x, const HeadRows<Scalar>& options, Tensor<Scalar, 3>& y) {
  const auto& [rows, heads, head_dim] = x.shape();
  const View<const Scalar, 2> from(x.data(), {rows * heads, head_dim});
  const View<Scalar, 2> to(y.data(), {rows * heads, head_dim});
  if (options.norm == NormKind::rms) {
    rms_norm<Scalar>(from, options.weight, options.one_plus_weight, options.epsilon, {}, to);
  } else if (options.norm == NormKind::layer) {
    layer_norm<Scalar>(from, {}, options.weight, options.bias, options.epsilon, to);
  } else {
    std::copy(x.begin(), x.end(), y.begin());
  }
  rotate<Scalar>(y.view(), options.cosines_and_sines, options.pairing, false, y.view());
}

// And its gradients; those of weight and bias are added to, where given.
template <class Scalar>
void head_rows_backward(const Tensor<Scalar, 3>& x, const Tensor<Scalar, 3>& y_gradient,
                        const HeadRows<Scalar>& options, Tensor<Scalar, 3>& x_gradient, View<Scalar, 1> weight_gradient,
                        View<Scalar, 1> bias_gradient) {
  const auto& [rows, heads, head_dim] = x.shape();
  Tensor<Scalar, 3> turned_back(x.shape());
  rotate<Scalar>(y_gradient.view(), options.cosines_and_sines, options.pairing, true, turned_back.view());
  const View<const Scalar, 2> from(x.data(), {rows * heads, head_dim}), by(turned_back.data(), from.shape);
  const View<Scalar, 2> to(x_gradient.data(), from.shape);
  if (options.norm == NormKind::rms) {
    rms_norm_backward<Scalar>(from, by, options.weight, options.one_plus_weight, options.epsilon, to, weight_gradient);
  } else if (options.norm == NormKind::layer) {
    layer_norm_backward<Scalar>(from, by, options.weight, options.epsilon, to, weight_gradient, bias_gradient);
  } else {
    std::copy(turned_back.begin(), turned_back.end(), x_gradient.begin());
  }
}

}  // namespace headlight::reference
