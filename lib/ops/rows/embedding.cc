#include <algorithm>
#include <array>

#include "headlight/normalization.h"
#include "kernels/kernels.h"
#include "ops/rows/blocks.h"
#include "ops/rows/buffers.h"
#include "ops/rows/embedding_check.h"
#include "runtime/costs.h"
#include "runtime/parallel.h"
#include "simd/integers.h"

namespace headlight {

namespace ops {

void check_embedding_ids(std::string_view operation, std::string_view rows_name, std::span<const std::int64_t> ids,
                         std::size_t table, std::int64_t count, std::int64_t table_rows) {
  if (ids.size() != static_cast<std::size_t>(count)) {
    fail(operation, "ids of table ", table, " has ", ids.size(), " entries, expected ", count, " (one for each row of ",
         rows_name, ")");
  }
  for (std::size_t n = 0; n < ids.size(); ++n) {
    if (ids[n] >= 0 && ids[n] < table_rows) continue;
    fail(operation, "id ", n, " of table ", table, " is ", ids[n], ", expected 0 to ", table_rows - 1);
  }
}

}  // namespace ops

namespace {

constexpr std::string_view kEmbeddingName = "embed";
// Of a table's gradient, that a worker adds to at a time.
constexpr std::int64_t kColumnsOfTask = 64;

// Of the rows of a buffer: 0, 1, 2 …
constexpr auto kEachRow = [] {
  std::array<std::int64_t, ops::BufferSize::kFloats / 16> rows{};
  for (std::size_t row = 0; row < rows.size(); ++row) rows[row] = static_cast<std::int64_t>(row);
  return rows;
}();

bool is_widened(const Embedding& embedding) noexcept {
  return embedding.blocks || embedding.table.type != NumberType::float32;
}

// Some rows of a table as the kernel takes them: where they lie, or gathered and widened into a buffer.
kernels::EmbeddingTable rows_of(const Embedding& embedding, std::int64_t first) noexcept {
  const TypedView<2>& table = embedding.table;
  return {static_cast<const float*>(table.data), table.stride(0), embedding.ids.data() + first};
}
kernels::EmbeddingTable rows_of(const Embedding& embedding, const ops::RowBuffers& buffers, std::int64_t first,
                                std::int64_t count, float* buffer) noexcept {
  const TypedView<2>& table = embedding.table;
  if (!is_widened(embedding)) return rows_of(embedding, first);
  for (std::int64_t n = 0; n < count; ++n) {
    const std::int64_t id = embedding.ids[static_cast<std::size_t>(first + n)];
    float* const to = buffer + n * buffers.size().row;
    if (embedding.blocks) {
      widen_rows(embedding.blocks, table.extent(1), id, 1, to);
    } else {
      (void)buffers.widened(table, id, 1, to);
    }
  }
  return {buffer, buffers.size().row, kEachRow.data()};
}

void check(std::span<const Embedding> embeddings, const MutableTypedView<2>& out) {
  ops::check_widened_type(kEmbeddingName, "out", out.type);
  const ops::Extent extent = ops::check_output(kEmbeddingName, "out", out, out.shape, "its own shape");
  ops::check_table_count(kEmbeddingName, embeddings.size());
  for (std::size_t t = 0; t < embeddings.size(); ++t) {
    if (embeddings[t].blocks) {
      ops::check_stored_embedding(kEmbeddingName, embeddings[t], t, out);
    } else {
      ops::check_embedding(kEmbeddingName, "out", embeddings[t].table, embeddings[t].ids, t, out, extent);
    }
    ops::check_disjoint(kEmbeddingName, "out", extent, ops::kIdsNames[t], ops::extent_of(embeddings[t].ids));
  }
}

// Of floats, all tables at once.
void embed_floats(Engine& engine, std::span<const Embedding> embeddings, const MutableTypedView<2>& out) {
  const auto kernel = kernels::row_kernels(engine.isa()).embed;
  ops::for_row_blocks(
      engine, out.extent(0), out.extent(1), runtime::costs::kEmbedding, [&](std::int64_t first, std::int64_t rows) {
        std::array<kernels::EmbeddingTable, ops::kMaxTables> tables{};
        for (std::size_t t = 0; t < embeddings.size(); ++t) tables[t] = rows_of(embeddings[t], first);
        kernel(tables.data(), static_cast<int>(embeddings.size()),
               static_cast<float*>(out.data) + first * out.stride(0), out.stride(0), rows, out.extent(1));
      });
}

// Of any types, one table after another, in the order that the kernel adds them in.
void embed_widened(Engine& engine, std::span<const Embedding> embeddings, const MutableTypedView<2>& out) {
  const ops::RowBuffers buffers(engine, kEmbeddingName, out.extent(1), true);
  const auto kernel = kernels::row_kernels(engine.isa()).embed;
  const auto sum_rows = [&](int worker, std::int64_t first, std::int64_t count) {
    const kernels::Rows<float> sum = buffers.place_of(out, first, buffers.buffer(worker, 0));
    std::array<kernels::EmbeddingTable, 2> pair = {{{sum.data, sum.stride, kEachRow.data()}, {}}};
    for (std::size_t t = 0; t < embeddings.size(); ++t) {
      pair[1] = rows_of(embeddings[t], buffers, first, count, buffers.buffer(worker, 1));
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
                        const std::int64_t end = first + count, at_once = buffers.size().rows;
                        for (std::int64_t row = first; row < end; row += at_once) {
                          sum_rows(worker, row, std::min(at_once, end - row));
                        }
                      });
}

}  // namespace

void embed(Engine& engine, std::span<const Embedding> embeddings, const MutableTypedView<2>& out) {
  check(embeddings, out);
  if (out.size() == 0) return;
  const bool narrow = ops::any_narrow(out) || std::any_of(embeddings.begin(), embeddings.end(), is_widened);
  (narrow ? embed_widened : embed_floats)(engine, embeddings, out);
}

void embed_backward(Engine& engine, const TypedView<2>& out_gradient, std::span<const EmbeddingGradient> embeddings) {
  constexpr std::string_view kBackward = "embed_backward";
  ops::check_embed_backward(kBackward, out_gradient, embeddings);
  if (out_gradient.size() == 0) return;

  // A task is some columns of one table, and walks every row: so rows are added in order, without a lock.
  const std::int64_t rows = out_gradient.extent(0), columns = out_gradient.extent(1);
  const std::int64_t blocks = divide_up(columns, kColumnsOfTask);
  const std::int64_t tasks = blocks * static_cast<std::int64_t>(embeddings.size());
  const ops::RowBuffers buffers(engine, kBackward, kColumnsOfTask, ops::any_narrow(out_gradient));
  const auto kernel = kernels::row_gradient_kernels(engine.isa()).scatter_add;
  const double nanoseconds = runtime::costs::kEmbeddingBackward * static_cast<double>(out_gradient.size()) *
                             static_cast<double>(embeddings.size());
  const int workers = runtime::workers_for(engine, tasks, nanoseconds);
  runtime::parallel_for(engine, tasks, workers, [&](std::int64_t task, int worker) {
    const EmbeddingGradient& one = embeddings[static_cast<std::size_t>(task / blocks)];
    const std::int64_t first = task % blocks * kColumnsOfTask;
    const std::int64_t count = std::min(kColumnsOfTask, columns - first);
    const TypedView<2> some(out_gradient.type, kernels::numbers_behind(out_gradient.data, first, out_gradient.type),
                            {rows, count}, out_gradient.strides);
    buffers.compute(worker, {&some}, {}, 0, rows,
                    [&](const ops::InputRows& in, ops::OutputRows, std::int64_t row, std::int64_t now) {
                      kernel(one.table.data + first, one.table.stride(0), one.ids.data() + row, in[0].data,
                             in[0].stride, now, count);
                    });
  });
}

}  // namespace headlight
