// The tile shapes of attention, by the number of vector registers.
#pragma once

#include <cstdint>

#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// Scores: rows × 2 vectors of keys. Two pipes of latency 4 want at least 8 sums in flight; 12 × 2 sums, 2 vectors of
// keys and a broadcast are 27 of 32 registers, 6 × 2 are 15 of 16.
// Values: rows × vectors of columns. 6 × 4 sums read 10 operands for 24 products (two loads a cycle feed 20); in 16
// registers 6 × 2 it must be.
#if defined(__AVX512F__) || defined(__aarch64__)
inline constexpr int kScoreRows = 12;
inline constexpr int kValueRows = 6;
inline constexpr int kValueVectors = 4;
#else
inline constexpr int kScoreRows = 6;
inline constexpr int kValueRows = 6;
inline constexpr int kValueVectors = 2;
#endif
inline constexpr int kScoreVectors = 2;
inline constexpr int kKeyPanel = kScoreVectors * kLanes;
inline constexpr int kValuePanel = kValueVectors * kLanes;

// Rows of a tile rounded up to whole vectors, for numbers that there is one of for each row.
inline constexpr int kRowSlots = (kScoreRows + kLanes - 1) / kLanes * kLanes;

// Keys and values are read from memory that far ahead. (A prefetch past the end of memory does nothing.)
inline constexpr std::int64_t kPrefetchRows = 16;
inline constexpr std::int64_t kFloatsOfLine = 16;

constexpr std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
constexpr std::int64_t larger(std::int64_t a, std::int64_t b) { return a > b ? a : b; }
constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

HEADLIGHT_INLINE Vec load_lanes(const float* from, int count) {
  return count == kLanes ? load(from) : load_partial(from, count);
}
HEADLIGHT_INLINE void store_lanes(Vec v, float* to, int count) {
  if (count == kLanes) {
    store(v, to);
  } else {
    store_partial(v, to, count);
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
