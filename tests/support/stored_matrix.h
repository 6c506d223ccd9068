// A matrix of bfloat16 numbers, as products read and write them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "headlight/storage_types.h"
#include "headlight/view.h"

namespace headlight::test {

// A matrix as bfloat16 with its rows as far apart, from some number of its memory on; all else there is NaN.
class StoredMatrix {
 public:
  StoredMatrix(const View<const float, 2>& from, std::int64_t first)
      : first_(first), shape_(from.shape), strides_{std::max(from.stride(0), from.extent(1)), 1} {
    memory_.assign(static_cast<std::size_t>(first + shape_[0] * strides_[0] + 1), kGap);
    for (std::int64_t i = 0; i < shape_[0]; ++i) {
      for (std::int64_t j = 0; j < shape_[1]; ++j) view()(i, j) = BFloat16(from(i, j));
    }
  }

  [[nodiscard]] View<BFloat16, 2> view() { return {memory_.data() + first_, shape_, strides_}; }
  // Whether it holds those floats, rounded, and nothing between its rows was written.
  [[nodiscard]] bool holds(const View<const float, 2>& expected) const {
    const StoredMatrix other(expected, first_);
    return std::ranges::equal(memory_, other.memory_, {}, &BFloat16::bits, &BFloat16::bits);
  }

 private:
  static constexpr BFloat16 kGap = BFloat16::from_bits(0x7fc0);

  std::int64_t first_;
  View<float, 2>::Shape shape_;
  View<float, 2>::Shape strides_;
  std::vector<BFloat16> memory_;
};

}  // namespace headlight::test
