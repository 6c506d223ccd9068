// What compilers are told of registers (kernels/tile-inl.h).
#pragma once

#include <cstdint>

#include "simd/target-inl.h"
#include "simd/vector_library-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// A sum stays in its register, and products are done in the order in which they are written.
HEADLIGHT_INLINE void keep_in_register(Vec& sum) {
  auto native = to_native(sum);
  asm volatile("" : "+v"(native));
  sum = from_native(native);
}

// The address, known only once v has been loaded. A barrier for all memory would have g++ load the tile's own pointers
// anew in each iteration.
HEADLIGHT_INLINE std::intptr_t behind_load(std::intptr_t address, Vec v) {
  asm volatile("" : "+r"(address) : "v"(to_native(v)));
  return address;
}

}  // namespace headlight::HEADLIGHT_TARGET
