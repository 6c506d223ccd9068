// Compiled once per instruction set.
#include "kernels/attention_backward_kernels.h"

#include "kernels/attention_backward_products-inl.h"
#include "kernels/attention_backward_scores-inl.h"

namespace headlight::HEADLIGHT_TARGET {
namespace {

void pad_rows(const float* from, std::int64_t stride, std::int64_t rows, std::int64_t dim, float* to,
              std::int64_t padded) noexcept {
  for (std::int64_t r = 0; r < rows; ++r, from += stride, to += padded) {
    for (std::int64_t d = 0; d < dim; d += kLanes) {
      store(load_lanes(from + d, static_cast<int>(smaller(kLanes, dim - d))), to + d);
    }
  }
}

void give_rows(const float* from, std::int64_t padded, std::int64_t rows, std::int64_t dim, float factor, bool add_to,
               float* to, std::int64_t stride) noexcept {
  for (std::int64_t r = 0; r < rows; ++r, from += padded, to += stride) {
    for (std::int64_t d = 0; d < dim; d += kFloatsOfLine) __builtin_prefetch(to + kPrefetchRows * stride + d, 1);
    for (std::int64_t d = 0; d < dim; d += kLanes) {
      const int lanes = static_cast<int>(smaller(kLanes, dim - d));
      const Vec before = add_to ? load_lanes(to + d, lanes) : zero();
      store_lanes(fma(load(from + d), broadcast(factor), before), to + d, lanes);
    }
  }
}

float dot(const float* a, const float* b, std::int64_t dim) noexcept {
  Vec sum = zero();
  for (std::int64_t d = 0; d < dim; d += kLanes) {
    const int lanes = static_cast<int>(smaller(kLanes, dim - d));
    sum = fma(load_lanes(a + d, lanes), load_lanes(b + d, lanes), sum);
  }
  return sum_of_lanes(sum);
}

}  // namespace

extern const kernels::AttentionBackwardKernels attention_backward_kernels;
const kernels::AttentionBackwardKernels attention_backward_kernels = {
    .score_gradients = score_gradients,
    .key_value_gradients = key_value_gradients,
    .query_gradient = query_gradient,
    .pad_rows = pad_rows,
    .give_rows = give_rows,
    .dot = dot,
};

}  // namespace headlight::HEADLIGHT_TARGET
