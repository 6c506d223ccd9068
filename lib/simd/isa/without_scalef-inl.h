// v · 2ⁿ, where no instruction computes it.
#pragma once

#include "simd/target-inl.h"
#include "simd/vector_library-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// In two halves, for 2ⁿ itself is no float at either end; the first product is exact.
HEADLIGHT_INLINE Vec scale_by_power_of_two(Vec v, Vec n) {
  const Vec offset = broadcast(kRoundingOffset);
  const IntVec bias = broadcast_int(127);
  const IntVec exponent = sub_int(as_int(add(n, offset)), as_int(offset));
  const IntVec half = shift_right<1>(exponent);
  const Vec first = as_float(shift_left<23>(add_int(half, bias)));
  const Vec second = as_float(shift_left<23>(add_int(sub_int(exponent, half), bias)));
  return mul(mul(v, first), second);
}

// Masked operations are declared alone: those who call them ask kValues.has_scalef.
Mask not_less_equal(Vec a, Vec b);
Vec mul_where(Mask chosen, Vec a, Vec b);
Vec sub_where(Mask chosen, Vec a, Vec b);
Vec scale_by_power_of_two_where(Mask chosen, Vec v, Vec n);

}  // namespace headlight::HEADLIGHT_TARGET
