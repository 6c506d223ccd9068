// Compiled once per instruction set: products whose B is float16.
#include "kernels/gemm/block-inl.h"
#include "kernels/gemm/float16-inl.h"
#include "kernels/gemm/kernels.h"

namespace headlight::HEADLIGHT_TARGET {

extern const GemmKernels gemm_float16_kernels;
constinit const GemmKernels gemm_float16_kernels = gemm_table<Float16>(0, 1);

}  // namespace headlight::HEADLIGHT_TARGET
