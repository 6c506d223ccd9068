// Lookups in tables of any type that floats can be stored in.
#include <algorithm>
#include <array>

#include "headlight/typed_rows.h"
#include "kernels/kernels.h"
#include "ops/rows/blocks.h"
#include "ops/rows/buffers.h"
#include "ops/rows/embedding_check.h"
#include "runtime/costs.h"
#include "runtime/parallel.h"
#include "simd/integers.h"

namespace headlight {
namespace {

constexpr std::string_view kName = "embed";

// Of the rows of a buffer: 0, 1, 2 …
constexpr auto kEachRow = [] {
  std::array<std::int64_t, ops::BufferSize::kFloats / 16> rows{};
  for (std::size_t row = 0; row < rows.size(); ++row) rows[row] = static_cast<std::int64_t>(row);
  return rows;
}();

// Some rows of a table as the kernel of float32 takes them: where they lie, or gathered and widened into a buffer.
kernels::EmbeddingTable rows_of(const TypedEmbedding& embedding, const ops::RowBuffers& buffers, std::int64_t first,
                                std::int64_t count, float* buffer) noexcept {
  const TypedView<2>& table = embedding.table;
  const std::int64_t* const ids = embedding.ids.data() + first;
  if (table.type == NumberType::float32) return {static_cast<const float*>(table.data), table.stride(0), ids};
  for (std::int64_t n = 0; n < count; ++n) (void)buffers.widened(table, ids[n], 1, buffer + n * buffers.size().row);
  return {buffer, buffers.size().row, kEachRow.data()};
}

}  // namespace

void embed(Engine& engine, const TypedEmbeddings& embeddings) {
  const std::span<const TypedEmbedding> tables = embeddings.tables;
  const MutableTypedView<2>& out = embeddings.out;
  ops::check_widened_type(kName, "out", out.type);
  const ops::Extent extent = ops::check_output(kName, "out", out, out.shape, "its own shape");
  ops::check_table_count(kName, tables.size());
  for (std::size_t t = 0; t < tables.size(); ++t) {
    ops::check_widened_type(kName, ops::kTableNames[t], tables[t].table.type);
    ops::check_embedding(kName, "out", tables[t].table, tables[t].ids, t, out, extent);
    ops::check_disjoint(kName, "out", extent, ops::kIdsNames[t], ops::extent_of(tables[t].ids));
  }
  if (out.size() == 0) return;

  const ops::RowBuffers buffers(engine, kName, out.extent(1));
  const auto kernel = kernels::row_kernels(engine.isa()).embed;
  const auto sum_rows = [&](int worker, std::int64_t first, std::int64_t count) {
    const kernels::Rows<float> sum = buffers.place_of(out, first, buffers.buffer(worker, 0));
    // One table after another, in the order that a kernel adds them in.
    std::array<kernels::EmbeddingTable, 2> pair = {{{sum.data, sum.stride, kEachRow.data()}, {}}};
    for (std::size_t t = 0; t < tables.size(); ++t) {
      pair[1] = rows_of(tables[t], buffers, first, count, buffers.buffer(worker, 1));
      if (t == 0) {
        kernel(&pair[1], 1, sum.data, sum.stride, count, out.extent(1));
      } else {
        kernel(pair.data(), 2, sum.data, sum.stride, count, out.extent(1));
      }
    }
    buffers.round_into(out, sum, first, count);
  };
  ops::for_row_blocks(engine, out.extent(0), out.extent(1), runtime::costs::kEmbedding,
                      [&](std::int64_t first, std::int64_t count, int worker) {
                        const std::int64_t end = first + count, step = buffers.size().rows;
                        for (std::int64_t row = first; row < end; row += step) {
                          sum_rows(worker, row, std::min(step, end - row));
                        }
                      });
}

void embed_backward(Engine& engine, const TypedEmbeddingGradients& gradients) {
  constexpr std::string_view kBackward = "embed_backward";
  const TypedView<2>& out_gradient = gradients.out_gradient;
  const std::span<const EmbeddingGradient> tables = gradients.tables;
  ops::check_widened_type(kBackward, "out_gradient", out_gradient.type);
  ops::check_embed_backward(kBackward, out_gradient, tables);
  if (out_gradient.size() == 0) return;

  // Tasks as those of float32.
  const std::int64_t rows = out_gradient.extent(0), columns = out_gradient.extent(1);
  const std::int64_t blocks = divide_up(columns, ops::kColumnsOfTask);
  const std::int64_t tasks = blocks * static_cast<std::int64_t>(tables.size());
  const ops::RowBuffers buffers(engine, kBackward, ops::kColumnsOfTask);
  const auto kernel = kernels::row_gradient_kernels(engine.isa()).scatter_add;
  const double nanoseconds = runtime::costs::kEmbeddingBackward * static_cast<double>(out_gradient.size()) *
                             static_cast<double>(tables.size());
  const int workers = runtime::workers_for(engine, tasks, nanoseconds);
  runtime::parallel_for(engine, tasks, workers, [&](std::int64_t task, int worker) {
    const EmbeddingGradient& one = tables[static_cast<std::size_t>(task / blocks)];
    const std::int64_t first = task % blocks * ops::kColumnsOfTask;
    const std::int64_t count = std::min(ops::kColumnsOfTask, columns - first);
    const TypedView<2> some(out_gradient.type, kernels::numbers_behind(out_gradient.data, first, out_gradient.type),
                            {rows, count}, out_gradient.strides);
    buffers.compute<1>(worker, {some}, {}, 0, rows,
                       [&](const std::array<kernels::Rows<const float>, 1>& in, kernels::Rows<float>, std::int64_t row,
                           std::int64_t now) {
                         kernel(one.table.data + first, one.table.stride(0), one.ids.data() + row, in[0].data,
                                in[0].stride, now, count);
                       });
  });
}

}  // namespace headlight
