// What a tile's sums go through behind the products, for tiles of vector registers and of tile registers alike.
#pragma once

#include <cstdint>

#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/kernels.h"
#include "kernels/operand.h"
#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {
namespace {  // of the one file that includes this

// A tile's part of a block of C.
struct GemmPart {
  std::int64_t row;
  std::int64_t rows;
  std::int64_t column;
  std::int64_t columns;
};

[[maybe_unused]] bool is_plain(const kernels::GemmEpilogue& epilogue) noexcept {
  return epilogue.bias == nullptr && epilogue.activation == Activation::none && epilogue.residual == nullptr;
}

// What the epilogue reads, or is the first to touch, comes while the tile multiplies: its rows lie too far apart for
// the hardware to foresee. Inline, or g++ finds a function without effects and leaves its calls out.
template <class Storage>
HEADLIGHT_INLINE void ask_for(const Storage* from, std::int64_t stride, const GemmPart& part) {
  constexpr auto kOfLine = static_cast<std::int64_t>(64 / sizeof(Storage));
  from += part.row * stride + part.column;
  for (std::int64_t row = 0; row < part.rows; ++row, from += stride) {
    for (std::int64_t column = 0; column < part.columns; column += kOfLine) __builtin_prefetch(from + column);
  }
}

HEADLIGHT_INLINE void ask_for_epilogue(const kernels::GemmBlock& block, const GemmPart& part) {
  const kernels::GemmEpilogue& epilogue = block.epilogue;
  if (epilogue.beta != 0.0f && block.c_type == NumberType::float32) {
    ask_for(static_cast<const float*>(block.c), block.c_row_stride, part);
  }
  // Its sums are never there: lines of C come for the epilogue alone.
  if (block.c_type == NumberType::bfloat16) {
    ask_for(static_cast<const std::uint16_t*>(block.c), block.c_row_stride, part);
  }
  if (epilogue.residual != nullptr) ask_for(epilogue.residual, epilogue.residual_row_stride, part);
}

// From sums to C.
[[maybe_unused]] void finish_part(kernels::GemmFinishFunction finish, const kernels::GemmBlock& block,
                                  const GemmPart& part, const float* sums, std::int64_t sums_stride) noexcept {
  kernels::GemmFinish tile{sums,
                           sums_stride,
                           part.rows,
                           part.columns,
                           kernels::numbers_behind(block.c, part.row * block.c_row_stride + part.column, block.c_type),
                           block.c_type,
                           block.c_row_stride,
                           block.epilogue};
  if (block.epilogue.bias != nullptr) tile.epilogue.bias += part.column;
  if (block.epilogue.residual != nullptr) {
    tile.epilogue.residual += part.row * block.epilogue.residual_row_stride + part.column;
  }
  finish(tile);
}

}  // namespace
}  // namespace headlight::HEADLIGHT_TARGET
