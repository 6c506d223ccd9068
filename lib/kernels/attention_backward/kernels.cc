// Compiled once per instruction set.
#include "kernels/attention_backward/kernels.h"

#include "kernels/attention_backward/products-inl.h"
#include "kernels/attention_backward/rows-inl.h"
#include "kernels/attention_backward/scores-inl.h"

namespace headlight::HEADLIGHT_TARGET {
namespace {

void pad_float_rows(const kernels::Operand& from, std::int64_t rows, std::int64_t dim, float* to,
                    std::int64_t padded) noexcept {
  pad_rows<StoredFloat32>(from, rows, dim, to, padded);
}

void give_float_rows(const float* from, std::int64_t padded, std::int64_t rows, std::int64_t dim, float factor,
                     bool add_to, NumberType, void* to, std::int64_t stride) noexcept {
  give_rows<StoredFloat32>(from, padded, rows, dim, factor, add_to, static_cast<float*>(to), stride);
}

void float_row_dots(const kernels::Operand& a, const kernels::Operand& b, std::int64_t rows, std::int64_t dim,
                    float* to, std::int64_t stride) noexcept {
  row_dots<StoredFloat32, StoredFloat32>(a, b, rows, dim, to, stride);
}

}  // namespace

extern const kernels::AttentionBackwardKernels attention_backward_kernels;
const kernels::AttentionBackwardKernels attention_backward_kernels = {
    .products = {.score_gradients = score_gradients<BackwardFloats>,
                 .float_score_gradients = score_gradients<BackwardFloats>,
                 .key_value_gradients = key_value_gradients<BackwardFloats>,
                 .query_gradient = query_gradient<BackwardFloats>,
                 .take_rows = pad_float_rows,
                 .take_keys = pad_float_rows},
    .rows = {.pad_rows = pad_float_rows, .give_rows = give_float_rows, .row_dots = float_row_dots},
};

}  // namespace headlight::HEADLIGHT_TARGET
