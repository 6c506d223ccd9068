// Numbers in lines of text.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

namespace headlight::program {

// As std::printf writes them; what goes beyond 319 characters is cut.
template <class... Values>
std::string format(const char* pattern, Values... values) {
  char text[320];
  const int length = std::snprintf(text, sizeof text, pattern, values...);
  return {text, static_cast<std::size_t>(std::clamp(length, 0, static_cast<int>(sizeof text) - 1))};
}

// Filled up to a column of the table. Columns count letters, not bytes: units hold µ, and formulas ².
inline std::string padded_left(const std::string& text, std::size_t width) {
  const auto letters = static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; }));
  return std::string(letters < width ? width - letters : 0, ' ') + text;
}

// 1769472 → "1,769,472"
inline std::string grouped(std::int64_t number) {
  const std::string plain = std::to_string(number);
  std::string digits;
  for (std::size_t at = 0; at < plain.size(); ++at) {
    if (at > 0 && (plain.size() - at) % 3 == 0) digits += ',';
    digits += plain[at];
  }
  return digits;
}

// "1 layer", "1,200 layers".
inline std::string counted(std::int64_t number, const char* thing) {
  return grouped(number) + " " + thing + (number == 1 ? "" : "s");
}

}  // namespace headlight::program
