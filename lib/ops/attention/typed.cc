// A file of its own: a program that calls attention() over float32 alone links none of it, nor its kernels.
#include "kernels/kernels.h"
#include "ops/attention/check.h"
#include "ops/attention/routes.h"
#include "ops/attention/short.h"
#include "ops/attention/typed_kernels.h"
#include "ops/attention/typed_short.h"
#include "ops/empty_views.h"

namespace headlight {
namespace {

constexpr std::string_view kTypedAttentionName = "attention";

// What has been checked, and has memory.
void attend(Engine& engine, const ops::AttentionOperands& operands, const AttentionOptions& options,
            const ops::AttentionSizes& sizes) {
  const kernels::AttentionKernels& kernels =
      ops::kernels_of_types(engine, operands.query, operands.key, operands.value);
  const ops::AttentionScale scale = ops::scale_of(options, sizes.head_dim);
  if (ops::is_short(kernels, sizes, options, scale) && ops::stays_near(kernels, sizes)) {
    return ops::attend_short_rows(
        engine, kTypedAttentionName,
        ops::TypedShortAttention{operands,
                                 {operands.key, operands.value, operands.key_scales, operands.value_scales},
                                 options,
                                 sizes,
                                 kernels,
                                 scale.exponent_scale});
  }
  ops::attend(engine, kTypedAttentionName, operands, options, sizes, kernels, scale);
}

}  // namespace

void attention_of_types(Engine& engine, const TypedView<4>& query, const TypedView<4>& key, const TypedView<4>& value,
                        const MutableTypedView<4>& out, const AttentionOptions& options) {
  ops::AttentionOperands operands = {query, key, value, out, options.key_scales, options.value_scales};
  const ops::AttentionSizes sizes = ops::check_attention(kTypedAttentionName, operands, options);
  if (ops::writes_nothing(out, options)) return;
  if (sizes.query_heads == 0) return ops::clear_average(options.probabilities.averaged);
  float anywhere;
  if (ops::has_empty_views(sizes)) [[unlikely]]
    ops::lay_empty_views(anywhere, operands.query, operands.key, operands.value, operands.out);
  attend(engine, operands, options, sizes);
}

}  // namespace headlight
