#pragma once

#include <cstdint>

namespace headlight {

struct VectorFunction {
  const char* name;
  // y = f(x); `count` a multiple of four vectors.
  void (*run)(const float* x, float* y, std::int64_t count) noexcept;
  // Operations of a vector on the units that also multiply and add, counted in lib/simd/math-inl.h for sets with
  // scalef; loads, stores and integer work not counted.
  int operations;
};

inline constexpr int kVectorFunctions = 6;

}  // namespace headlight
