#define HEADLIGHT_FAMILY pair_attention_kernels
#define HEADLIGHT_TYPE PairAttentionKernels
#include "kernels/choose_bfloat16.h"
