// Compiled once per instruction set, and once more with AVX512-BF16, AMX-BF16 and Arm's BF16: products whose B is
// bfloat16.
#include "kernels/gemm_bfloat16-inl.h"
#include "kernels/gemm_block-inl.h"
#include "kernels/gemm_kernels.h"

namespace headlight::HEADLIGHT_TARGET {

extern const GemmKernels gemm_bfloat16_kernels;
constinit const GemmKernels gemm_bfloat16_kernels = gemm_table<BFloat16>(0, BFloat16::kProducts);

}  // namespace headlight::HEADLIGHT_TARGET
