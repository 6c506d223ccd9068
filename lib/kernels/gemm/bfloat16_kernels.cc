// Compiled once per instruction set, and once more with AVX512-BF16, AMX-BF16 and Arm's BF16: products whose B is
// bfloat16.
#include "kernels/gemm/bfloat16-inl.h"
#include "kernels/gemm/kernels.h"
#include "kernels/gemm/table-inl.h"

namespace headlight::HEADLIGHT_TARGET {

extern const kernels::GemmKernels gemm_bfloat16_kernels;
constinit const kernels::GemmKernels gemm_bfloat16_kernels = gemm_table<BFloat16>(0, BFloat16::kProducts);

}  // namespace headlight::HEADLIGHT_TARGET
