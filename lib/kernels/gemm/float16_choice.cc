#define HEADLIGHT_FAMILY gemm_float16_kernels
#define HEADLIGHT_TYPE GemmKernels
#include "kernels/choose_isa.h"
