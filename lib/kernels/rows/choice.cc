#define HEADLIGHT_FAMILY row_kernels
#define HEADLIGHT_TYPE RowKernels
#include "kernels/choose_isa.h"
