#include "ops/attention_backward/kernels.h"

#include "ops/attention/typed_kernels.h"
#include "runtime/built_types.h"

namespace headlight::ops {
namespace {

// Those that multiply pairs of bfloat16 where the call is of such, or null.
const kernels::AttentionBackwardKernels* pair_kernels(const Engine& engine,
                                                      const AttentionBackwardOperands& operands) noexcept {
  const bool pairs = are_pairs_of_bfloat16(operands.query, operands.key, operands.value) &&
                     operands.out_gradient.type == NumberType::bfloat16 && operands.value.extent(3) % 2 == 0;
  return pairs ? kernels::pair_backward_kernels(engine.features()) : nullptr;
}

// Whether nothing is of another type: then what knows float32 alone has less to ask. What is not given counts as of
// float32.
bool are_floats(const AttentionBackwardOperands& operands, const TypedAttentionGradients& gradients) noexcept {
  const auto is_float = [](const auto& view) { return view.type == NumberType::float32; };
  return is_float(operands.query) && is_float(operands.key) && is_float(operands.value) && is_float(operands.out) &&
         is_float(operands.out_gradient) && is_float(gradients.query) && is_float(gradients.key) &&
         is_float(gradients.value);
}

}  // namespace

BackwardKernels backward_kernels_of_types(const Engine& engine, const AttentionBackwardOperands& operands,
                                          const TypedAttentionGradients& gradients) noexcept {
  const Isa isa = engine.isa();
  BackwardKernels kernels = {kernels::attention_kernels(isa), kernels::attention_backward_kernels(isa)};
  if (are_floats(operands, gradients)) return kernels;
  if constexpr (runtime::kBuildsTypedAttention) kernels.attention = kernels::typed_attention_kernels(isa).attention;
  if constexpr (runtime::is_built(NumberType::bfloat16) || runtime::is_built(NumberType::float16)) {
    kernels.backward.rows = kernels::typed_backward_row_kernels(isa);
  }
  kernels.backward.products.take_rows = kernels.backward.products.take_keys = kernels.backward.rows.pad_rows;
  if (const auto* pairs = pair_kernels(engine, operands)) {
    kernels.attention = *kernels::pair_attention_kernels(engine.features());
    kernels.backward = *pairs;
  }
  return kernels;
}

}  // namespace headlight::ops
