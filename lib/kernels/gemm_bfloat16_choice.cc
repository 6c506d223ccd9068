#define HEADLIGHT_FAMILY gemm_bfloat16_kernels
#define HEADLIGHT_TYPE GemmKernels
#define HEADLIGHT_FEATURES HEADLIGHT_FOR_EACH_BFLOAT16_FEATURE
#include "kernels/choose_isa.h"
