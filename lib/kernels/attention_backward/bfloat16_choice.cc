#define HEADLIGHT_FAMILY pair_backward_kernels
#define HEADLIGHT_TYPE AttentionBackwardKernels
#include "kernels/choose_bfloat16.h"
