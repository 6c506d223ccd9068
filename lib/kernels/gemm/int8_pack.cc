// Compiled once per instruction set: B of int8 as panels.
#include "kernels/gemm/int8_quantize-inl.h"
#include "kernels/gemm/pack-inl.h"
#include "kernels/gemm/pack.h"
#include "simd/integers.h"
#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {

using kernels::Operand;

void pack_int8_columns(const Operand& b, std::int64_t depth, std::int64_t column, std::int64_t columns,
                       const Operand& panels, float* packed, std::int64_t depth_block,
                       bool (*is_cancelled)() noexcept) noexcept {
  const std::int64_t width = round_up(columns, kLanes);
  for (std::int64_t offset = 0; offset < columns; offset += kLanes) {
    const std::int64_t at = column + offset;
    const int count = static_cast<int>(smaller(kLanes, columns - offset));
    Int8Range range;
    for (std::int64_t first = 0; first < depth && !is_cancelled(); first += depth_block) {
      include_columns(b, first, smaller(depth_block, depth - first), at, count, range);
    }
    float* numbers = packed + (panels.column_scales(depth) - panels.words()) + at;
    store(Int8Columns(range).scale.scale, numbers);
    for (std::int64_t first = 0; first < depth && !is_cancelled(); first += depth_block) {
      const std::int64_t rows = smaller(depth_block, depth - first);
      float* const to = packed + panels.panel_at(first, rows, column) + offset;
      Int8Columns of_block(range);
      walk_matrix<4>(b, first, rows, at, count, [&](std::int64_t k, std::int64_t, const Vec(&of_word)[4]) {
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
