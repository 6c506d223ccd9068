#pragma once

#include <cstdint>

namespace headlight {

struct VectorFunction {
  const char* name;
  // y = f(x); `count` a multiple of four vectors.
  void (*run)(const float* x, float* y, std::int64_t count) noexcept;
  int operations;  // harness/element_operations.h
};

inline constexpr int kVectorFunctions = 7;

}  // namespace headlight
