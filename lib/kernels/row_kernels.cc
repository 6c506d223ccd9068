// Compiled once per instruction set.
#include "kernels/row_kernels.h"

#include "kernels/row_activation-inl.h"
#include "kernels/row_centre-inl.h"
#include "kernels/row_dropout-inl.h"
#include "kernels/row_entropy-inl.h"
#include "kernels/row_gather-inl.h"
#include "kernels/row_layer_norm-inl.h"
#include "kernels/row_softmax-inl.h"
#include "kernels/row_weights-inl.h"

namespace headlight::HEADLIGHT_TARGET {

extern const kernels::RowKernels row_kernels;
const kernels::RowKernels row_kernels = {softmax,   layer_norm,  activate,  embed,      mean_pool,    dropout,
                                         entropies, weight_rows, near_mean, shift_rows, centre_kernel};

}  // namespace headlight::HEADLIGHT_TARGET
