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

std::size_t attention_plan_bytes(const Engine& engine, const kernels::AttentionKernels& kernels,
                                 const AttentionSizes& sizes) noexcept {
  AttentionTraits traits{.with_probabilities = true,
                         .probability_rows = sizes.query_length,
                         .copies_queries = true,
                         .with_mask = true,
                         .with_bias = true,
                         .with_slopes = true,
                         .with_sinks = true,
                         .with_scores = true,
                         .with_dropout = true,
                         .values_aligned = false};
  std::size_t bytes = most_short_bytes(engine, kernels, sizes);
  kernels::AttentionKernels narrow = kernels;
  narrow.sweep_rows = kernels.narrow_sweep_rows;
  narrow.sweeps_parts = false;
  for (const bool heads_apart : {false, true}) {
    traits.heads_apart = heads_apart;
    bytes = std::max({bytes, plan_attention(engine, kernels, sizes, traits).bytes(),
                      plan_attention(engine, narrow, sizes, traits).bytes()});
    if (!engine.features().has(InstructionFeature::amx_bf16)) continue;
    const kernels::AttentionKernels tiles = kernels::with_shapes_of_tile_registers(kernels);
    bytes =
        std::max({bytes, plan_attention(engine, tiles, sizes, traits).bytes(), most_short_bytes(engine, tiles, sizes)});
  }
  return bytes;
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
