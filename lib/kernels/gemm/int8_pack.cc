// Compiled once per instruction set: B of int8 as panels.
#include "kernels/gemm/int8_quantize-inl.h"
#include "kernels/gemm/pack-inl.h"
#include "kernels/gemm/pack.h"
#include "simd/integers.h"
#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {

using kernels::Operand;

namespace {

// The scales of at most kLanes columns from that one on.
HEADLIGHT_INLINE Int8Columns int8_columns(const Operand& b, std::int64_t column, std::int64_t depth, int count,
                                          std::int64_t depth_block, bool (*is_cancelled)() noexcept) noexcept {
  if (b.scales != nullptr) return Int8Columns(given_scales(b, column, count, 0));
  Int8Range range;
  for (std::int64_t first = 0; first < depth && !is_cancelled(); first += depth_block) {
    include_columns(b, first, smaller(depth_block, depth - first), column, count, range);
  }
  return Int8Columns(range);
}

}  // namespace

void pack_int8_columns(const Operand& b, std::int64_t b_column, std::int64_t depth, std::int64_t column,
                       std::int64_t columns, const Operand& panels, float* packed, std::int64_t depth_block,
                       bool (*is_cancelled)() noexcept) noexcept {
  const std::int64_t width = round_up(columns, kLanes);
  for (std::int64_t offset = 0; offset < columns; offset += kLanes) {
    const int count = static_cast<int>(smaller(kLanes, columns - offset));
    const Int8Columns all = int8_columns(b, b_column + offset, depth, count, depth_block, is_cancelled);
    float* numbers = packed + (panels.column_scales(depth) - panels.words()) + column + offset;
    store(all.scale.scale, numbers);
    for (std::int64_t first = 0; first < depth && !is_cancelled(); first += depth_block) {
      const std::int64_t rows = smaller(depth_block, depth - first);
      float* const to = packed + panels.panel_at(first, rows, column) + offset;
      Int8Columns of_block = all;
      walk_matrix<4>(b, first, rows, b_column + offset, count,
                     [&](std::int64_t k, std::int64_t, const Vec(&of_word)[4]) {
                       IntVec quantized[4];
#pragma GCC unroll 4
                       for (int i = 0; i < 4; ++i) quantized[i] = of_block.quantized(of_word[i]);
                       store(int8_word(quantized), to + k / 4 * width);
                     });
      numbers += panels.stride;
      store(as_float(of_block.sum), numbers);
    }
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
