// Memory of the caller's that results are written to.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "headlight/tensor.h"
#include "models/describe.h"
#include "models/text_encoder_check.h"

namespace headlight::models {

// Throws std::invalid_argument unless `out` has that shape, memory, the numbers of a row side by side, and rows and
// matrices apart from each other.
template <int Rank>
void check_out(const View<float, Rank>& out, const std::array<std::int64_t, static_cast<std::size_t>(Rank)>& expected) {
  if (out.shape != expected) fail_call("out has shape " + describe(out.shape) + ", expected " + describe(expected));
  if (out.size() == 0) return;
  if (!out) fail_call("out has no memory (a null pointer)");
  if (out.extent(Rank - 1) > 1 && out.stride(Rank - 1) != 1) {
    fail_call("out has the last stride " + std::to_string(out.stride(Rank - 1)) + ", expected 1");
  }
  std::array<int, static_cast<std::size_t>(Rank)> axes{};
  for (int axis = 0; axis < Rank; ++axis) axes[static_cast<std::size_t>(axis)] = axis;
  std::sort(axes.begin(), axes.end(), [&](int one, int other) { return out.stride(one) < out.stride(other); });
  // From the innermost axis on, a stride must lead beyond all that lies within it.
  std::int64_t within = 1;
  for (const int axis : axes) {
    if (out.extent(axis) == 1) continue;
    std::int64_t whole = 0;
    if (out.stride(axis) < within || __builtin_mul_overflow(out.extent(axis) - 1, out.stride(axis), &whole) ||
        __builtin_add_overflow(within, whole, &within) || within > INT64_MAX / 4) {
      fail_call("out has the strides " + describe(out.strides) + " for the shape " + describe(out.shape) +
                ", expected rows apart from each other");
    }
  }
}

}  // namespace headlight::models
