// How two texts are cut that are to be one sequence.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace headlight::text {

// So many tokens of each remain where both together may have `room`: the longer one is cut to the rest that the shorter
// leaves, and where that is less than the shorter has, each gets half, the longer one the odd token. (truncation
// "longest_first" of Hugging Face's tokenizers)
[[nodiscard]] inline std::pair<std::int64_t, std::int64_t> pair_lengths(std::int64_t first, std::int64_t second,
                                                                        std::int64_t room) noexcept {
  room = std::max<std::int64_t>(room, 0);
  if (first <= room && second <= room - first) return {first, second};
  std::int64_t shorter = std::min(first, second), longer = room - shorter;
  if (longer < shorter) {
    shorter = room / 2;
    longer = room - shorter;
  }
  return first > second ? std::pair(longer, shorter) : std::pair(shorter, longer);
}

}  // namespace headlight::text
