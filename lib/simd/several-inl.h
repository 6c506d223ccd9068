// Some vectors side by side: each operation is done on all of them before the next one, so that functions that are one
// long chain of operations keep the units busy. A vector has the bits that it has alone.
#pragma once

#include "simd/integers.h"
#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {

template <int kCount>
struct Several {
  Vec vectors[kCount];
};

// How many vectors an operand has; 0: one, for all of the others'.
template <class X>
inline constexpr int kSeveral = 0;
template <int kCount>
inline constexpr int kSeveral<Several<kCount>> = kCount;

HEADLIGHT_INLINE Vec vector_of(Vec all, int) { return all; }
template <int kCount>
HEADLIGHT_INLINE Vec vector_of(const Several<kCount>& several, int number) {
  return several.vectors[number];
}

// function(x…) of each vector; of operands that are one, function(x…).
template <class Function, class... X>
HEADLIGHT_INLINE auto each(Function function, const X&... x) {
  constexpr int kCount = (0 | ... | kSeveral<X>);
  if constexpr (kCount == 0) {
    return function(x...);
  } else {
    Several<kCount> made;
#pragma GCC unroll 8
    for (int v = 0; v < kCount; ++v) made.vectors[v] = function(vector_of(x, v)...);
    return made;
  }
}

// NAME(x…) where one operand is several vectors at least.
#define HEADLIGHT_OF_SEVERAL(NAME)                                                  \
  template <class... X>                                                             \
  HEADLIGHT_INLINE auto NAME(const X&... x) requires((0 | ... | kSeveral<X>) > 0) { \
    return each(                                                                    \
        [](auto... v) __attribute__((always_inline)) { return NAME(v...); }, x...); \
  }
HEADLIGHT_OF_SEVERAL(add)
HEADLIGHT_OF_SEVERAL(sub)
HEADLIGHT_OF_SEVERAL(mul)
HEADLIGHT_OF_SEVERAL(div)
HEADLIGHT_OF_SEVERAL(fma)
HEADLIGHT_OF_SEVERAL(fnma)
HEADLIGHT_OF_SEVERAL(round)
HEADLIGHT_OF_SEVERAL(scale_by_power_of_two)
#undef HEADLIGHT_OF_SEVERAL

}  // namespace headlight::HEADLIGHT_TARGET
