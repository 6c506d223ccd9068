// Memory that could not be had: who asked for it, and how much it was.
#pragma once

#include <cstddef>
#include <new>
#include <string_view>

#include "headlight/export.h"

namespace headlight {

// What operations and layers throw where scratch memory or a saved state cannot be had: before anything is written, and
// nothing is left behind, so that the caller may go on with less. It holds its words itself and needs no memory.
class HEADLIGHT_API OutOfMemory : public std::bad_alloc {
 public:
  OutOfMemory(std::string_view who, std::size_t bytes) noexcept;

  // "attention: 1073741824 bytes of memory cannot be had"
  [[nodiscard]] const char* what() const noexcept override { return words_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  char words_[128];
  std::size_t bytes_;
};

}  // namespace headlight
