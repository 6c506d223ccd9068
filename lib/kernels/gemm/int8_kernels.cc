// Compiled once per instruction set, and once more with AVX512-VNNI, AVX-VNNI, AMX-INT8, DotProd and I8MM: products
// whose B is int8.
#include "kernels/gemm/int8-inl.h"
#include "kernels/gemm/kernels.h"
#include "kernels/gemm/table-inl.h"

namespace headlight::HEADLIGHT_TARGET {

extern const kernels::GemmKernels gemm_int8_kernels;
constinit const kernels::GemmKernels gemm_int8_kernels = gemm_table<Int8>(0, Int8::kProducts);

}  // namespace headlight::HEADLIGHT_TARGET
