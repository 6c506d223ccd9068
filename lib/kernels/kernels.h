// The kernels of one instruction set, each family a table of plain functions. A program links the families that it
// calls: a call of attention() brings no matrix products along.
#pragma once

#include "headlight/engine.h"
#include "kernels/attention/kernels.h"
#include "kernels/attention/merge_kernels.h"
#include "kernels/attention_backward/kernels.h"
#include "kernels/gemm/kernels.h"
#include "kernels/rows/convert_kernels.h"
#include "kernels/rows/gradient_kernels.h"
#include "kernels/rows/head_kernels.h"
#include "kernels/rows/kernels.h"
#include "kernels/rows/optimizer_kernels.h"
#include "runtime/inner_api.h"

namespace headlight::kernels {

// Those of an instruction set that available_isas() lists.
[[nodiscard]] HEADLIGHT_INNER_API const GemmKernels& gemm_kernels(Isa isa) noexcept;
// The same with a B of bfloat16 in panels, which pack_panel() makes of one of float32. `features`: of an engine with
// that instruction set.
[[nodiscard]] const GemmKernels& gemm_bfloat16_kernels(Isa isa, InstructionFeatures features) noexcept;
// Likewise, of float16, which no feature multiplies.
[[nodiscard]] const GemmKernels& gemm_float16_kernels(Isa isa) noexcept;
// Likewise, of int8 and of int4.
[[nodiscard]] const GemmKernels& gemm_int8_kernels(Isa isa, InstructionFeatures features) noexcept;
[[nodiscard]] const GemmKernels& gemm_int4_kernels(Isa isa, InstructionFeatures features) noexcept;
[[nodiscard]] const AttentionKernels& attention_kernels(Isa isa) noexcept;
[[nodiscard]] const TypedAttentionKernels& typed_attention_kernels(Isa isa) noexcept;
// Null without a feature that multiplies bfloat16.
[[nodiscard]] const AttentionKernels* pair_attention_kernels(InstructionFeatures features) noexcept;
[[nodiscard]] const AttentionBackwardKernels& attention_backward_kernels(Isa isa) noexcept;
[[nodiscard]] const BackwardRowKernels& typed_backward_row_kernels(Isa isa) noexcept;
// As pair_attention_kernels().
[[nodiscard]] const AttentionBackwardKernels* pair_backward_kernels(InstructionFeatures features) noexcept;
[[nodiscard]] const MergeKernels& merge_kernels(Isa isa) noexcept;
[[nodiscard]] const ConvertKernels& convert_kernels(Isa isa, InstructionFeatures features) noexcept;
[[nodiscard]] HEADLIGHT_INNER_API const RowKernels& row_kernels(Isa isa) noexcept;
// As pair_attention_kernels().
[[nodiscard]] const HeadKernels* pair_head_kernels(InstructionFeatures features) noexcept;
[[nodiscard]] const OptimizerKernels& optimizer_kernels(Isa isa) noexcept;
[[nodiscard]] const RowGradientKernels& row_gradient_kernels(Isa isa) noexcept;

}  // namespace headlight::kernels
