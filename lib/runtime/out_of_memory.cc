#include "headlight/out_of_memory.h"

#include <cstdio>

namespace headlight {

OutOfMemory::OutOfMemory(std::string_view who, std::size_t bytes) noexcept : bytes_(bytes) {
  static_cast<void>(std::snprintf(words_, sizeof words_, "%.*s: %zu bytes of memory cannot be had",
                                  static_cast<int>(who.size() < 64 ? who.size() : 64), who.data(), bytes));
}

}  // namespace headlight
