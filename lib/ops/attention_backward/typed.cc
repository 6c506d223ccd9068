// A file of its own: a program that calls attention_backward() over float32 alone links none of it, nor its kernels.
#include "ops/attention_backward/check.h"
#include "ops/attention_backward/kernels.h"
#include "ops/attention_backward/run.h"

namespace headlight {
namespace {

constexpr std::string_view kTypedBackwardName = "attention_backward";

}  // namespace

void attention_backward_of_types(Engine& engine, const TypedView<4>& query, const TypedView<4>& key,
                                 const TypedView<4>& value, const TypedView<4>& out, View<const float, 3> log_sum_exp,
                                 const TypedView<4>& out_gradient, const TypedAttentionGradients& gradients,
                                 const AttentionOptions& options) {
  const ops::AttentionBackwardOperands operands = {
      query, key, value, out, log_sum_exp, out_gradient, options.log_sum_exp_gradient};
  const ops::AttentionSizes sizes = ops::check_attention_backward(kTypedBackwardName, operands, gradients, options);
  if (ops::asks_for_nothing(gradients)) return;
  const ops::BackwardKernels kernels = ops::backward_kernels_of_types(engine, operands, gradients);
  ops::differentiate(engine, kTypedBackwardName, operands, gradients, options, sizes, kernels.attention,
                     kernels.backward);
}

}  // namespace headlight
