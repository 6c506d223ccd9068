// Columns [column, column + columns) of B as panels of narrow numbers, which are those of an instruction set's
// features, too: one function of each set.
#pragma once

#include <cstdint>

#include "kernels/operand.h"

namespace headlight::HEADLIGHT_SET {

// One block of K.
void pack_bfloat16_panel(const kernels::Operand& b, std::int64_t first, std::int64_t depth, std::int64_t column,
                         std::int64_t columns, float* panel) noexcept;
// All blocks, of `depth_block` rows each, with what lies behind the panels: see GemmKernels::pack_columns().
void pack_int8_columns(const kernels::Operand& b, std::int64_t b_column, std::int64_t depth, std::int64_t column,
                       std::int64_t columns, const kernels::Operand& panels, float* packed, std::int64_t depth_block,
                       bool (*is_cancelled)() noexcept) noexcept;
void pack_int4_columns(const kernels::Operand& b, std::int64_t b_column, std::int64_t depth, std::int64_t column,
                       std::int64_t columns, const kernels::Operand& panels, float* packed, std::int64_t depth_block,
                       bool (*is_cancelled)() noexcept) noexcept;

}  // namespace headlight::HEADLIGHT_SET
