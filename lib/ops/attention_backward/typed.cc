// A file of its own: a program that calls attention_backward() over float32 alone links none of it, nor its kernels.
#include "headlight/typed_attention_backward.h"
#include "ops/attention_backward/check.h"
#include "ops/attention_backward/kernels.h"
#include "ops/attention_backward/plan.h"
#include "ops/attention_backward/run.h"
#include "ops/typed_check.h"
#include "runtime/parallel.h"

namespace headlight {
namespace {

constexpr std::string_view kName = "attention_backward";

}  // namespace

void attention_backward(Engine& engine, const AttentionBackwardOperands& operands,
                        const TypedAttentionGradients& gradients, const AttentionOptions& options) {
  const ops::AttentionSizes sizes = ops::check_attention_backward(kName, operands, gradients, options);
  if (ops::asks_for_nothing(gradients)) return;
  const ops::BackwardKernels kernels = ops::backward_kernels_of_types(engine, operands, gradients);
  ops::differentiate(engine, kName, operands, gradients, options, sizes, kernels.attention, kernels.backward);
}

std::size_t backward_workspace_bytes(const Engine& engine, const AttentionShape& shape, NumberType query_gradient) {
  ops::check_stored_type(kName, "query_gradient", query_gradient);
  return ops::backward_scratch_bytes(engine, kName, shape, query_gradient);
}

void reserve_backward(Engine& engine, const AttentionShape& shape, NumberType query_gradient) {
  const std::size_t bytes = backward_workspace_bytes(engine, shape, query_gradient);
  runtime::reserve_scratch(engine, &bytes, 1, kName);
}

}  // namespace headlight
