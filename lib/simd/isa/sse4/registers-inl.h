// What compilers are told of registers (kernels/tile-inl.h).
#pragma once

#include <cstdint>

#include "simd/target-inl.h"
#include "simd/vector_library-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// A sum stays in its register, and products are done in the order in which they are written.
HEADLIGHT_INLINE void keep_in_register(Vec& sum) {
  auto native = to_native(sum);
  asm volatile("" : "+x"(native));
  sum = from_native(native);
}

// A barrier for all memory: to wait for v alone, as elsewhere, is more code here, and no faster.
HEADLIGHT_INLINE std::intptr_t behind_load(std::intptr_t address, Vec) {
  asm volatile("" ::: "memory");
  return address;
}

}  // namespace headlight::HEADLIGHT_TARGET
