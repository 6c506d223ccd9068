// UTF-8, a code point at a time.
#pragma once

#include <utf8proc.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace headlight::text {

// How many bytes the code point has that begins with this one, in UTF-8 that is valid.
[[nodiscard]] inline std::size_t size_of_code_point(char first) noexcept {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

// A code point, and how many bytes it has; none of them where no code point begins.
struct CodePoint {
  char32_t value = U'\uFFFD';
  std::size_t size = 0;
};

// The code point that begins at `at`, before the end of `text`.
[[nodiscard]] inline CodePoint code_point_at(std::string_view text, std::size_t at) noexcept {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data()) + at;
  const std::size_t left = text.size() - at;
  const char32_t first = bytes[0];
  if (first < 0x80) return {first, 1};
  const auto follows = [bytes](std::size_t n) { return (bytes[n] & 0xC0) == 0x80; };
  const auto bits = [bytes](std::size_t n) { return static_cast<char32_t>(bytes[n] & 0x3F); };
  if (first >= 0xC2 && first < 0xE0) {
    if (left >= 2 && follows(1)) return {(first & 0x1F) << 6 | bits(1), 2};
  } else if (first >= 0xE0 && first < 0xF0) {
    if (left < 3 || !follows(1) || !follows(2)) return {};
    const char32_t value = (first & 0x0F) << 12 | bits(1) << 6 | bits(2);
    if (value >= 0x800 && (value < 0xD800 || value > 0xDFFF)) return {value, 3};
  } else if (first >= 0xF0 && first < 0xF5) {
    if (left < 4 || !follows(1) || !follows(2) || !follows(3)) return {};
    const char32_t value = (first & 0x07) << 18 | bits(1) << 12 | bits(2) << 6 | bits(3);
    if (value >= 0x10000 && value <= 0x10FFFF) return {value, 4};
  }
  return {};
}

// The code point at `at`, which is moved behind it. Where there is none, U+FFFD, and one byte further. `at` is before
// the end.
[[nodiscard]] inline char32_t next_code_point(std::string_view text, std::size_t& at) noexcept {
  const CodePoint found = code_point_at(text, at);
  at += found.size > 0 ? found.size : 1;
  return found.value;
}

// The code point that ends before `at`, which is moved to where it begins. `at` is not 0.
[[nodiscard]] inline char32_t previous_code_point(std::string_view text, std::size_t& at) {
  do {
    --at;
  } while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  std::size_t begin = at;
  return next_code_point(text, begin);
}

// The first byte of `text` that is not UTF-8, or its size.
[[nodiscard]] std::size_t first_invalid(std::string_view text);

// The text, with U+FFFD for each longest part that begins a code point and does not end it, and each other byte.
[[nodiscard]] std::string valid_utf8(std::string_view text);

inline void append_utf8(std::string& text, char32_t codepoint) {
  if (codepoint < 0x80) {
    text += static_cast<char>(codepoint);
    return;
  }
  std::array<utf8proc_uint8_t, 4> bytes{};
  const auto length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(codepoint), bytes.data());
  text.append(reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(length));
}

}  // namespace headlight::text
