// A as tiles read it where that is not as it lies: rounded to narrower numbers, several of them in a word of four
// bytes, row by row.
#pragma once

#include <cstdint>

#include "kernels/gemm/kernels.h"
#include "kernels/gemm/pack-inl.h"
#include "kernels/numbers-inl.h"
#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// Asks for the row that is read next while one is rounded, a vector of numbers at a time: the hardware stops where a
// row, or a page of it, ends.
template <class Numbers>
HEADLIGHT_INLINE void ask_for_numbers(const typename Numbers::Storage* next, std::int64_t k) {
  __builtin_prefetch(next + k, 0, 2);
}

// Numbers k of some rows of a transposed A, one row in each lane; 0 beyond the last.
template <class Numbers>
struct TurnedRows {
  const typename Numbers::Storage* from;
  std::int64_t stride;
  std::int64_t depth;
  int rows;

  HEADLIGHT_INLINE Vec operator()(std::int64_t k) const {
    if (k >= depth) return zero();
    ask_for_row(from, stride, k, depth, 1);
    return rows == kLanes ? Numbers::load(from + k * stride) : Numbers::load_partial(from + k * stride, rows);
  }
};

// Words first, first + 1 … of a transposed A, a vector of them: lane r of word(w) is word w of row r. They are turned
// over to rows that are so far apart; what lies behind `words` is 0. The square goes through memory: `word` is long,
// and written out for each row of a square in registers it would be a fourth of a product's code.
template <class Word>
HEADLIGHT_INLINE void store_turned_square(std::int64_t first, std::int64_t words, int rows, float* to,
                                          std::int64_t stride, Word word) {
  alignas(64) float square[kLanes * kLanes];
#pragma GCC unroll 1
  for (int i = 0; i < kLanes; ++i) store(first + i < words ? word(first + i) : zero(), square + i * kLanes);
  transpose_strip(square, kLanes, kLanes, rows, to + first, stride);
}

// All words of such rows.
template <class Word>
HEADLIGHT_INLINE void store_turned_words(std::int64_t words, int rows, float* to, std::int64_t stride, Word word) {
  for (std::int64_t first = 0; first < words; first += kLanes) {
    store_turned_square(first, words, rows, to, stride, word);
  }
}

// All rows of a transposed A: rows(numbers, first) for as many at a time as a vector has lanes.
template <class Numbers, class Rows>
HEADLIGHT_INLINE void walk_turned_rows(const kernels::GemmBlock& block, Rows rows) {
  const auto* a = static_cast<const typename Numbers::Storage*>(block.a);
  for (std::int64_t first = 0; first < block.rows; first += kLanes) {
    const int count = static_cast<int>(smaller(kLanes, block.rows - first));
    rows(TurnedRows<Numbers>{a + first, block.a_depth_stride, block.depth, count}, first);
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
