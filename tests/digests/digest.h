// A number of 64 bits that stands for the bits of many: equal bits give equal digests, on every machine and compiler.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "headlight/tensor.h"

namespace headlight::test {

class Digest {
 public:
  // As FNV-1a (Fowler, Noll & Vo), a word of up to 64 bits at a time; the shift lets high bits reach low ones.
  void add(std::uint64_t word) {
    value_ = (value_ ^ word) * 0x100000001b3u;
    value_ ^= value_ >> 32;
  }

  // Every NaN is the same: which of two an instruction hands on depends on the order of its operands, which compilers
  // may choose. Zeros of either sign are two numbers.
  void add(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    add(std::uint64_t{(bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc00000u : bits});
  }
  void add(double x) { add(x != x ? std::uint64_t{0x7ff8} << 48 : std::bit_cast<std::uint64_t>(x)); }
  void add(std::span<const float> numbers) {
    for (const float x : numbers) add(x);
  }

  // The elements in C order, whatever lies between them in memory. Views that are not given add nothing.
  template <int Rank>
  void add(View<const float, Rank> view) {
    if (view) add_axes<0>(view, view.data);
  }
  template <int Rank>
  void add(View<float, Rank> view) {
    add(View<const float, Rank>(view));
  }
  template <int Rank>
  void add(const Tensor<float, Rank>& tensor) {
    add(tensor.view());
  }

  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  template <int Axis, int Rank>
  void add_axes(const View<const float, Rank>& view, const float* from) {
    for (std::int64_t n = 0; n < view.extent(Axis); ++n) {
      const float* at = from + n * view.stride(Axis);
      if constexpr (Axis + 1 < Rank) {
        add_axes<Axis + 1>(view, at);
      } else {
        add(*at);
      }
    }
  }

  std::uint64_t value_ = 0xcbf29ce484222325u;
};

}  // namespace headlight::test
