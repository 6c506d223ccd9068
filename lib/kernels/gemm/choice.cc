#define HEADLIGHT_FAMILY gemm_kernels
#define HEADLIGHT_TYPE GemmKernels
#include "kernels/choose_isa.h"
