#include "tools/headlight/support/byte_count.h"

#include <charconv>
#include <system_error>
#include <utility>

namespace headlight::program {
namespace {

constexpr std::int64_t kLeastBytes = std::int64_t{1} << 20;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 46;

}  // namespace

std::optional<std::int64_t> parse_bytes(const std::string& text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  auto [unit, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc()) return std::nullopt;
  while (unit != end && *unit == ' ') ++unit;
  const std::string name(unit, end);
  int bits = -1;
  for (const auto& [known, power] : {std::pair{"", 0}, {"B", 0}, {"K", 10}, {"M", 20}, {"G", 30}, {"T", 40}}) {
    const bool long_name = power > 0 && name == std::string(known) + "iB";
    if (name == known || long_name) bits = power;
  }
  if (bits < 0 || number < 0 || number > (kMostBytes >> bits)) return std::nullopt;
  const std::int64_t bytes = number << bits;
  return bytes < kLeastBytes ? std::nullopt : std::optional(bytes);
}

std::string expected_bytes(const std::string& text) {
  return parse_bytes(text) ? "" : "1MiB to 64TiB, such as 1GiB or 300MiB";
}

}  // namespace headlight::program
