// Compiled once per instruction set, and once more with AVX512-VNNI, AVX-VNNI, DotProd and I8MM: products whose B is
// int4.
#include "kernels/gemm/int4-inl.h"
#include "kernels/gemm/kernels.h"
#include "kernels/gemm/table-inl.h"

namespace headlight::HEADLIGHT_TARGET {

extern const kernels::GemmKernels gemm_int4_kernels;
constinit const kernels::GemmKernels gemm_int4_kernels = gemm_table<Int4>(0, kInt8WordsOfA == 1 ? 3 : 1);

}  // namespace headlight::HEADLIGHT_TARGET
