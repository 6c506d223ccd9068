// What storing numbers in 16 or 8 bits leaves of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

namespace headlight::reference {

// The bfloat16 number next to x, of two equally near ones the even: 8 significant bits, exponents of float32. What
// would round to 2¹²⁸ is infinite.
[[nodiscard]] inline double rounded_to_bfloat16(double x) {
  if (x == 0 || !std::isfinite(x)) return x;
  const double spacing = std::ldexp(1.0, std::max(std::ilogb(x), -126) - 7);
  const double rounded = std::nearbyint(x / spacing) * spacing;
  return std::abs(rounded) < 0x1p128 ? rounded : std::copysign(std::numeric_limits<double>::infinity(), x);
}

// The same for binary16: 11 significant bits, exponents from −14 on, and infinity in the place of 2¹⁶.
[[nodiscard]] inline double rounded_to_float16(double x) {
  if (x == 0 || !std::isfinite(x)) return x;
  const double spacing = std::ldexp(1.0, std::max(std::ilogb(x), -14) - 10);
  const double rounded = std::nearbyint(x / spacing) * spacing;
  return std::abs(rounded) < 0x1p16 ? rounded : std::copysign(std::numeric_limits<double>::infinity(), x);
}

// Some numbers that share a scale: number k is scale · (integers[k] − zero_point).
struct Int8Numbers {
  float scale = 0;
  int zero_point = 0;
  std::vector<int> integers;

  [[nodiscard]] double value(std::size_t k) const {
    return static_cast<double>(scale) * static_cast<double>(integers[k] - zero_point);
  }
};

// As weights are stored: integers of −127 … 127, the greatest magnitude being 127. Every operation in float, as written
// in headlight/gemm.h. What is not finite makes the scale NaN.
[[nodiscard]] inline Int8Numbers symmetric_int8(std::span<const float> numbers) {
  float greatest = 0;
  bool finite = true;
  for (const float x : numbers) {
    greatest = std::max(greatest, std::abs(x));
    finite = finite && std::isfinite(x);
  }
  Int8Numbers made{finite ? std::max(greatest / 127, 0x1p-126f) : std::numeric_limits<float>::quiet_NaN(), 0, {}};
  const float inverse = 1 / made.scale;
  for (const float x : numbers) made.integers.push_back(finite ? static_cast<int>(std::nearbyint(x * inverse)) : 0);
  return made;
}

// As the other operand is: integers of 0 … 255 from the least to the greatest, with 0 among them.
[[nodiscard]] inline Int8Numbers asymmetric_int8(std::span<const float> numbers) {
  float low = 0, high = 0;
  bool finite = true;
  for (const float x : numbers) {
    low = std::min(low, x);
    high = std::max(high, x);
    finite = finite && std::isfinite(x);
  }
  Int8Numbers made;
  made.scale = finite ? std::max(high / 255 - low / 255, 0x1p-126f) : std::numeric_limits<float>::quiet_NaN();
  const float inverse = 1 / made.scale;
  if (finite) made.zero_point = static_cast<int>(std::nearbyint(-low * inverse));
  for (const float x : numbers) {
    // The sum is exact in double, so that it is rounded once, to the integer.
    const double exact = static_cast<double>(x * inverse) + made.zero_point;
    made.integers.push_back(finite ? static_cast<int>(std::min(std::nearbyint(exact), 255.0)) : 0);
  }
  return made;
}

// Numbers of int4 that share a scale, and those of the other operand beside them.
inline constexpr std::size_t kInt4Group = 32;

// As weights are stored in 4 bits: integers of −7 … 7, a scale that is a bfloat16 number. Likewise in float.
[[nodiscard]] inline Int8Numbers symmetric_int4(std::span<const float> numbers) {
  float greatest = 0;
  bool finite = true;
  for (const float x : numbers) {
    greatest = std::max(greatest, std::abs(x));
    finite = finite && std::isfinite(x);
  }
  Int8Numbers made;
  made.scale = static_cast<float>(rounded_to_bfloat16(static_cast<double>(std::max(greatest / 7, 0x1p-126f))));
  const float inverse = 1 / made.scale;
  for (const float x : numbers) {
    const float rounded = std::nearbyint(x * inverse);
    made.integers.push_back(finite ? static_cast<int>(std::clamp(rounded, -7.0f, 7.0f)) : 0);
  }
  if (!finite) made.scale = std::numeric_limits<float>::quiet_NaN();
  return made;
}

}  // namespace headlight::reference
