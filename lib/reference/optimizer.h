// Plain twins of the optimisers: one step of one parameter.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "headlight/optimizer.h"

namespace headlight::reference {

// momentum: of the same size, or empty.
template <class Scalar>
void sgd(std::span<Scalar> values, std::span<const Scalar> gradient, std::span<Scalar> momentum,
         const SgdOptions& options, double learning_rate) {
  for (std::size_t n = 0; n < values.size(); ++n) {
    Scalar step = gradient[n] + static_cast<Scalar>(options.weight_decay) * values[n];
    if (!momentum.empty()) step = momentum[n] = static_cast<Scalar>(options.momentum) * momentum[n] + step;
    values[n] -= static_cast<Scalar>(learning_rate) * step;
  }
}

// `t` counts steps from 1.
template <class Scalar>
void adamw(std::span<Scalar> values, std::span<const Scalar> gradient, std::span<Scalar> first,
           std::span<Scalar> second, const AdamWOptions& options, double learning_rate, std::int64_t t) {
  const auto beta1 = static_cast<Scalar>(options.beta1), beta2 = static_cast<Scalar>(options.beta2);
  const double unbiased1 = 1 - std::pow(options.beta1, t), unbiased2 = 1 - std::pow(options.beta2, t);
  for (std::size_t n = 0; n < values.size(); ++n) {
    values[n] *= static_cast<Scalar>(1 - learning_rate * options.weight_decay);
    first[n] = beta1 * first[n] + (1 - beta1) * gradient[n];
    second[n] = beta2 * second[n] + (1 - beta2) * gradient[n] * gradient[n];
    const Scalar distance =
        std::sqrt(second[n] / static_cast<Scalar>(unbiased2)) + static_cast<Scalar>(options.epsilon);
    values[n] -= static_cast<Scalar>(learning_rate / unbiased1) * first[n] / distance;
  }
}

}  // namespace headlight::reference
