#define HEADLIGHT_FAMILY typed_attention_kernels
#define HEADLIGHT_TYPE TypedAttentionKernels
#include "kernels/choose_isa.h"
