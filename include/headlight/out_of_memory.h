// Memory that could not be had: who asked for it, and how much it was.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <string_view>

#include "headlight/export.h"

namespace headlight {

// What is thrown where a tensor, scratch memory, a list or a saved state cannot be had: before anything is written, and
// nothing is left behind, so that the caller may go on with less. A layer, which is many operations, may have written a
// part of its outputs by then; see Layer. It holds its words itself and needs no memory.
class HEADLIGHT_API OutOfMemory : public std::bad_alloc {
 public:
  // "attention: 1073741824 bytes of memory cannot be had"
  OutOfMemory(std::string_view who, std::size_t bytes) noexcept;
  // "Tensor [8, 1024, 768]: 25165824 bytes of memory cannot be had"
  OutOfMemory(std::span<const std::int64_t> tensor_shape, std::size_t bytes) noexcept;

  // "attention: 1073741824 bytes of memory cannot be had"
  [[nodiscard]] const char* what() const noexcept override { return words_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  char words_[192];
  std::size_t bytes_;
};

}  // namespace headlight
