// Compiled once per instruction set.
#include "kernels/merge_kernels.h"

#include "kernels/row_merge-inl.h"
#include "kernels/row_merge_backward-inl.h"
#include "kernels/row_parts-inl.h"

namespace headlight::HEADLIGHT_TARGET {

extern const kernels::MergeKernels merge_kernels;
const kernels::MergeKernels merge_kernels = {weigh_heads,          gate_heads,          gate_elements,
                                             weigh_heads_backward, gate_heads_backward, gate_elements_backward,
                                             merge_parts};

}  // namespace headlight::HEADLIGHT_TARGET
