#pragma once

#include <cstdint>

namespace headlight {

inline constexpr int kFmaChains = 12;

struct FmaBurst {
  int products;  // of a vector, or of tiles
  int chains;
  std::int64_t steps;  // some 25 µs
  // `steps` times `chains` independent vectors of multiply-adds on the calling thread: 2 · products · chains · steps
  // operations.
  void (*run)(std::int64_t steps, float one, float small, float* result) noexcept;
};

}  // namespace headlight
