// Compiled once per instruction set: products whose B is float16.
#include "kernels/gemm/float16-inl.h"
#include "kernels/gemm/kernels.h"
#include "kernels/gemm/table-inl.h"

namespace headlight::HEADLIGHT_TARGET {

extern const kernels::GemmKernels gemm_float16_kernels;
constinit const kernels::GemmKernels gemm_float16_kernels = gemm_table<Float16>(0, 1);

}  // namespace headlight::HEADLIGHT_TARGET
