// Compiled once per instruction set: what of attention's backward pass reads and writes operands of any type that
// floats can be stored in.
#include "kernels/attention_backward/typed_rows-inl.h"

namespace headlight::HEADLIGHT_TARGET {

extern const kernels::BackwardRowKernels typed_backward_row_kernels;
constinit const kernels::BackwardRowKernels typed_backward_row_kernels = kTypedBackwardRows;

}  // namespace headlight::HEADLIGHT_TARGET
