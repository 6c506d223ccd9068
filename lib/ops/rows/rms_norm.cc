#include "headlight/normalization.h"
#include "kernels/kernels.h"
#include "ops/rows/buffers.h"
#include "ops/rows/layer_norm_check.h"
#include "runtime/costs.h"

namespace headlight {

void rms_norm(Engine& engine, const TypedView<2>& x, const MutableTypedView<2>& y, const RmsNormOptions& options) {
  ops::check_rms_norm(x, y, options);
  if (x.size() == 0) return;

  const auto kernel = kernels::row_kernels(engine.isa()).rms_norm;
  ops::for_row_buffers<2>(engine, "rms_norm", runtime::costs::kRmsNorm, {x, options.added}, y,
                          [&](const ops::InputRows<2>& in, ops::OutputRows out, std::int64_t, std::int64_t rows) {
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
