// Buffers between two pages that nobody may touch: a read or write outside ends the test with a fault.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>

#include "headlight/tensor.h"

namespace headlight::test {

// Which end of the buffer touches its guard page. (The other end is as close as the page size allows.)
enum class Against : std::uint8_t { front, back };
inline constexpr std::array<Against, 2> kBothSides = {Against::front, Against::back};

// `count` elements, zero on creation.
template <class T>
class Guarded {
 public:
  Guarded(std::int64_t count, Against side) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    const std::size_t inner = (bytes + page - 1) / page * page;
    size_ = inner + 2 * page;
    void* memory = mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    base_ = static_cast<std::byte*>(memory);
    if (inner != 0 && mprotect(base_ + page, inner, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    std::byte* begin = side == Against::front ? base_ + page : base_ + page + inner - bytes;
    data_ = reinterpret_cast<T*>(begin);
  }
  ~Guarded() { munmap(base_, size_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  [[nodiscard]] T* data() const noexcept { return data_; }
  template <int Rank>
  [[nodiscard]] View<T, Rank> view(const typename View<T, Rank>::Shape& shape) const {
    return View<T, Rank>(data_, shape);
  }

 private:
  std::byte* base_ = nullptr;
  std::size_t size_ = 0;
  T* data_ = nullptr;
};

}  // namespace headlight::test
