// Bytes as floats and as truth values, where load_u8() is what an instruction set has.
#pragma once

#include <cstdint>

#include "simd/target-inl.h"
#include "simd/vector_library-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// The sign is moved to the top, and back.
HEADLIGHT_INLINE Vec load_i8(const std::int8_t* from) {
  return to_float(shift_right<24>(shift_left<24>(load_u8(reinterpret_cast<const std::uint8_t*>(from)))));
}
// A byte in the place of the exponent: no subnormal number and no NaN.
HEADLIGHT_INLINE Mask bytes_not_zero(const std::uint8_t* from) {
  return mask_not(equal(as_float(shift_left<23>(load_u8(from))), zero()));
}

}  // namespace headlight::HEADLIGHT_TARGET
