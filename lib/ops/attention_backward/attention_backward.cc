#include "headlight/attention_backward.h"

#include "ops/attention_backward/check.h"
#include "ops/attention_backward/plan.h"
#include "ops/attention_backward/run.h"
#include "ops/typed_check.h"
#include "runtime/parallel.h"

namespace headlight {
namespace {

constexpr std::string_view kAttentionBackwardName = "attention_backward";

}  // namespace

void attention_backward(Engine& engine, View<const float, 4> query, View<const float, 4> key,
                        View<const float, 4> value, View<const float, 4> out, View<const float, 3> log_sum_exp,
                        View<const float, 4> out_gradient, const AttentionGradients& gradients,
                        const AttentionOptions& options) {
  const ops::AttentionBackwardOperands operands = {
      query, key, value, out, log_sum_exp, out_gradient, options.log_sum_exp_gradient};
  const TypedAttentionGradients typed = gradients;
  const ops::AttentionSizes sizes = ops::check_attention_backward(kAttentionBackwardName, operands, typed, options);
  if (ops::asks_for_nothing(typed)) return;
  ops::differentiate(engine, kAttentionBackwardName, operands, typed, options, sizes,
                     kernels::attention_kernels(engine.isa()), kernels::attention_backward_kernels(engine.isa()));
}

std::size_t backward_workspace_bytes(const Engine& engine, const AttentionShape& shape, NumberType query_gradient) {
  ops::check_stored_type(kAttentionBackwardName, "query_gradient", query_gradient);
  return ops::backward_scratch_bytes(engine, kAttentionBackwardName, shape, query_gradient);
}

void reserve_backward(Engine& engine, const AttentionShape& shape, NumberType query_gradient) {
  const std::size_t bytes = backward_workspace_bytes(engine, shape, query_gradient);
  runtime::reserve_scratch(engine, &bytes, 1, kAttentionBackwardName);
}

}  // namespace headlight
