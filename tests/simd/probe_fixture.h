// The probe of the instruction set that this test program is for, and inputs that find trouble.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/engine.h"
#include "simd/probe_of_isa.h"
#include "support/random.h"

namespace headlight::test {

[[nodiscard]] inline bool machine_has_it() {
  const std::vector<Isa> isas = available_isas();
  return std::find(isas.begin(), isas.end(), probed_isa()) != isas.end();
}

// Skips on a machine that lacks the instruction set.
class OnIsa : public testing::Test {
 protected:
  void SetUp() override {
    if (!machine_has_it()) GTEST_SKIP() << "this machine has no " << probe().target;
  }
};

[[nodiscard]] inline float from_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }
[[nodiscard]] inline std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }
// The promise about NaN is that it is one; sign and payload are free.
[[nodiscard]] inline bool same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || bits_of(a) == bits_of(b);
}

// Limits, ties, both zeros, subnormal numbers, infinities, and NaN whose payload bits a shift could carry away.
[[nodiscard]] inline std::vector<float> special_values() {
  std::vector<float> values;
  for (const std::uint32_t magnitude :
       {0x00000000u, 0x00000001u, 0x00000002u, 0x007fffffu, 0x00800000u, 0x00800001u, 0x33800000u, 0x3effffffu,
        0x3f000000u, 0x3f000001u, 0x3f7fffffu, 0x3f800000u, 0x3f800001u, 0x3fc00000u, 0x40000000u, 0x40200000u,
        0x40600000u, 0x42b17218u, 0x42cff1b5u, 0x43000000u, 0x43160000u, 0x4a7fffffu, 0x4a800001u, 0x4affffffu,
        0x4b000000u, 0x4b000001u, 0x4b7fffffu, 0x4effffffu, 0x4f000000u, 0x60000000u, 0x7f7fffffu, 0x7f800000u,
        0x7f800001u, 0x7fbfffffu, 0x7fc00000u, 0x7fc00001u, 0x7fc000ffu, 0x7fffffffu}) {
    values.push_back(from_bits(magnitude));
    values.push_back(from_bits(magnitude | 0x80000000u));
  }
  return values;
}

[[nodiscard]] inline float random_bits(Random& random) {
  return from_bits(static_cast<std::uint32_t>(random.next() >> 32));
}

// Filled up with zeros to whole vectors of any length.
inline void fill_up(std::vector<float>& values) { values.resize((values.size() + 15) / 16 * 16); }

}  // namespace headlight::test
