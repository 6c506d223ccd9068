// Gradients of a sequence by shards of its rows: what lets several processes train on one sequence, with the bits of
// one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "headlight/engine.h"
#include "headlight/export.h"
#include "headlight/layers/training_attention.h"
#include "headlight/parameters.h"

namespace headlight {

// Rows first … first + count − 1 of a sequence.
struct RowRun {
  std::int64_t first = 0;  // the first of them
  std::int64_t count = 0;  // how many
};

// A sequence, and how its rows are distributed; the same for every process that trains on it.
struct RowShardsOptions {
  // L, the rows of the whole sequence, and Lm, those of a decoder's memory; 0: there is none, or it is as long as x and
  // distributed alike.
  std::int64_t length = 0;
  std::int64_t memory_length = 0;
  // Samples, each of those lengths.
  std::int64_t batch = 1;
  // S. A part of the run as its seed is: the bits of gradients depend on it.
  std::int64_t shards = 1;
  // Rows that lie together in a shard, a multiple of 64. 0: chosen from the lengths and S, 1024 at most.
  std::int64_t block = 0;
  // Of packed sequences, [n + 1] each: the query_offsets and key_offsets of AttentionOptions. Copied.
  std::span<const std::int64_t> offsets{};
  std::span<const std::int64_t> memory_offsets{};
};

// The rows of a sequence in S shards. It is cut into blocks, which are distributed in a zigzag (0 1 2 2 1 0 0 1 …), as
// headlight/mpi.h distributes them to ranks. A layer whose SavedState names an attention with these shards adds up the
// gradients of each shard's rows by themselves, and they are kept here until a GradientTree takes them: so they are the
// same whoever computes which shards, one process all of them, or several some each (headlight/mpi.h).
//
//   RowShards rows(layer.parameters(), {.length = 4096, .shards = 8});
//   GradientTree tree(layer.parameters(), 0, rows.count());
//   ShardedAttention attention(rows);
//   SavedState saved(Checkpoint::keep_linear, 0, attention);
//   layer.forward(…, saved, …); layer.backward(…, saved, …);
//   for (std::int64_t shard = 0; shard < rows.count(); ++shard) {
//     rows.give(engine, shard);
//     shard + 1 < rows.count() ? tree.take(engine) : tree.finish(engine);
//   }
//
// Memory: a copy of the gradients for each shard that is held.
class HEADLIGHT_API RowShards {
 public:
  // All shards of the sequence. Parameters come from layer.parameters() after set_training(true), and stay where they
  // are while this lives. Throws std::invalid_argument, OutOfMemory.
  RowShards(std::vector<Parameter> parameters, const RowShardsOptions& options);
  // Those with numbers held.first … held.first + held.count − 1; none are allowed, too.
  RowShards(std::vector<Parameter> parameters, const RowShardsOptions& options, const RowRun& held);
  RowShards(RowShards&&) noexcept = default;
  RowShards& operator=(RowShards&&) noexcept = default;

  // Those that it was made with, lengths and block set.
  [[nodiscard]] const RowShardsOptions& options() const noexcept { return options_; }
  // How many shards are held here. They are counted from 0, whatever their numbers among all.
  [[nodiscard]] std::int64_t count() const noexcept { return held_.count; }
  // Which rows of each sample those are, ascending, and how many: x [B, row_count(), E] holds them one after another.
  [[nodiscard]] std::span<const RowRun> rows() const noexcept { return rows_; }
  [[nodiscard]] std::int64_t row_count() const noexcept { return row_count_; }
  // The same of a memory.
  [[nodiscard]] std::span<const RowRun> memory_rows() const noexcept { return memory_rows_; }
  [[nodiscard]] std::int64_t memory_row_count() const noexcept { return memory_row_count_; }

  // Rows that lie together in x and in the whole, and are of one shard.
  struct Part {
    std::int64_t shard;  // 0 … count() − 1
    std::int64_t first;  // of x's rows
    std::int64_t count;  // how many
    std::int64_t whole;  // the row of the whole that `first` is
  };
  // Shard by shard, ascending.
  [[nodiscard]] std::span<const Part> parts() const noexcept { return parts_; }
  [[nodiscard]] std::span<const Part> memory_parts() const noexcept { return memory_parts_; }

  // Adds a gradient, of a parameter, a part of one or several side by side, to what is kept for that shard, and sets it
  // to 0. Throws std::invalid_argument where it is none of those parameters', and for a shard that is not held.
  void keep(Engine& engine, std::int64_t shard, std::span<float> gradient);
  // compute(part) for every part, which adds to the gradients of those parameters; they are kept by shards. For what no
  // SavedState goes through, such as a readout behind the last layer.
  template <class Compute>
  void for_each_part(Engine& engine, std::span<const Parameter> parameters, const Compute& compute) {
    by_shard(parts_, compute, [&](std::int64_t shard) {
      for (const Parameter& parameter : parameters) keep(engine, shard, parameter.gradient);
    });
  }
  // Internal, for layers: compute(part) for each of those parts, and end(shard) behind the last one of each shard.
  template <class Compute, class End>
  void by_shard(std::span<const Part> parts, const Compute& compute, const End& end) const {
    std::size_t at = 0;
    for (std::int64_t shard = 0; shard < count(); ++shard) {
      for (; at < parts.size() && parts[at].shard == shard; ++at) compute(parts[at]);
      end(shard);
    }
  }
  // Moves what is kept for that shard to where the parameters' gradients are; what was there is lost.
  void give(Engine& engine, std::int64_t shard);
  // Forgets what is kept.
  void clear() noexcept;

 private:
  void lay_out(std::vector<Parameter> parameters);
  [[nodiscard]] std::span<float> kept(std::int64_t shard) noexcept;

  RowShardsOptions options_;
  std::vector<std::int64_t> offsets_, memory_offsets_;
  RowRun held_;
  std::vector<RowRun> rows_, memory_rows_;
  std::int64_t row_count_ = 0, memory_row_count_ = 0;
  std::vector<Part> parts_, memory_parts_;
  // Of each parameter, in the order of their addresses.
  struct Place {
    std::span<float> gradient;
    std::size_t first;  // among all gradients
  };
  std::vector<Place> places_;
  std::size_t elements_ = 0;
  std::vector<float> memory_;  // of each shard, all gradients one behind another
};

// attention() of one process that holds all shards.
class HEADLIGHT_API ShardedAttention final : public TrainingAttention {
 public:
  // `rows` stays where it is while this lives. Throws std::invalid_argument where it holds only some shards.
  explicit ShardedAttention(RowShards& rows);

  [[nodiscard]] RowShards* shards() const noexcept override { return rows_; }
  // Those of fused_attention().
  [[nodiscard]] std::int64_t kept_columns(std::int64_t key_length,
                                          const AttentionOptions& options) const noexcept override;
  void forward(Engine& engine, View<const float, 4> query, View<const float, 4> key, View<const float, 4> value,
               View<float, 4> out, View<float, 4> kept, const AttentionOptions& options) const override;
  void backward(Engine& engine, View<const float, 4> query, View<const float, 4> key, View<const float, 4> value,
                View<const float, 4> out, View<const float, 3> log_sum_exp, View<float, 4> kept,
                View<const float, 4> out_gradient, const AttentionGradients& gradients,
                const AttentionOptions& options) const override;

 private:
  RowShards* rows_;
};

}  // namespace headlight
