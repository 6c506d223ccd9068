#include "headlight/normalization.h"
#include "kernels/kernels.h"
#include "ops/rows/buffers.h"
#include "ops/rows/layer_norm_check.h"
#include "runtime/costs.h"

namespace headlight {

void rms_norm(Engine& engine, const TypedView<2>& x, const MutableTypedView<2>& y, const RmsNormOptions& options) {
  if (ops::check_rms_norm(x, y, options).is_empty()) return;

  const auto kernel = kernels::row_kernels(engine.isa()).rms_norm;
  ops::for_row_buffers(engine, "rms_norm", runtime::costs::kRmsNorm, {&x, &options.added}, y,
                       [&](const ops::InputRows& in, ops::OutputRows out, std::int64_t, std::int64_t rows) {
                         kernel({.x = in[0],
                                 .added = in[1],
                                 .y = out,
                                 .rows = rows,
                                 .columns = x.extent(1),
                                 .weight = ops::given(options.weight),
                                 .one_plus_weight = options.one_plus_weight,
                                 .epsilon = options.epsilon});
                       });
}

}  // namespace headlight
