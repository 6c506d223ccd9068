#define HEADLIGHT_FAMILY pair_attention_kernels
#define HEADLIGHT_TYPE AttentionKernels
#include "kernels/choose_bfloat16.h"
