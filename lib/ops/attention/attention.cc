#include "headlight/attention.h"

#include <string_view>

#include "kernels/kernels.h"
#include "ops/attention/check.h"
#include "ops/attention/routes.h"
#include "ops/attention/short.h"
#include "ops/empty_views.h"

namespace headlight {
namespace {

constexpr std::string_view kAttentionName = "attention";

}  // namespace

void attention(Engine& engine, View<const float, 4> query, View<const float, 4> key, View<const float, 4> value,
               View<float, 4> out, const AttentionOptions& options) {
  const ops::AttentionSizes sizes = ops::check_attention(kAttentionName, query, key, value, out, options);
  if (ops::writes_nothing(out, options)) return;
  if (sizes.query_heads == 0) return ops::clear_average(options.probabilities.averaged);
  float anywhere;
  if (ops::has_empty_views(sizes)) [[unlikely]]
    ops::lay_empty_views(anywhere, query, key, value, out);
  const kernels::AttentionKernels& kernels = kernels::attention_kernels(engine.isa());
  const ops::AttentionScale scale = ops::scale_of(options, sizes.head_dim);
  if (ops::is_short(kernels, sizes, options, scale)) {
    return ops::attend_short(engine, kAttentionName,
                             {query, {key, value}, out, options, sizes, kernels, scale.exponent_scale});
  }
  ops::attend(engine, kAttentionName, {query, key, value, out}, options, sizes, kernels, scale);
}

}  // namespace headlight
