// Buffers between two pages that nobody may touch: a read or write outside ends the test with a fault.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "headlight/tensor.h"
#include "support/guarded_pages.h"

namespace headlight::test {

// Which end of the buffer touches its guard page. (The other end is as close as the page size allows.)
enum class Against : std::uint8_t { front, back };
inline constexpr std::array<Against, 2> kBothSides = {Against::front, Against::back};

// `count` elements, zero on creation.
template <class T>
class Guarded {
 public:
  Guarded(std::int64_t count, Against side)
      : bytes_(static_cast<std::size_t>(count) * sizeof(T)),
        pages_(bytes_),
        data_(reinterpret_cast<T*>(side == Against::front ? pages_.begin() : pages_.end() - bytes_)) {}

  [[nodiscard]] T* data() const noexcept { return data_; }
  template <int Rank>
  [[nodiscard]] View<T, Rank> view(const typename View<T, Rank>::Shape& shape) const {
    return View<T, Rank>(data_, shape);
  }

 private:
  std::size_t bytes_;
  GuardedPages pages_;
  T* data_;
};

}  // namespace headlight::test
