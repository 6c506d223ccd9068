#include "headlight/out_of_memory.h"

#include <algorithm>
#include <cstdio>
#include <string>

namespace headlight {

namespace {

// The longest name, and a tensor of four axes: what is longer is cut.
constexpr std::size_t kName = 128;

}  // namespace

OutOfMemory::OutOfMemory(std::string_view who, std::size_t bytes) noexcept : bytes_(bytes) {
  static_assert(sizeof words_ > kName + sizeof ": 18446744073709551615 bytes of memory cannot be had");
  static_cast<void>(std::snprintf(words_, sizeof words_, "%.*s: %zu bytes of memory cannot be had",
                                  static_cast<int>(std::min(who.size(), kName)), who.data(), bytes));
}

OutOfMemory::OutOfMemory(std::span<const std::int64_t> tensor_shape, std::size_t bytes) noexcept : OutOfMemory("", 0) {
  char name[kName] = "Tensor [";
  std::size_t length = std::char_traits<char>::length(name);
  const char* between = "";
  for (const std::int64_t extent : tensor_shape) {
    const auto value = static_cast<long long>(extent);
    const int count = std::snprintf(name + length, sizeof name - length, "%s%lld", between, value);
    length = std::min(length + static_cast<std::size_t>(count), sizeof name - 2);
    between = ", ";
  }
  name[length] = ']';
  *this = OutOfMemory(std::string_view(name, length + 1), bytes);
}

}  // namespace headlight
