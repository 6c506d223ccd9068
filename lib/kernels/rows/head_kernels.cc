// Compiled once per instruction set, and once more with each feature that rounds to bfloat16.
#include "kernels/rows/head_kernels.h"

#include "kernels/rows/head_rows-inl.h"

namespace headlight::HEADLIGHT_TARGET {

extern const kernels::HeadKernels head_kernels;
const kernels::HeadKernels head_kernels = {.head_rows = head_rows};

}  // namespace headlight::HEADLIGHT_TARGET
