#define HEADLIGHT_FAMILY row_gradient_kernels
#define HEADLIGHT_TYPE RowGradientKernels
#include "kernels/choose_isa.h"
