// What storing a number in 16 bits leaves of it, by arithmetic on its value.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace headlight::reference {

// The bfloat16 number next to x, of two equally near ones the even: 8 significant bits, exponents of float32. What
// would round to 2¹²⁸ is infinite.
[[nodiscard]] inline double rounded_to_bfloat16(double x) {
  if (x == 0 || !std::isfinite(x)) return x;
  const double step = std::ldexp(1.0, std::max(std::ilogb(x), -126) - 7);
  const double rounded = std::nearbyint(x / step) * step;
  return std::abs(rounded) < 0x1p128 ? rounded : std::copysign(std::numeric_limits<double>::infinity(), x);
}

// The same for binary16: 11 significant bits, exponents from −14 on, and infinity in the place of 2¹⁶.
[[nodiscard]] inline double rounded_to_float16(double x) {
  if (x == 0 || !std::isfinite(x)) return x;
  const double step = std::ldexp(1.0, std::max(std::ilogb(x), -14) - 10);
  const double rounded = std::nearbyint(x / step) * step;
  return std::abs(rounded) < 0x1p16 ? rounded : std::copysign(std::numeric_limits<double>::infinity(), x);
}

}  // namespace headlight::reference
