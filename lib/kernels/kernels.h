// The kernels of one instruction set, as a table of plain functions.
#pragma once

#include "headlight/engine.h"
#include "kernels/attention_kernels.h"
#include "kernels/gemm_kernels.h"
#include "kernels/row_kernels.h"

namespace headlight::kernels {

struct Table {
  const GemmKernels* gemm;
  const AttentionKernels* attention;
  const RowKernels* rows;
};

// The table of that instruction set. Only for sets that available_isas() lists.
[[nodiscard]] const Table& table(Isa isa) noexcept;

}  // namespace headlight::kernels
