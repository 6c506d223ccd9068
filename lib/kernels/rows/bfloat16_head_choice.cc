#define HEADLIGHT_FAMILY pair_head_kernels
#define HEADLIGHT_TYPE HeadKernels
#include "kernels/choose_bfloat16.h"
