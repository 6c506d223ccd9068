// A file of its own: a program that calls attention_backward() over float32 alone links none of it, nor its kernels.
#include "headlight/typed_attention_backward.h"
#include "ops/attention_backward_check.h"
#include "ops/attention_backward_plan.h"
#include "ops/attention_backward_run.h"
#include "ops/typed_check.h"
#include "ops/typed_kernels.h"
#include "runtime/parallel.h"

namespace headlight {
namespace {

constexpr std::string_view kName = "attention_backward";

// Those that multiply pairs of bfloat16 where the call is of such, or null.
const kernels::BackwardProductKernels* pair_products(const Engine& engine, const AttentionBackwardOperands& operands,
                                                     const ops::AttentionSizes& sizes) noexcept {
  const bool pairs = ops::are_pairs_of_bfloat16(operands.query, operands.key, operands.value) &&
                     operands.out_gradient.type == NumberType::bfloat16 && sizes.value_dim % 2 == 0;
  return pairs ? kernels::pair_backward_kernels(engine.features()) : nullptr;
}

// Whether nothing is of another type: then what knows float32 alone has less to ask.
bool are_floats(const AttentionBackwardOperands& operands, const TypedAttentionGradients& gradients) noexcept {
  const auto is_float = [](const auto& view) { return !view || view.type == NumberType::float32; };
  return is_float(operands.query) && is_float(operands.key) && is_float(operands.value) && is_float(operands.out) &&
         is_float(operands.out_gradient) && is_float(gradients.query) && is_float(gradients.key) &&
         is_float(gradients.value);
}

void multiply_pairs(const Engine& engine, const kernels::BackwardProductKernels& pairs,
                    kernels::AttentionKernels& kernels, kernels::AttentionBackwardKernels& backward) noexcept {
  const kernels::PairAttentionKernels& forward = *kernels::pair_attention_kernels(engine.features());
  kernels.numbers_of_word = 2;
  kernels.pack_keys = forward.pack_keys;
  kernels.copy_rows = forward.copy_rows;
  backward.products = pairs;
}

}  // namespace

void attention_backward(Engine& engine, const AttentionBackwardOperands& operands,
                        const TypedAttentionGradients& gradients, const AttentionOptions& options) {
  const ops::AttentionSizes sizes = ops::check_attention_backward(kName, operands, gradients, options);
  if (ops::asks_for_nothing(gradients)) return;
  kernels::AttentionBackwardKernels backward = kernels::attention_backward_kernels(engine.isa());
  if (are_floats(operands, gradients)) {
    return ops::differentiate(engine, kName, operands, gradients, options, sizes,
                              kernels::attention_kernels(engine.isa()), backward);
  }
  kernels::AttentionKernels kernels = ops::kernels_of_types(engine.isa());
  backward.rows = kernels::typed_backward_row_kernels(engine.isa());
  backward.products.take_rows = backward.rows.pad_rows;
  if (const auto* pairs = pair_products(engine, operands, sizes)) multiply_pairs(engine, *pairs, kernels, backward);
  ops::differentiate(engine, kName, operands, gradients, options, sizes, kernels, backward);
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
