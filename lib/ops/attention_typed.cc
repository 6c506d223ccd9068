// A file of its own: a program that calls attention() over float32 alone links none of it, nor its kernels.
#include "headlight/typed_attention.h"
#include "kernels/kernels.h"
#include "ops/attention_check.h"
#include "ops/attention_routes.h"
#include "ops/attention_short.h"
#include "ops/attention_typed_short.h"
#include "ops/empty_views.h"
#include "ops/typed_kernels.h"

namespace headlight {
namespace {

constexpr std::string_view kName = "attention";

// Those that multiply pairs of bfloat16 where the call is of such, or null.
const kernels::PairAttentionKernels* pair_kernels(const Engine& engine, const AttentionOperands& operands) noexcept {
  return ops::are_pairs_of_bfloat16(operands.query, operands.key, operands.value)
             ? kernels::pair_attention_kernels(engine.features())
             : nullptr;
}

void multiply_pairs(kernels::AttentionKernels& kernels, const kernels::PairAttentionKernels& pairs) noexcept {
  kernels.numbers_of_word = 2;
  kernels.attend_block = pairs.attend_block;
  kernels.attend_sweep = pairs.attend_sweep;
  kernels.attend_short = pairs.attend_short;
  kernels.probability_tile = pairs.probability_tile;
  kernels.score_tile = pairs.score_tile;
  kernels.pack_keys = pairs.pack_keys;
  kernels.pack_values = pairs.pack_values;
  kernels.copy_rows = pairs.copy_rows;
}

// What has been checked, and has memory.
void attend(Engine& engine, const AttentionOperands& operands, const AttentionOptions& options,
            const ops::AttentionSizes& sizes) {
  kernels::AttentionKernels kernels = ops::kernels_of_types(engine.isa());
  const ops::AttentionScale scale = ops::scale_of(options, sizes.head_dim);
  if (const auto* pairs = pair_kernels(engine, operands)) multiply_pairs(kernels, *pairs);
  if (ops::is_short(kernels, sizes, options, scale) && ops::fits_on_stack(kernels, sizes)) {
    return ops::attend_short_rows(
        engine, ops::TypedShortAttention{operands,
                                         {operands.key, operands.value, operands.key_scales, operands.value_scales},
                                         options,
                                         sizes,
                                         kernels,
                                         scale.exponent_scale});
  }
  ops::attend(engine, kName, operands, options, sizes, kernels, scale);
}

}  // namespace

void attention(Engine& engine, const AttentionOperands& operands, const AttentionOptions& options) {
  const ops::AttentionSizes sizes = ops::check_attention(kName, operands, options);
  if (ops::writes_nothing(operands.out, options)) return;
  if (sizes.query_heads == 0) return ops::clear_average(options.probabilities.averaged);
  if (!ops::has_empty_views(sizes)) return attend(engine, operands, options, sizes);
  float anywhere;
  AttentionOperands laid = operands;
  ops::lay_empty_views(anywhere, laid.query, laid.key, laid.value, laid.out);
  attend(engine, laid, options, sizes);
}

}  // namespace headlight
