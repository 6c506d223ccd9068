// What single row-wise operations ask of their arguments, of floats or of a type that the program learns as it runs.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "headlight/activation.h"
#include "ops/check.h"
#include "ops/typed_check.h"

namespace headlight::ops {

inline void check_activation(std::string_view operation, Activation activation) {
  if (activation <= Activation::gelu_tanh) return;
  fail(operation, "activation is " + std::to_string(static_cast<int>(activation)) + ", expected one of the enum");
}

template <class Input>
void check_bias_backward(const Input& c_gradient, std::span<float> bias_gradient) {
  constexpr std::string_view kName = "bias_backward";
  const Extent extent = check_view(kName, "c_gradient", c_gradient);
  const std::array<std::int64_t, 1> shape = {static_cast<std::int64_t>(bias_gradient.size())};
  const std::array<std::int64_t, 1> expected = {c_gradient.extent(1)};
  check_shape(kName, "bias_gradient", shape, expected, "[N]");
  check_disjoint(kName, "bias_gradient", extent_of(bias_gradient), "c_gradient", extent);
}

}  // namespace headlight::ops
