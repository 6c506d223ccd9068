// What lookups in tables ask of their arguments.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "headlight/normalization.h"
#include "kernels/rows/kernels.h"
#include "ops/check.h"
#include "ops/rows/embedding_ids.h"
#include "ops/stored_check.h"
#include "ops/typed_check.h"

namespace headlight::ops {

// Word, position and token-type tables are three; the rest is room.
inline constexpr std::size_t kMaxTables = kernels::kMaxEmbeddingTables;
// Names are made only where something is wrong: a call that passes allocates nothing.
inline constexpr std::array<std::string_view, kMaxTables> kTableNames = {"table 0", "table 1", "table 2", "table 3",
                                                                         "table 4", "table 5", "table 6", "table 7"};
inline constexpr std::array<std::string_view, kMaxTables> kIdsNames = {
    "ids of table 0", "ids of table 1", "ids of table 2", "ids of table 3",
    "ids of table 4", "ids of table 5", "ids of table 6", "ids of table 7"};

inline void check_table_count(std::string_view operation, std::size_t tables) {
  if (tables >= 1 && tables <= kMaxTables) return;
  fail(operation, tables, " tables given, expected 1 to ", kMaxTables);
}

// `rows` [N, E] is what the rows of the table go to, or its gradient.
inline void check_embedding(std::string_view operation, std::string_view rows_name, const TypedView<2>& table,
                            std::span<const std::int64_t> ids, std::size_t index, const TypedView<2>& rows,
                            const Extent& rows_extent) {
  const std::string_view table_name = kTableNames[index];
  check_widened_type(operation, table_name, table.type);
  const Extent extent = check_view(operation, table_name, table);
  const std::array<std::int64_t, 2> expected = {-1, rows.extent(1)};
  check_shape(operation, table_name, table.shape, expected, "[V, E]");
  check_disjoint(operation, rows_name, rows_extent, table_name, extent);
  check_embedding_ids(operation, rows_name, ids, index, rows.extent(0), table.extent(0));
}

// Of a table in blocks. Where those end is the caller's word.
inline void check_stored_embedding(std::string_view operation, const Embedding& embedding, std::size_t index,
                                   const TypedView<2>& rows) {
  const std::string_view name = kTableNames[index];
  const TypedView<2>& table = embedding.table;
  const StoredNumbers& blocks = embedding.blocks;
  check_stored_numbers(operation, name, blocks, table.extent(1));
  const std::array<std::int64_t, 2> expected = {-1, rows.extent(1)};
  check_shape(operation, name, table.shape, expected, "[V, E]");
  if (table.data != nullptr || table.size() != blocks.count) {
    fail(operation, name, " of shape ", table.shape, " has ", blocks.count, " numbers in blocks",
         table.data != nullptr ? ", and others" : "");
  }
  check_embedding_ids(operation, "out", embedding.ids, index, rows.extent(0), table.extent(0));
}

inline void check_embed_backward(std::string_view operation, const TypedView<2>& out_gradient,
                                 std::span<const EmbeddingGradient> embeddings) {
  check_widened_type(operation, "out_gradient", out_gradient.type);
  const Extent extent = check_view(operation, "out_gradient", out_gradient);
  check_table_count(operation, embeddings.size());
  for (std::size_t t = 0; t < embeddings.size(); ++t) {
    const EmbeddingGradient& one = embeddings[t];
    check_embedding(operation, "out_gradient", one.table, one.ids, t, out_gradient, extent);
    const Extent table = check_output(operation, kTableNames[t], one.table);
    for (std::size_t other = 0; other < t; ++other) {
      check_disjoint(operation, kTableNames[t], table, kTableNames[other],
                     check_view(operation, kTableNames[other], embeddings[other].table));
    }
    for (std::size_t other = 0; other < embeddings.size(); ++other) {
      check_disjoint(operation, kTableNames[t], table, kIdsNames[other], extent_of(embeddings[other].ids));
    }
  }
}

}  // namespace headlight::ops
