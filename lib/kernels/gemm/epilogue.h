// From the sums of a tile to C: α, β, bias, activation, residual. One function of each instruction set, which products
// of all types of numbers call, and those of its features, too; and one of AVX512-BF16, which rounds to bfloat16 by an
// instruction and has the same bits.
#pragma once

#include <cstdint>

#include "headlight/number_type.h"
#include "kernels/gemm/kernels.h"

namespace headlight::kernels {

struct GemmFinish {
  const float* sums;  // [rows, columns], whole vectors of them
  std::int64_t sums_stride;
  std::int64_t rows;
  std::int64_t columns;
  void* c;
  NumberType c_type;  // float32 or bfloat16
  std::int64_t c_stride;
  GemmEpilogue epilogue;  // bias and residual of this tile
};
using GemmFinishFunction = void (*)(const GemmFinish& tile) noexcept;

}  // namespace headlight::kernels

namespace headlight::HEADLIGHT_SET {

void gemm_finish(const kernels::GemmFinish& tile) noexcept;

}  // namespace headlight::HEADLIGHT_SET

// What products of this target end with: that of the set or, if one rounds to bfloat16 by an instruction, of a feature.
namespace headlight::HEADLIGHT_EPILOGUE {

void gemm_finish(const kernels::GemmFinish& tile) noexcept;

}  // namespace headlight::HEADLIGHT_EPILOGUE
