// Numbers as JSON spells them.
#pragma once

#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>

namespace headlight::files {

// The nearest double, infinite where it lies beyond; `text` is a number of JSON.
[[nodiscard]] double number_of(std::string_view text) noexcept;

// Nothing where it is spelt with a fraction or an exponent, or does not fit 64 bits.
[[nodiscard]] inline std::optional<std::int64_t> integer_of(std::string_view text) noexcept {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

}  // namespace headlight::files
