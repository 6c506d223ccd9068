// Numbers in what was typed.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <vector>

namespace headlight::program {

// All of `text` as a number that T holds, and a finite one; nothing for other texts.
template <class T>
[[nodiscard]] std::optional<T> parse_number(const std::string& text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value)) return std::nullopt;
  }
  return value;
}

// Whether `text` is a whole number, of whatever size.
[[nodiscard]] inline bool is_whole_number(const std::string& text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error != std::errc::invalid_argument && stop == end;
}

// What stands between separators, be it nothing: three parts of "4,,5".
[[nodiscard]] inline std::vector<std::string> parts_of(const std::string& text, const char* separators) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0, end = 0; begin <= text.size(); begin = end + 1) {
    end = std::min(text.find_first_of(separators, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
  }
  return parts;
}

// Whether `text` is a whole number, but one that T does not hold because it is too large.
template <class T>
[[nodiscard]] bool is_too_large(const std::string& text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc::result_out_of_range && stop == end && !text.starts_with('-');
}

// ", each at most 9223372036854775807" where one of the whole numbers between separators is larger; else nothing.
[[nodiscard]] inline std::string limit_of_parts(const std::string& text, const char* separators) {
  for (const std::string& part : parts_of(text, separators)) {
    if (!is_too_large<std::int64_t>(part)) continue;
    return ", each at most " + std::to_string(std::numeric_limits<std::int64_t>::max());
  }
  return "";
}

}  // namespace headlight::program
