#include <algorithm>
#include <array>

#include "headlight/normalization.h"
#include "kernels/kernels.h"
#include "ops/rows/blocks.h"
#include "ops/rows/embedding_check.h"
#include "runtime/costs.h"
#include "runtime/parallel.h"
#include "simd/integers.h"

namespace headlight {

namespace ops {

void check_embedding_ids(std::string_view operation, std::string_view rows_name, std::span<const std::int64_t> ids,
                         std::size_t table, std::int64_t count, std::int64_t table_rows) {
  if (ids.size() != static_cast<std::size_t>(count)) {
    fail(operation, "ids of table " + std::to_string(table) + " has " + std::to_string(ids.size()) +
                        " entries, expected " + std::to_string(count) + " (one for each row of " +
                        std::string(rows_name) + ")");
  }
  for (std::size_t n = 0; n < ids.size(); ++n) {
    if (ids[n] >= 0 && ids[n] < table_rows) continue;
    fail(operation, "id " + std::to_string(n) + " of table " + std::to_string(table) + " is " + std::to_string(ids[n]) +
                        ", expected 0 to " + std::to_string(table_rows - 1));
  }
}

}  // namespace ops

namespace {

constexpr std::string_view kName = "embed";

}  // namespace

void embed(Engine& engine, std::span<const Embedding> embeddings, View<float, 2> out) {
  const ops::Extent out_extent = ops::check_output(kName, "out", out);
  ops::check_table_count(kName, embeddings.size());
  std::array<kernels::EmbeddingTable, ops::kMaxTables> tables{};
  for (std::size_t t = 0; t < embeddings.size(); ++t) {
    ops::check_embedding(kName, "out", embeddings[t].table, embeddings[t].ids, t, out, out_extent);
    ops::check_disjoint(kName, "out", out_extent, ops::kIdsNames[t], ops::extent_of(embeddings[t].ids));
    tables[t] = {embeddings[t].table.data, embeddings[t].table.stride(0), embeddings[t].ids.data()};
  }
  if (out.size() == 0) return;

  const auto kernel = kernels::row_kernels(engine.isa()).embed;
  const int count = static_cast<int>(embeddings.size());
  ops::for_row_blocks(
      engine, out.extent(0), out.extent(1), runtime::costs::kEmbedding, [&](std::int64_t first, std::int64_t rows) {
        std::array<kernels::EmbeddingTable, ops::kMaxTables> block = tables;
        for (kernels::EmbeddingTable& table : block) table.ids = table.ids == nullptr ? nullptr : table.ids + first;
        kernel(block.data(), count, out.data + first * out.stride(0), out.stride(0), rows, out.extent(1));
      });
}

void embed_backward(Engine& engine, View<const float, 2> out_gradient, std::span<const EmbeddingGradient> embeddings) {
  constexpr std::string_view kBackward = "embed_backward";
  ops::check_embed_backward(kBackward, out_gradient, embeddings);
  if (out_gradient.size() == 0) return;

  // A task is some columns of one table, and walks every row: so rows are added in order, without a lock.
  constexpr std::int64_t kColumns = ops::kColumnsOfTask;
  const std::int64_t columns = out_gradient.extent(1);
  const std::int64_t blocks = divide_up(columns, kColumns);
  const std::int64_t tasks = blocks * static_cast<std::int64_t>(embeddings.size());
  const auto kernel = kernels::row_gradient_kernels(engine.isa()).scatter_add;
  const double nanoseconds = runtime::costs::kEmbeddingBackward * static_cast<double>(out_gradient.size()) *
                             static_cast<double>(embeddings.size());
  runtime::parallel_for(engine, tasks, runtime::workers_for(engine, tasks, nanoseconds), [&](std::int64_t task, int) {
    const EmbeddingGradient& one = embeddings[static_cast<std::size_t>(task / blocks)];
    const std::int64_t first = task % blocks * kColumns;
    kernel(one.table.data + first, one.table.stride(0), one.ids.data(), out_gradient.data + first,
           out_gradient.stride(0), out_gradient.extent(0), std::min(kColumns, columns - first));
  });
}

}  // namespace headlight
