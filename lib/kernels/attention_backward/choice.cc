#define HEADLIGHT_FAMILY attention_backward_kernels
#define HEADLIGHT_TYPE AttentionBackwardKernels
#include "kernels/choose_isa.h"
