#include "files/json_number.h"

#include <algorithm>
#include <cstddef>

namespace headlight::files {
namespace {

// Whether a number that no double holds is too large, and not too small: by the power of ten of its first digit.
bool is_large(std::string_view text) noexcept {
  const std::size_t exponent_at = std::min(text.find_first_of("eE"), text.size());
  const std::string_view digits = text.substr(0, exponent_at);
  const auto point = static_cast<std::int64_t>(std::min(digits.find('.'), digits.size()));
  const auto first = static_cast<std::int64_t>(std::min(digits.find_first_of("123456789"), digits.size()));
  std::string_view exponent = text.substr(std::min(exponent_at + 1, text.size()));
  const bool negative = exponent.starts_with('-');
  if (negative || exponent.starts_with('+')) exponent.remove_prefix(1);
  std::int64_t power = 0;
  for (const char digit : exponent) power = std::min(10 * power + (digit - '0'), std::int64_t{1} << 40);
  return point - first + (negative ? -power : power) > 0;
}

}  // namespace

double number_of(std::string_view text) noexcept {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc::result_out_of_range) return value;
  const double size = is_large(text) ? std::numeric_limits<double>::infinity() : 0.0;
  return text.starts_with('-') ? -size : size;
}

}  // namespace headlight::files
