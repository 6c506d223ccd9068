#define HEADLIGHT_FAMILY convert_kernels
#define HEADLIGHT_TYPE ConvertKernels
#include "kernels/choose_isa.h"
