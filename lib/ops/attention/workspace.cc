// What calls borrow, foretold. A file of its own: a program that only calls attention() links none of it.
#include <algorithm>
#include <string_view>

#include "headlight/attention.h"
#include "kernels/attention/amx_shapes.h"
#include "kernels/kernels.h"
#include "ops/attention/check.h"
#include "ops/attention/plan.h"
#include "ops/attention/short.h"
#include "runtime/parallel.h"

namespace headlight {
namespace ops {

std::size_t attention_call_bytes(const Engine& engine, const AttentionSizes& sizes, const AttentionOptions& options,
                                 bool values_aligned) noexcept {
  const kernels::AttentionKernels& kernels = kernels::attention_kernels(engine.isa());
  const AttentionScale scale = scale_of(options, sizes.head_dim);
  if (is_short(kernels, sizes, options, scale)) return short_call_bytes(engine, kernels, sizes, options);
  AttentionTraits traits = traits_of(options, sizes, scale);
  traits.values_aligned = values_aligned;
  return plan_attention(engine, kernels, sizes, traits).borrowed();
}

namespace {

// The largest of f(kernels, traits) over those that a call may have: of operands that are floats or not, heads apart or
// side by side; traits ask for everything.
template <class Function>
std::size_t largest_of(const Engine& engine, const kernels::AttentionKernels& kernels, const AttentionSizes& sizes,
                       Function f) noexcept {
  AttentionTraits traits{.with_probabilities = true,
                         .probability_rows = sizes.query_length,
                         .copies_queries = true,
                         .with_mask = true,
                         .with_bias = true,
                         .with_slopes = true,
                         .with_sinks = true,
                         .with_scores = true,
                         .with_dropout = true,
                         .values_aligned = false,
                         .reads_two_streams = true};
  std::size_t bytes = 0;
  kernels::AttentionKernels narrow = kernels;
  narrow.sweep_rows = kernels.narrow_sweep_rows;
  narrow.sweeps_parts = false;
  for (const bool heads_apart : {false, true}) {
    traits.heads_apart = heads_apart;
    bytes = std::max({bytes, f(kernels, traits), f(narrow, traits)});
    if (!engine.features().has(InstructionFeature::amx_bf16)) continue;
    bytes = std::max(bytes, f(kernels::with_shapes_of_tile_registers(kernels), traits));
  }
  return bytes;
}

}  // namespace

std::size_t attention_plan_bytes(const Engine& engine, const kernels::AttentionKernels& kernels,
                                 const AttentionSizes& sizes) noexcept {
  return largest_of(engine, kernels, sizes, [&](const kernels::AttentionKernels& some, const AttentionTraits& traits) {
    return std::max(plan_attention(engine, some, sizes, traits).bytes(), most_short_bytes(engine, some, sizes));
  });
}

std::size_t attention_bytes_up_to(const Engine& engine, const AttentionSizes& sizes) noexcept {
  const kernels::AttentionKernels& kernels = kernels::attention_kernels(engine.isa());
  return largest_of(engine, kernels, sizes, [&](const kernels::AttentionKernels& some, const AttentionTraits& traits) {
    return std::max(most_plan_bytes(engine, some, sizes, traits), short_bytes_up_to(engine, some, sizes));
  });
}

}  // namespace ops

namespace {

constexpr std::string_view kWorkspaceName = "attention";

}  // namespace

std::size_t workspace_bytes(const Engine& engine, const AttentionShape& shape) {
  const ops::AttentionSizes sizes = ops::check_attention_shape(kWorkspaceName, shape);
  return ops::attention_plan_bytes(engine, kernels::attention_kernels(engine.isa()), sizes);
}

void reserve(Engine& engine, const AttentionShape& shape) {
  const std::size_t bytes = workspace_bytes(engine, shape);
  runtime::reserve_scratch(engine, &bytes, 1, kWorkspaceName);
}

}  // namespace headlight
