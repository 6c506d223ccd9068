#define HEADLIGHT_FAMILY gemm_bfloat16_kernels
#define HEADLIGHT_TYPE GemmKernels
#define HEADLIGHT_WITH_FEATURES
#include "kernels/choose_isa.h"
