#define HEADLIGHT_FAMILY optimizer_kernels
#define HEADLIGHT_TYPE OptimizerKernels
#include "kernels/choose_isa.h"
