// Compiled once per instruction set, and once more with AVX512-BF16: products whose B is bfloat16.
#include "kernels/gemm_bfloat16-inl.h"
#include "kernels/gemm_block-inl.h"
#include "kernels/gemm_kernels.h"

namespace headlight::HEADLIGHT_TARGET {

extern const GemmKernels gemm_bfloat16_kernels;
const GemmKernels gemm_bfloat16_kernels = {
    kLanes,          kGemmTileRows,        kGemmPanelWidth, 0, scratch_floats<BFloat16>,
    block<BFloat16>, BFloat16::pack_panel, depth_block};

}  // namespace headlight::HEADLIGHT_TARGET
