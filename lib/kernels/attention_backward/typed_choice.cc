#define HEADLIGHT_FAMILY typed_backward_row_kernels
#define HEADLIGHT_TYPE BackwardRowKernels
#include "kernels/choose_isa.h"
