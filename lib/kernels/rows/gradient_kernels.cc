// Compiled once per instruction set.
#include "kernels/rows/gradient_kernels.h"

#include "kernels/rows/activation-inl.h"
#include "kernels/rows/cap-inl.h"
#include "kernels/rows/cross_entropy-inl.h"
#include "kernels/rows/gather_backward-inl.h"
#include "kernels/rows/layer_norm_backward-inl.h"
#include "kernels/rows/softmax-inl.h"

namespace headlight::HEADLIGHT_TARGET {

extern const kernels::RowGradientKernels row_gradient_kernels;
const kernels::RowGradientKernels row_gradient_kernels = {activate_backward, softmax_backward, layer_norm_backward,
                                                          sum_rows,          scatter_add,      mean_pool_backward,
                                                          cross_entropy,     cap_rows_backward};

}  // namespace headlight::HEADLIGHT_TARGET
