// Bytes as truth values, where load_u8() is what an instruction set has.
#pragma once

#include <cstdint>

#include "simd/target-inl.h"
#include "simd/vector_library-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// A byte in the place of the exponent: no subnormal number and no NaN.
HEADLIGHT_INLINE Mask bytes_not_zero(const std::uint8_t* from) {
  return mask_not(equal(as_float(shift_left<23>(load_u8(from))), zero()));
}

}  // namespace headlight::HEADLIGHT_TARGET
