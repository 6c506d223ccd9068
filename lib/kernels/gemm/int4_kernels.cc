// Compiled once per instruction set, and once more with AVX512-VNNI, AVX-VNNI, AMX-INT8, DotProd and I8MM: products
// whose B is int4.
#include "kernels/gemm/amx_int4-inl.h"
#include "kernels/gemm/kernels.h"

namespace headlight::HEADLIGHT_TARGET {

extern const kernels::GemmKernels gemm_int4_kernels;
constinit const kernels::GemmKernels gemm_int4_kernels = int4_table();

}  // namespace headlight::HEADLIGHT_TARGET
