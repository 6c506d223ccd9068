#include "headlight/normalization.h"
#include "kernels/kernels.h"
#include "ops/rows/buffers.h"
#include "ops/rows/layer_norm_check.h"
#include "runtime/costs.h"

namespace headlight {

void layer_norm(Engine& engine, const TypedView<2>& x, const MutableTypedView<2>& y, const LayerNormOptions& options) {
  if (ops::check_layer_norm(x, y, options).is_empty()) return;

  // Three sweeps over a row, which comes from the second-level cache: 0.18 alone, more behind a product.
  const auto kernel = kernels::row_kernels(engine.isa()).layer_norm;
  ops::for_row_buffers(engine, "layer_norm", runtime::costs::kLayerNorm, {&x, &options.residual}, y,
                       [&](const ops::InputRows& in, ops::OutputRows out, std::int64_t, std::int64_t rows) {
                         kernel({.x = in[0],
                                 .residual = in[1],
                                 .y = out,
                                 .rows = rows,
                                 .columns = x.extent(1),
                                 .weight = ops::given(options.weight),
                                 .bias = ops::given(options.bias),
                                 .epsilon = options.epsilon});
                       });
}

}  // namespace headlight
