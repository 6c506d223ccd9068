#define HEADLIGHT_FAMILY merge_kernels
#define HEADLIGHT_TYPE MergeKernels
#include "kernels/choose_isa.h"
