#define HEADLIGHT_FAMILY gemm_int4_kernels
#define HEADLIGHT_TYPE GemmKernels
#define HEADLIGHT_FEATURES HEADLIGHT_FOR_EACH_INT8_FEATURE
#include "kernels/choose_isa.h"
