// How layers in training go through their rows: all at once, or shard by shard.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>

#include "headlight/row_shards.h"
#include "layers/rows.h"

namespace headlight::layers {

// The shards of some rows, those of x or of what attention looks at; or none.
struct ShardedRows {
  RowShards* shards = nullptr;
  std::span<const RowShards::Part> parts{};
  std::int64_t whole_length = 0;
};

inline ShardedRows shards_of_rows(RowShards* shards) noexcept {
  return shards == nullptr ? ShardedRows() : ShardedRows{shards, shards->parts(), shards->options().length};
}
inline ShardedRows shards_of_memory(RowShards* shards) noexcept {
  return shards == nullptr ? ShardedRows()
                           : ShardedRows{shards, shards->memory_parts(), shards->options().memory_length};
}

// Throws unless that many rows of each of so many samples, and keys where they have rows of their own, are those of the
// shards, where there are any.
void check_shards(std::string_view name, const RowShards* shards, std::int64_t batch, std::int64_t rows);
void check_shards(std::string_view name, const RowShards* shards, std::int64_t batch, std::int64_t rows,
                  std::int64_t memory_rows);

// f(number, matrices…) for a part of each sample of the views; `number` is that of its first row, counted through the
// whole batch.
template <class Function, class... Views>
void for_part(const ShardedRows& of, const RowShards::Part& part, std::int64_t batch, Function f,
              const Views&... views) {
  if (part.count == 0) return;
  for (std::int64_t b = 0; b < batch; ++b) {
    f(b * of.whole_length + part.whole, some_rows(sample(views, b), part.first, part.count)...);
  }
}

// f(number, matrices…) for all rows of the views [B, L, …], of which the first is given.
template <class Function, class... Views>
void for_each_rows(const ShardedRows& of, std::int64_t batch, Function f, const Views&... views) {
  if (of.shards == nullptr) {
    std::int64_t number = 0;
    for_each_matrix(
        batch,
        [&](const auto&... matrices) {
          f(number, matrices...);
          number += std::get<0>(std::tie(matrices...)).extent(0);
        },
        views...);
    return;
  }
  for (const RowShards::Part& part : of.parts) for_part(of, part, batch, f, views...);
}

// compute(part) for all parts, which adds to those gradients; they are kept by shards.
template <class Compute>
void for_each_part(Engine& engine, const ShardedRows& of, std::span<const std::span<float>> gradients,
                   const Compute& compute) {
  of.shards->by_shard(of.parts, compute, [&](std::int64_t shard) {
    for (const std::span<float> gradient : gradients) of.shards->keep(engine, shard, gradient);
  });
}

// for_each_rows() where f adds to those gradients.
template <class Function, class... Views>
void for_each_shard(Engine& engine, const ShardedRows& of, std::span<const std::span<float>> gradients,
                    std::int64_t batch, Function f, const Views&... views) {
  if (of.shards == nullptr) return for_each_rows(of, batch, f, views...);
  for_each_part(engine, of, gradients, [&](const RowShards::Part& part) { for_part(of, part, batch, f, views...); });
}

}  // namespace headlight::layers
