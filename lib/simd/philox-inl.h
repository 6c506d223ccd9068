// Philox4x32-10 (runtime/philox.h) for kLanes counters at once, and the one use that kernels have for it: dropout.
#pragma once

#include <cstdint>

#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {

HEADLIGHT_INLINE IntVec broadcast_word(std::uint32_t word) { return broadcast_int(static_cast<std::int32_t>(word)); }

// The words of the counters in the lanes of c, under one key.
HEADLIGHT_INLINE void philox4x32(IntVec (&c)[4], std::uint32_t key_low, std::uint32_t key_high) {
  constexpr std::uint32_t kM0 = 0xD2511F53u, kM1 = 0xCD9E8D57u;
  constexpr std::uint32_t kW0 = 0x9E3779B9u, kW1 = 0xBB67AE85u;
#pragma GCC unroll 10
  for (std::uint32_t round = 0; round < 10; ++round) {
    const WideProduct product0 = mul_wide(c[0], kM0);
    const WideProduct product1 = mul_wide(c[2], kM1);
    c[0] = xor_int(product1.high, c[1], broadcast_word(key_low + round * kW0));
    c[2] = xor_int(product0.high, c[3], broadcast_word(key_high + round * kW1));
    c[1] = product1.low;
    c[3] = product0.low;
  }
}

// One row of dropout: everything of the counter but its first word.
struct DropoutRow {
  std::uint32_t key_low;
  std::uint32_t key_high;
  std::uint32_t row;
  std::uint32_t plane;
  std::uint32_t stream;
};

// Which counter a lane computes, so that interleave_words leaves consecutive ones side by side: lane 4 b + k the one of
// block b of the k-th vector. As the bits of floats, for they are loaded as such.
struct PhiloxLanes {
  float bits[16];
};
consteval PhiloxLanes philox_lanes() {
  PhiloxLanes lanes{};
  for (int lane = 0; lane < kLanes; ++lane) {
    lanes.bits[lane] = __builtin_bit_cast(float, lane % 4 * (kLanes / 4) + lane / 4);
  }
  return lanes;
}
alignas(64) inline constexpr PhiloxLanes kPhiloxLanes = philox_lanes();

// The words of the row's elements 4·group … 4·group + 4·kLanes − 1: words[k] those of elements 4·group + k·kLanes …
HEADLIGHT_INLINE void dropout_words(const DropoutRow& row, std::uint32_t group, IntVec (&words)[4]) {
  words[0] = add_int(broadcast_word(group), as_int(load(kPhiloxLanes.bits)));
  words[1] = broadcast_word(row.row);
  words[2] = broadcast_word(row.plane);
  words[3] = broadcast_word(row.stream);
  philox4x32(words, row.key_low, row.key_high);
  interleave_words(words);
}

}  // namespace headlight::HEADLIGHT_TARGET
