// Numbers in what was typed.
#pragma once

#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>

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

// Whether `text` is a whole number, but one that T does not hold because it is too large.
template <class T>
[[nodiscard]] bool is_too_large(const std::string& text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc::result_out_of_range && stop == end && !text.starts_with('-');
}

}  // namespace headlight::program
