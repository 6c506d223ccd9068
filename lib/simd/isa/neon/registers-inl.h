// What compilers are told of registers (kernels/tile-inl.h).
#pragma once

#include <cstdint>

#include "simd/target-inl.h"
#include "simd/vector_library-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// It may go where the compiler will.
HEADLIGHT_INLINE void keep_in_register(Vec&) {}

// The address, known only once v has been loaded. A barrier for all memory would have g++ load the tile's own pointers
// anew in each iteration.
HEADLIGHT_INLINE std::intptr_t behind_load(std::intptr_t address, Vec v) {
  asm volatile("" : "+r"(address) : "w"(to_native(v)));
  return address;
}

}  // namespace headlight::HEADLIGHT_TARGET
