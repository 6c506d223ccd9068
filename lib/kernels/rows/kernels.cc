// Compiled once per instruction set.
#include "kernels/rows/kernels.h"

#include "kernels/rows/activation-inl.h"
#include "kernels/rows/cap-inl.h"
#include "kernels/rows/centre-inl.h"
#include "kernels/rows/dropout-inl.h"
#include "kernels/rows/entropy-inl.h"
#include "kernels/rows/gather-inl.h"
#include "kernels/rows/head_rows-inl.h"
#include "kernels/rows/layer_norm-inl.h"
#include "kernels/rows/rms_norm-inl.h"
#include "kernels/rows/softmax-inl.h"
#include "kernels/rows/weights-inl.h"

namespace headlight::HEADLIGHT_TARGET {

extern const kernels::RowKernels row_kernels;
const kernels::RowKernels row_kernels = {softmax,
                                         layer_norm,
                                         activate,
                                         embed,
                                         mean_pool,
                                         dropout,
                                         entropies,
                                         weight_rows,
                                         near_mean,
                                         shift_rows,
                                         centre_kernel,
                                         rms_norm,
                                         head_rows<StoredFloat32>,
                                         multiply_rows,
                                         cap_rows};

}  // namespace headlight::HEADLIGHT_TARGET
