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

// The code point at `at`, which is moved behind it. Where there is none, U+FFFD, and one byte further.
[[nodiscard]] inline char32_t next_code_point(std::string_view text, std::size_t& at) {
  utf8proc_int32_t codepoint = 0;
  const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
                                       static_cast<utf8proc_ssize_t>(text.size() - at), &codepoint);
  at += length > 0 ? static_cast<std::size_t>(length) : 1;
  return length > 0 ? static_cast<char32_t>(codepoint) : char32_t{0xFFFD};
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
  std::array<utf8proc_uint8_t, 4> bytes{};
  const auto length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(codepoint), bytes.data());
  text.append(reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(length));
}

}  // namespace headlight::text
