// Tiles of C in the tile registers of AMX (kernels/tile_registers-inl.h).
//
// Four hold sums, 32 rows by 32 columns; two hold A and two B. An iteration over K multiplies sixteen words of it: 32
// numbers of bfloat16, or 64 of int8. Its tile of A is so many words of sixteen rows, as rounded rows hold them, and
// its tile of B sixteen words of K of sixteen columns, as panels hold them: both are loaded as they lie.
//
// There is a load for each product of tiles. A load from the first-level cache is shorter than the product, one from
// the second or third longer: amx_block-inl.h says what lies where. A passes by with a hint not to keep it.
#pragma once

#include <cstdint>

#include "kernels/gemm/tile-inl.h"
#include "kernels/tile_registers-inl.h"
#include "simd/integers.h"
#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {

template <class B, class FinishOfSums>
struct AmxTile;

// Compilers have these intrinsics with the flags of AMX alone.
#if defined(HEADLIGHT_AMX_PRODUCT)

// What is fetched into the second-level cache while tiles multiply, some of it in each iteration. Of B so many rows of
// words, of one vector or two; of C so many rows of 128 bytes.
struct AmxAhead {
  const float* left;
  const float* right;
  std::int64_t b_stride;
  std::int64_t b_rows;
  const char* c;
  std::int64_t c_bytes;  // between rows
  std::int64_t c_rows;

  // In as many iterations as there are, or in the first of them.
  HEADLIGHT_INLINE void fetch(std::int64_t b_rows_at_once, std::int64_t c_rows_at_once) {
    for (std::int64_t i = smaller(b_rows_at_once, b_rows); i > 0; --i, --b_rows) {
      __builtin_prefetch(left, 0, 2);
      __builtin_prefetch(right, 0, 2);
      left += b_stride;
      right += b_stride;
    }
    for (std::int64_t i = smaller(c_rows_at_once, c_rows); i > 0; --i) {
      __builtin_prefetch(c, 0, 2);
      __builtin_prefetch(c + 64, 0, 2);
      if (--c_rows > 0) c += c_bytes;
    }
  }
};

// Of numbers whose products are summed in tile registers, what a way through a block of C must know. `FinishOfSums`
// makes floats of their sums, as that of a RegisterTile (tile-inl.h) does.
template <class B, class FinishOfSums>
struct AmxTile {
  using Registers = AmxRegisters;
  using Finish = FinishOfSums;
  static constexpr int kMostRows = 2 * kAmxRows;
  static constexpr int kVectors = 2;

  B b;
};

#endif

}  // namespace headlight::HEADLIGHT_TARGET
