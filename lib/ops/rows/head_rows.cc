#include "headlight/head_rows.h"

#include "kernels/kernels.h"
#include "ops/rows/buffers.h"
#include "ops/rows/head_rows_check.h"
#include "runtime/costs.h"

namespace headlight {
namespace {

// Of checked arguments.
void run(Engine& engine, std::string_view operation, const TypedView<3>& x, const MutableTypedView<3>& y,
         const HeadRowsOptions& options, bool inverse) {
  if (x.size() == 0) return;
  const auto kernel = kernels::row_kernels(engine.isa()).head_rows;
  const View<const float, 2>& table = options.rotation.cosines_and_sines;
  ops::for_row_buffers<1>(engine, operation, runtime::costs::kHeadRows, {ops::flat(x)}, ops::flat(y),
                          [&](const ops::InputRows<1>& in, ops::OutputRows out, std::int64_t first, std::int64_t rows) {
                            kernel({.x = in[0],
                                    .y = out,
                                    .angles = ops::rows_from(table, first),
                                    .rows = rows,
                                    .heads = x.extent(1),
                                    .head_dim = x.extent(2),
                                    .dims = table ? table.extent(1) : 0,
                                    .interleaved = options.rotation.pairing == RotaryPairing::interleaved,
                                    .inverse = inverse,
                                    .norm = options.norm,
                                    .weight = ops::given(options.weight),
                                    .bias = ops::given(options.bias),
                                    .one_plus_weight = options.one_plus_weight,
                                    .epsilon = options.epsilon});
                          });
}

}  // namespace

void head_rows(Engine& engine, const TypedView<3>& x, const MutableTypedView<3>& y, const HeadRowsOptions& options) {
  constexpr std::string_view kName = "head_rows";
  ops::check_head_rows(kName, x, y, options);
  run(engine, kName, x, y, options, false);
}

void rotate(Engine& engine, const Rotation& rotation, const TypedView<3>& x, const MutableTypedView<3>& y,
            bool inverse) {
  constexpr std::string_view kName = "rotate";
  const HeadRowsOptions options = {.rotation = rotation};
  ops::check_head_rows(kName, x, y, options);
  run(engine, kName, x, y, options, inverse);
}

}  // namespace headlight
