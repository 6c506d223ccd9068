// The words that Philox (simd/philox-inl.h) draws with, four for each of kLanes counters. An instruction set says in
// its folder how it holds one word of each counter, as `Words`, and computes with them; it shares split_words-inl.h or
// whole_words-inl.h with others:
//
//   all_words(w)                  the word w for each counter
//   counter_words(n)              n … n + kLanes − 1, in the order that in_order() wants
//   mul_wide(words, by)           the 64-bit products, in two halves
//   xor_words(a, b, w)            a ⊕ b ⊕ w
//   in_order(words, ordered)      the words of counter after counter, four of each, in vectors of kLanes
//   keep_where_at_least(v, t, x)  x where the unsigned lane of v ≥ t, else +0
#pragma once

#include "simd/vector_library-inl.h"

namespace headlight::HEADLIGHT_TARGET {

template <class Words>
struct WideProduct {
  Words high;
  Words low;
};

}  // namespace headlight::HEADLIGHT_TARGET
