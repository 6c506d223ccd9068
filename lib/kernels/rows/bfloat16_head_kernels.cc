// Compiled once for each feature that multiplies bfloat16: heads as attention then takes them.
#include "kernels/rows/head_kernels.h"
#include "kernels/rows/head_rows-inl.h"

namespace headlight::HEADLIGHT_TARGET {

extern const kernels::HeadKernels pair_head_kernels;
const kernels::HeadKernels pair_head_kernels = {.head_rows = head_rows<StoredBFloat16>};

}  // namespace headlight::HEADLIGHT_TARGET
