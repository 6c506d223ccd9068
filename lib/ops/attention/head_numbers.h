// Which heads of a larger call those of this one are: the words of dropout belong to places in the larger one.
#pragma once

#include <cstdint>

namespace headlight::ops {

struct HeadNumbers {
  std::int64_t all = 0;     // query heads of a sample in the larger call
  std::int64_t first = 0;   // the one that is this call's head 0
  std::int64_t stride = 1;  // and how far it is from there to head 1

  // As dropout counts the heads of all samples.
  [[nodiscard]] std::uint32_t operator()(std::int64_t sample, std::int64_t head) const noexcept {
    return static_cast<std::uint32_t>(sample * all + first + stride * head);
  }
};

}  // namespace headlight::ops
