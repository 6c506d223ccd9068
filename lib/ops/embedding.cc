#include <array>

#include "headlight/normalization.h"
#include "kernels/kernels.h"
#include "ops/check.h"
#include "ops/row_blocks.h"

namespace headlight {

namespace {

constexpr std::string_view kName = "embed";
// Word, position and token-type tables are three; the rest is room.
constexpr std::size_t kMaxTables = 8;

std::string numbered(std::string_view what, std::size_t index) {
  return std::string(what) + " " + std::to_string(index);
}

void check_embedding(const Embedding& embedding, std::size_t index, const View<float, 2>& out, ops::Extent out_extent) {
  // Names are made only where something is wrong: a call that passes allocates nothing.
  static constexpr std::array<std::string_view, kMaxTables> kTableNames = {"table 0", "table 1", "table 2", "table 3",
                                                                           "table 4", "table 5", "table 6", "table 7"};
  const std::string_view table_name = kTableNames[index];
  const ops::Extent extent = ops::check_view(kName, table_name, embedding.table);
  const std::array<std::int64_t, 2> expected = {-1, out.extent(1)};
  ops::check_shape(kName, table_name, embedding.table.shape, expected, "[V, E]");
  ops::check_disjoint(kName, "out", out_extent, table_name, extent);
  if (embedding.ids.size() != static_cast<std::size_t>(out.extent(0))) {
    ops::fail(kName, numbered("ids of table", index) + " has " + std::to_string(embedding.ids.size()) +
                         " entries, expected " + std::to_string(out.extent(0)) + " (one for each row of out)");
  }
  for (std::size_t n = 0; n < embedding.ids.size(); ++n) {
    if (embedding.ids[n] < 0 || embedding.ids[n] >= embedding.table.extent(0)) {
      ops::fail(kName, numbered("id", n) + " of table " + std::to_string(index) + " is " +
                           std::to_string(embedding.ids[n]) + ", expected 0 to " +
                           std::to_string(embedding.table.extent(0) - 1));
    }
  }
}

}  // namespace

void embed(Engine& engine, std::span<const Embedding> embeddings, View<float, 2> out) {
  const ops::Extent out_extent = ops::check_view(kName, "out", out);
  ops::check_no_self_overlap(kName, "out", out.shape, out.strides);
  if (embeddings.empty() || embeddings.size() > kMaxTables) {
    ops::fail(kName, std::to_string(embeddings.size()) + " tables given, expected 1 to " + std::to_string(kMaxTables));
  }
  std::array<kernels::EmbeddingTable, kMaxTables> tables{};
  for (std::size_t t = 0; t < embeddings.size(); ++t) {
    check_embedding(embeddings[t], t, out, out_extent);
    tables[t] = {embeddings[t].table.data, embeddings[t].table.stride(0), embeddings[t].ids.data()};
  }
  if (out.size() == 0) return;

  // Rows of a large table come from memory, at some 10 bytes a nanosecond.
  constexpr double kNanosecondsPerElement = 0.4;
  const auto kernel = kernels::row_kernels(engine.isa()).embed;
  const int count = static_cast<int>(embeddings.size());
  const auto nanoseconds_per_row = kNanosecondsPerElement * static_cast<double>(out.extent(1));
  ops::for_row_blocks(engine, out.extent(0), nanoseconds_per_row, [&](std::int64_t first, std::int64_t rows) {
    std::array<kernels::EmbeddingTable, kMaxTables> block = tables;
    for (kernels::EmbeddingTable& table : block) table.ids = table.ids == nullptr ? nullptr : table.ids + first;
    kernel(block.data(), count, out.data + first * out.stride(0), out.stride(0), rows, out.extent(1));
  });
}

}  // namespace headlight
