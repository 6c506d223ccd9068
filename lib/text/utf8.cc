#include "text/utf8.h"

#include <cstdint>
#include <cstring>

namespace headlight::text {

std::size_t first_invalid(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    if (text.size() - at >= sizeof(std::uint64_t)) {  // eight letters of ASCII at a time
      std::uint64_t eight = 0;
      std::memcpy(&eight, text.data() + at, sizeof eight);
      if ((eight & 0x8080808080808080) == 0) {
        at += sizeof eight;
        continue;
      }
    }
    const std::size_t size = code_point_at(text, at).size;
    if (size == 0) break;
    at += size;
  }
  return at;
}

namespace {

// How many bytes at `at` begin a code point that nothing ends; 1 where they begin none.
std::size_t size_of_invalid(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t n) { return at + n < text.size() ? static_cast<unsigned char>(text[at + n]) : 0u; };
  const unsigned first = byte(0), second = byte(1);
  const auto within = [](unsigned value, unsigned low, unsigned high) { return low <= value && value <= high; };
  if (within(first, 0xE0, 0xEF)) {
    return within(second, first == 0xE0 ? 0xA0 : 0x80, first == 0xED ? 0x9F : 0xBF) ? 2 : 1;
  }
  if (!within(first, 0xF0, 0xF4) || !within(second, first == 0xF0 ? 0x90 : 0x80, first == 0xF4 ? 0x8F : 0xBF)) return 1;
  return within(byte(2), 0x80, 0xBF) ? 3 : 2;
}

}  // namespace

std::string valid_utf8(std::string_view text) {
  std::string valid;
  while (true) {
    const std::size_t end = first_invalid(text);
    valid += text.substr(0, end);
    if (end == text.size()) return valid;
    valid += "\uFFFD";
    text.remove_prefix(end + size_of_invalid(text, end));
  }
}

}  // namespace headlight::text
