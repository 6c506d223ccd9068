// Philox4x32-10 (runtime/philox.h) for kLanes counters at once, and the one use that kernels have for it: dropout.
#pragma once

#include <cstdint>

#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// The words of the counters c, under one key.
HEADLIGHT_INLINE void philox4x32(Words (&c)[4], std::uint32_t key_low, std::uint32_t key_high) {
  constexpr std::uint32_t kM0 = 0xD2511F53u, kM1 = 0xCD9E8D57u;
  constexpr std::uint32_t kW0 = 0x9E3779B9u, kW1 = 0xBB67AE85u;
#pragma GCC unroll 10
  for (std::uint32_t round = 0; round < 10; ++round) {
    const WideProduct<Words> product0 = mul_wide(c[0], kM0);
    const WideProduct<Words> product1 = mul_wide(c[2], kM1);
    c[0] = xor_words(product1.high, c[1], key_low + round * kW0);
    c[2] = xor_words(product0.high, c[3], key_high + round * kW1);
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

// The words of the row's elements 4·group … 4·group + 4·kLanes − 1: words[k] those of elements 4·group + k·kLanes …
HEADLIGHT_INLINE void dropout_words(const DropoutRow& row, std::uint32_t group, IntVec (&words)[4]) {
  Words counters[4] = {counter_words(group), all_words(row.row), all_words(row.plane), all_words(row.stream)};
  philox4x32(counters, row.key_low, row.key_high);
  in_order(counters, words);
}

}  // namespace headlight::HEADLIGHT_TARGET
