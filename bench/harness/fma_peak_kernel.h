#pragma once

#include <cstdint>

namespace headlight {

inline constexpr int kFmaChains = 12;

struct FmaBurst {
  int lanes;
  int chains;
  // `steps` times `chains` independent vector FMAs on the calling thread: 2 · lanes · chains · steps operations.
  void (*run)(std::int64_t steps, float one, float small, float* result) noexcept;
};

}  // namespace headlight
