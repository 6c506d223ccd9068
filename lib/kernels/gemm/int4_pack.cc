// Compiled once per instruction set: B of int4 as panels.
#include "kernels/gemm/int4_quantize-inl.h"
#include "kernels/gemm/pack-inl.h"
#include "kernels/gemm/pack.h"
#include "simd/integers.h"
#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {

using kernels::Operand;

void pack_int4_columns(const Operand& b, std::int64_t b_column, std::int64_t depth, std::int64_t column,
                       std::int64_t columns, const Operand& panels, float* packed, std::int64_t depth_block,
                       bool (*is_cancelled)() noexcept) noexcept {
  const std::int64_t width = round_up(columns, kLanes);
  auto* const scales = reinterpret_cast<std::uint16_t*>(
      packed + (reinterpret_cast<const float*>(panels.group_scales(depth)) - panels.words()));
  for (std::int64_t first = 0; first < depth && !is_cancelled(); first += depth_block) {
    const std::int64_t count = smaller(depth_block, depth - first);
    float* const panel = packed + panels.panel_at(first, count, column);
    std::uint16_t* const scales_of_block = scales + column * int4_groups(depth) + first / kInt4Group * width;
    walk_matrix<kInt4Group>(
        b, first, count, b_column, columns, [&](std::int64_t k, std::int64_t offset, const Vec(&rows)[kInt4Group]) {
          const int lanes = static_cast<int>(smaller(kLanes, columns - offset));
          const Int4Group group =
              b.scales == nullptr
                  ? Int4Group(rows)
                  : Int4Group(rows, given_scales(b, b_column + offset, lanes, (first + k) / kInt4Group));
          store_bf16(group.scale, scales_of_block + k / kInt4Group * width + offset);
          float* to = panel + k / kInt4OfWord * width + offset;
          for (std::int64_t word = 0; word < smaller(kInt4Group, count - k); word += kInt4OfWord, to += width) {
            store(group.words[word / kInt4OfWord], to);
          }
        });
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
