// Compiled once per instruction set: B of bfloat16 as panels.
#include "kernels/gemm/bfloat16_quantize-inl.h"
#include "kernels/gemm/pack-inl.h"
#include "kernels/gemm/pack.h"
#include "simd/integers.h"
#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {

using kernels::Operand;

void pack_bfloat16_panel(const Operand& b, std::int64_t first, std::int64_t depth, std::int64_t column,
                         std::int64_t columns, float* panel) noexcept {
  const std::int64_t width = round_up(columns, kLanes);
  if (b.type == NumberType::bfloat16) {
    walk_rows<2, StoredBFloat16>(b, first, depth, column, columns,
                                 [&](std::int64_t k, std::int64_t offset, const Vec(&rows)[2]) {
                                   store(joined(rows[0], rows[1]), panel + k / 2 * width + offset);
                                 });
    return;
  }
  walk_matrix<2>(b, first, depth, column, columns, [&](std::int64_t k, std::int64_t offset, const Vec(&rows)[2]) {
    store(pairs_of(rows[0], rows[1]), panel + k / 2 * width + offset);
  });
}

}  // namespace headlight::HEADLIGHT_TARGET
