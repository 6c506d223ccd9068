// Compiled once per instruction set.
#include "kernels/attention/merge_kernels.h"

#include "kernels/rows/merge-inl.h"
#include "kernels/rows/merge_backward-inl.h"
#include "kernels/rows/parts-inl.h"

namespace headlight::HEADLIGHT_TARGET {

extern const kernels::MergeKernels merge_kernels;
const kernels::MergeKernels merge_kernels = {weigh_heads,          gate_heads,          gate_elements,
                                             weigh_heads_backward, gate_heads_backward, gate_elements_backward,
                                             merge_parts};

}  // namespace headlight::HEADLIGHT_TARGET
