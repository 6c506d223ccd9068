// Philox's words where a product of 32-bit lanes takes the even ones and fills 64 bits, as on x86: two vectors with a
// word in the lower half of each 64 bits. Products leave theirs there, so that no round moves a word between lanes.
// What an instruction set gives, of its own vectors of integers:
//
//   mul_even(a, b)                   the 64-bit products of the even lanes
//   upper_halves(a)                  of each 64 bits the upper half, in the lower one
//   xor_three(a, b, c)               a ⊕ b ⊕ c
//   even_lanes(a, b)                 a's even lanes, each followed by b's
//   lower_pairs(a, b), upper_pairs   in each 128 bits a's lower or upper 64, followed by b's
#pragma once

#include <cstdint>

#include "simd/isa/philox_words-inl.h"

namespace headlight::HEADLIGHT_TARGET {

using NativeWords = decltype(to_native_int(IntVec()));

// Of each 64 bits nobody reads the upper half.
struct Words {
  NativeWords first;   // of the first kLanes / 2 counters, as in_order() wants them
  NativeWords second;  // of the others
};

// The counter of each 64 bits. in_order() gives the even ones in one vector and the odd ones in the next, each with its
// four words: the even ones count from 0 on, the odd ones from kLanes / 4 on. As the bits of floats, for they are
// loaded as such.
struct CounterLanes {
  float bits[16];
};
consteval CounterLanes counter_lanes() {
  CounterLanes lanes{};
  for (int n = 0; n < kLanes / 2; ++n) {
    lanes.bits[2 * n] = __builtin_bit_cast(float, n % 2 * (kLanes / 4) + n / 2);
  }
  return lanes;
}
alignas(64) inline constexpr CounterLanes kCounterLanes = counter_lanes();

HEADLIGHT_INLINE NativeWords broadcast_word(std::uint32_t word) {
  return to_native_int(broadcast_int(static_cast<std::int32_t>(word)));
}
HEADLIGHT_INLINE Words all_words(std::uint32_t word) { return {broadcast_word(word), broadcast_word(word)}; }
HEADLIGHT_INLINE Words counter_words(std::uint32_t first) {
  const IntVec counters = add_int(broadcast_int(static_cast<std::int32_t>(first)), as_int(load(kCounterLanes.bits)));
  return {to_native_int(counters), to_native_int(add_int(counters, broadcast_int(kLanes / 2)))};
}

HEADLIGHT_INLINE WideProduct<Words> mul_wide(const Words& words, std::uint32_t by) {
  const NativeWords factor = broadcast_word(by);
  const Words products = {mul_even(words.first, factor), mul_even(words.second, factor)};
  return {{upper_halves(products.first), upper_halves(products.second)}, products};
}

HEADLIGHT_INLINE Words xor_words(const Words& a, const Words& b, std::uint32_t word) {
  const NativeWords all = broadcast_word(word);
  return {xor_three(a.first, b.first, all), xor_three(a.second, b.second, all)};
}

HEADLIGHT_INLINE void in_order(const Words (&words)[4], IntVec (&ordered)[4]) {
  const auto order = [&](NativeWords Words::*half, IntVec* to) {
    const NativeWords lower = even_lanes(words[0].*half, words[1].*half);
    const NativeWords upper = even_lanes(words[2].*half, words[3].*half);
    to[0] = from_native_int(lower_pairs(lower, upper));
    to[1] = from_native_int(upper_pairs(lower, upper));
  };
  order(&Words::first, ordered);
  order(&Words::second, ordered + 2);
}

}  // namespace headlight::HEADLIGHT_TARGET
