// Compiled once per instruction set.
#include "kernels/merge_kernels.h"

#include "kernels/row_merge-inl.h"

namespace headlight::HEADLIGHT_TARGET {

extern const kernels::MergeKernels merge_kernels;
const kernels::MergeKernels merge_kernels = {weigh_heads, gate_heads, gate_elements};

}  // namespace headlight::HEADLIGHT_TARGET
