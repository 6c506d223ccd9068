#define HEADLIGHT_FAMILY attention_kernels
#define HEADLIGHT_TYPE AttentionKernels
#include "kernels/choose_isa.h"
