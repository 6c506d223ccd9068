// What compilers are told of registers (kernels/tile-inl.h).
#pragma once

#include <cstdint>

#include "simd/target-inl.h"
#include "simd/vector_library-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// It may go where the compiler will.
HEADLIGHT_INLINE void keep_in_register(Vec&) {}
HEADLIGHT_INLINE std::intptr_t behind_load(std::intptr_t address, Vec) { return address; }

}  // namespace headlight::HEADLIGHT_TARGET
