// The words that Philox (simd/philox-inl.h) multiplies. What an instruction set computes with them in a way of its own
// is in its folder:
//
//   mul_wide(a, by)               the 64-bit products of unsigned lanes, in two halves
//   xor_int(a, b, c)              a ⊕ b ⊕ c
//   interleave_words(words)       in each block of four lanes the 4 × 4 transpose
//   keep_where_at_least(w, t, v)  v where the unsigned word w ≥ t, else +0
#pragma once

#include "simd/vector_library-inl.h"

namespace headlight::HEADLIGHT_TARGET {

struct WideProduct {
  IntVec high;
  IntVec low;
};

}  // namespace headlight::HEADLIGHT_TARGET
