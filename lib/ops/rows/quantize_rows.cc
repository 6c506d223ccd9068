#include "headlight/attention.h"
#include "kernels/kernels.h"
#include "ops/rows/blocks.h"
#include "ops/rows/typed.h"
#include "ops/typed_check.h"
#include "runtime/costs.h"

namespace headlight {
namespace {

constexpr std::string_view kQuantizeRowsName = "quantize_rows";

void check(const TypedView<4>& x, const View<std::int8_t, 4>& numbers, const View<float, 3>& scales) {
  ops::check_built_type(kQuantizeRowsName, "numbers", NumberType::int8);
  ops::check_widened_type(kQuantizeRowsName, "x", x.type);
  const ops::Extent input = ops::check_view(kQuantizeRowsName, "x", x);
  const ops::Extent of_numbers = ops::check_output(kQuantizeRowsName, "numbers", numbers, x.shape, "the shape of x");
  const std::array<std::int64_t, 3> rows = {x.extent(0), x.extent(1), x.extent(2)};
  ops::check_shape(kQuantizeRowsName, "scales", scales.shape, rows, "[B, L, H], one for each row and head of x");
  const View<float, 4> each = ops::each_scale(scales);
  const ops::Extent of_scales = ops::check_output(kQuantizeRowsName, "scales", each);
  ops::check_disjoint(kQuantizeRowsName, "numbers", of_numbers, "x", input);
  ops::check_disjoint(kQuantizeRowsName, "scales", of_scales, "x", input);
  ops::check_disjoint(kQuantizeRowsName, "scales", of_scales, "numbers", of_numbers);
}

}  // namespace

void quantize_rows(Engine& engine, const TypedView<4>& x, const View<std::int8_t, 4>& numbers,
                   const View<float, 3>& scales) {
  check(x, numbers, scales);
  const std::int64_t heads = x.extent(2), dim = x.extent(3);
  const std::int64_t rows_of_sample = x.extent(1) * heads, rows = x.extent(0) * rows_of_sample;
  if (rows == 0) return;
  // Without numbers, scales alone are written: those of zeros. Nothing of x is read then, which may have no memory.
  if constexpr (runtime::is_built(NumberType::int8)) {
    const auto kernel = kernels::typed_attention_kernels(engine.isa()).quantize_rows;
    const auto quantize = [&](std::int64_t first, std::int64_t count) {
      for (std::int64_t row = first; row < first + count; ++row) {
        const std::int64_t b = row / rows_of_sample, l = row % rows_of_sample / heads, h = row % heads;
        kernel(dim == 0 ? kernels::Operand{} : ops::operand_at(x, b, l, h), 1, dim,
               dim == 0 ? nullptr : &numbers(b, l, h, 0), numbers.stride(1), &scales(b, l, h), scales.stride(1));
      }
    };
    ops::for_row_blocks(engine, rows, dim, runtime::costs::kQuantizedNumber, quantize);
  }
}

}  // namespace headlight
