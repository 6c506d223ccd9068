// Compiled once per instruction set, and once more with each feature that rounds to bfloat16.
#include "kernels/rows/convert_kernels.h"

#include "kernels/rows/convert_rows-inl.h"

namespace headlight::HEADLIGHT_TARGET {

extern const kernels::ConvertKernels convert_kernels;
const kernels::ConvertKernels convert_kernels = {.widen_rows = widen_rows, .narrow_rows = narrow_rows};

}  // namespace headlight::HEADLIGHT_TARGET
