#include "tools/headlight/support/quantity_text.h"

#include <cmath>
#include <cstdint>
#include <utility>

#include "tools/headlight/support/number_text.h"

namespace headlight::program {
namespace {

// Three digits, without zeros at the end: "1.5", "20", "0.025".
std::string three_digits(double value) { return format("%.3g", value); }

// "×10⁻⁷"
std::string power_of_ten(int power) {
  const char* const digits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = power < 0 ? "10⁻" : "10";
  for (const char digit : std::to_string(power < 0 ? -power : power)) text += digits[digit - '0'];
  return text;
}

// What `value` comes to in the largest unit that leaves at least 1 of it.
template <std::size_t kCount>
std::string in_units(double value, const std::pair<double, const char*> (&units)[kCount]) {
  for (const auto& [size, unit] : units) {
    // What rounds to 1 of a unit is written in it.
    if (std::abs(value) >= 0.9995 * size || size == units[kCount - 1].first) {
      const double amount = value / size;
      return (std::abs(amount) >= 999.5 ? number_text(amount) : three_digits(amount)) + " " + unit;
    }
  }
  return {};
}

}  // namespace

std::string number_text(double value) {
  if (!std::isfinite(value)) return std::isnan(value) ? "none" : value > 0 ? "∞" : "−∞";
  const double size = std::abs(value);
  if (size == 0) return "0";
  if (size >= 999.5 && size < 1e7) return (value < 0 ? "−" : "") + grouped(std::llround(size));
  if (size >= 0.000995 && size < 1e7) return (value < 0 ? "−" : "") + three_digits(size);
  int power = static_cast<int>(std::floor(std::log10(size)));
  std::string digits = three_digits(size / std::pow(10.0, power));
  if (digits == "10") {
    digits = "1";
    ++power;
  }
  return (value < 0 ? "−" : "") + (digits == "1" ? "" : digits + "×") + power_of_ten(power);
}

std::string bytes_text(double bytes) {
  constexpr double kKiB = 1024;
  return in_units(
      bytes,
      {{kKiB * kKiB * kKiB * kKiB, "TiB"}, {kKiB * kKiB * kKiB, "GiB"}, {kKiB * kKiB, "MiB"}, {kKiB, "KiB"}, {1, "B"}});
}

std::string seconds_text(double seconds) {
  if (seconds == 0) return "0 s";
  return in_units(seconds,
                  {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}, {1e-9, "ns"}});
}

std::string percent_text(double share) { return number_text(100 * share) + " %"; }

}  // namespace headlight::program
