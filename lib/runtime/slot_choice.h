// Which block of a scratch pool serves a request, and how large it is then: of the pool, and of whoever foretells it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "simd/integers.h"

namespace headlight::runtime {

struct SlotChoice {
  int index = -1;  // none is idle
  std::size_t capacity = 0;
};

// The smallest idle slot of at least `bytes`, else the largest idle one. capacity(index): that of an idle slot, nothing
// of a borrowed one.
template <class Capacity>
SlotChoice choose_slot(int candidates, std::size_t bytes, Capacity capacity) noexcept {
  SlotChoice best;
  for (int index = 0; index < candidates; ++index) {
    const std::optional<std::size_t> idle = capacity(index);
    if (!idle) continue;
    const bool fits = *idle >= bytes;
    const bool best_fits = best.capacity >= bytes;
    const bool better = fits == best_fits ? (fits ? *idle < best.capacity : *idle > best.capacity) : fits;
    if (best.index < 0 || better) best = {index, *idle};
  }
  return best;
}

// What a slot that is too small grows to: whole pages.
constexpr std::size_t slot_capacity(std::size_t bytes) noexcept {
  constexpr std::size_t kPage = 4096;
  return bytes > PTRDIFF_MAX ? bytes : round_up(bytes, kPage);
}

}  // namespace headlight::runtime
