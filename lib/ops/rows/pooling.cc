#include <array>

#include "headlight/normalization.h"
#include "kernels/kernels.h"
#include "ops/check.h"
#include "ops/offsets_check.h"
#include "runtime/costs.h"
#include "runtime/parallel.h"

namespace headlight {

namespace {

constexpr std::string_view kPoolingName = "mean_pool";

}  // namespace

void mean_pool(Engine& engine, View<const float, 2> x, std::span<const std::int64_t> offsets, View<float, 2> out,
               bool l2_normalize) {
  const ops::Extent x_extent = ops::check_view(kPoolingName, "x", x);
  const ops::Extent out_extent = ops::check_view(kPoolingName, "out", out);
  ops::check_offsets(kPoolingName, "offsets", offsets, x.extent(0), "N");
  const std::array<std::int64_t, 2> expected = {static_cast<std::int64_t>(offsets.size()) - 1, x.extent(1)};
  ops::check_shape(kPoolingName, "out", out.shape, expected, "[n, E]");
  ops::check_no_self_overlap(kPoolingName, "out", out.shape, out.strides);
  ops::check_disjoint(kPoolingName, "out", out_extent, "x", x_extent);
  ops::check_disjoint(kPoolingName, "out", out_extent, "offsets", ops::extent_of(offsets));
  if (out.size() == 0) return;

  // One sequence is one task: its rows are added in order.
  const auto kernel = kernels::row_kernels(engine.isa()).mean_pool;
  const double nanoseconds = runtime::costs::kMeanPool * static_cast<double>(x.extent(0) * x.extent(1));
  const int workers = runtime::workers_for(engine, out.extent(0), nanoseconds);
  runtime::parallel_for(engine, out.extent(0), workers, [&](std::int64_t sequence, int) {
    const std::int64_t begin = offsets[static_cast<std::size_t>(sequence)];
    const std::int64_t rows = offsets[static_cast<std::size_t>(sequence) + 1] - begin;
    // Behind the last row an empty sequence has no address: a single row may have any stride.
    const float* const first = rows > 0 ? x.data + begin * x.stride(0) : x.data;
    kernel(first, x.stride(0), rows, x.extent(1), out.data + sequence * out.stride(0), l2_normalize);
  });
}

void mean_pool_backward(Engine& engine, View<const float, 2> x, std::span<const std::int64_t> offsets,
                        View<const float, 2> out_gradient, View<float, 2> x_gradient, bool l2_normalize) {
  constexpr std::string_view kBackward = "mean_pool_backward";
  const ops::Extent out_extent = ops::check_view(kBackward, "out_gradient", out_gradient);
  const ops::Extent gradient_extent = ops::check_view(kBackward, "x_gradient", x_gradient);
  ops::check_offsets(kBackward, "offsets", offsets, x_gradient.extent(0), "N");
  const std::array<std::int64_t, 2> expected = {static_cast<std::int64_t>(offsets.size()) - 1, x_gradient.extent(1)};
  ops::check_shape(kBackward, "out_gradient", out_gradient.shape, expected, "[n, E]");
  ops::check_no_self_overlap(kBackward, "x_gradient", x_gradient.shape, x_gradient.strides);
  ops::check_disjoint(kBackward, "x_gradient", gradient_extent, "out_gradient", out_extent);
  ops::check_disjoint(kBackward, "x_gradient", gradient_extent, "offsets", ops::extent_of(offsets));
  if (l2_normalize) {
    const ops::Extent x_extent = ops::check_view(kBackward, "x", x);
    ops::check_shape(kBackward, "x", x.shape, x_gradient.shape, "the shape of x_gradient");
    ops::check_disjoint(kBackward, "x_gradient", gradient_extent, "x", x_extent);
  }
  if (x_gradient.size() == 0) return;

  const auto kernel = kernels::row_gradient_kernels(engine.isa()).mean_pool;
  const double nanoseconds = runtime::costs::kMeanPoolBackward * static_cast<double>(x_gradient.size());
  const int workers = runtime::workers_for(engine, out_gradient.extent(0), nanoseconds);
  runtime::parallel_for(engine, out_gradient.extent(0), workers, [&](std::int64_t sequence, int) {
    const std::int64_t begin = offsets[static_cast<std::size_t>(sequence)];
    const std::int64_t rows = offsets[static_cast<std::size_t>(sequence) + 1] - begin;
    if (rows == 0) return;
    kernel(l2_normalize ? x.data + begin * x.stride(0) : nullptr, x.stride(0), rows, x_gradient.extent(1),
           out_gradient.data + sequence * out_gradient.stride(0), x_gradient.data + begin * x_gradient.stride(0),
           x_gradient.stride(0), l2_normalize);
  });
}

}  // namespace headlight
