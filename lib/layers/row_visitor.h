// How layers in training go through their rows: all at once, or shard by shard where the attention of their SavedState
// has shards (headlight/row_shards.h). Layers do not know which.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>

#include "headlight/layers/training_attention.h"
#include "headlight/row_shards.h"
#include "layers/rows.h"

namespace headlight::layers {

// Views have rows [B, L, …]; f(number, matrices…) is called for some rows of one sample, or for all rows of the batch
// where they are one matrix. `number` is that of its first row, counted through the whole batch, which other processes
// may hold as well.
class RowVisitor {
 public:
  RowVisitor() = default;  // all rows at once
  RowVisitor(RowShards& shards, std::span<const RowShards::Part> parts, std::int64_t whole_length) noexcept
      : shards_(&shards), parts_(parts), whole_length_(whole_length) {}

  // Rows of a sample, of which those visited may be some.
  [[nodiscard]] std::int64_t whole_length(std::int64_t visited) const noexcept {
    return shards_ == nullptr ? visited : whole_length_;
  }

  template <class Function, class... Views>
  void visit(std::int64_t batch, const Function& f, const Views&... views) const {
    if (shards_ == nullptr) return visit_all(batch, f, views...);
    for (const RowShards::Part& part : parts_) visit_part(part, batch, f, views...);
  }

  // The same where f adds to those gradients: the sums of each shard are kept by themselves.
  template <class Function, class... Views>
  void sum(Engine& engine, std::span<const std::span<float>> gradients, std::int64_t batch, const Function& f,
           const Views&... views) const {
    if (shards_ == nullptr) return visit_all(batch, f, views...);
    sum_parts(engine, gradients, [&](const RowShards::Part& part) { visit_part(part, batch, f, views...); });
  }

  // The same by numbers of rows, which are those of all samples one after another, `length` of each: f(first, count);
  // keep(shards, shard) puts the sums of a shard aside.
  template <class Function, class Keep>
  void sum_ranges(std::int64_t batch, std::int64_t length, const Function& f, const Keep& keep) const {
    if (shards_ == nullptr) return f(std::int64_t{0}, batch * length);
    shards_->by_shard(
        parts_,
        [&](const RowShards::Part& part) {
          for (std::int64_t b = 0; part.count > 0 && b < batch; ++b) f(b * length + part.first, part.count);
        },
        [&](std::int64_t shard) { keep(*shards_, shard); });
  }

  // f(first, count, number of the first in the whole) for those rows, in runs that lie together there.
  template <class Function>
  void for_each_range(std::int64_t length, std::int64_t first, std::int64_t count, const Function& f) const {
    if (shards_ == nullptr) return f(first, count, first);
    for (std::int64_t b = 0; b * length < first + count; ++b) {
      for (const RowShards::Part& part : parts_) {
        const std::int64_t begin = std::max(first, b * length + part.first);
        const std::int64_t end = std::min(first + count, b * length + part.first + part.count);
        if (begin < end) f(begin, end - begin, b * whole_length_ + part.whole + begin - b * length - part.first);
      }
    }
  }

 private:
  template <class Function, class... Views>
  static void visit_all(std::int64_t batch, const Function& f, const Views&... views) {
    std::int64_t number = 0;
    for_each_matrix(
        batch,
        [&](const auto&... matrices) {
          f(number, matrices...);
          number += std::get<0>(std::tie(matrices...)).extent(0);
        },
        views...);
  }
  template <class Function, class... Views>
  void visit_part(const RowShards::Part& part, std::int64_t batch, const Function& f, const Views&... views) const {
    if (part.count == 0) return;
    for (std::int64_t b = 0; b < batch; ++b) {
      f(b * whole_length_ + part.whole, some_rows(sample(views, b), part.first, part.count)...);
    }
  }
  template <class Compute>
  void sum_parts(Engine& engine, std::span<const std::span<float>> gradients, const Compute& compute) const {
    shards_->by_shard(parts_, compute, [&](std::int64_t shard) {
      for (const std::span<float> gradient : gradients) shards_->keep(engine, shard, gradient);
    });
  }

  RowShards* shards_ = nullptr;
  std::span<const RowShards::Part> parts_{};
  std::int64_t whole_length_ = 0;
};

// The rows of x, and of what attention looks at.
[[nodiscard]] inline RowVisitor rows_of_x(const TrainingAttention& attention) noexcept {
  RowShards* const shards = attention.shards();
  return shards == nullptr ? RowVisitor() : RowVisitor(*shards, shards->parts(), shards->options().length);
}
[[nodiscard]] inline RowVisitor rows_of_memory(const TrainingAttention& attention) noexcept {
  RowShards* const shards = attention.shards();
  return shards == nullptr ? RowVisitor()
                           : RowVisitor(*shards, shards->memory_parts(), shards->options().memory_length);
}

// Throws unless that many rows of each of so many samples, and keys where they have rows of their own, are those that
// the attention shares out, where it does.
void check_rows(std::string_view name, const TrainingAttention& attention, std::int64_t batch, std::int64_t rows);
void check_rows(std::string_view name, const TrainingAttention& attention, std::int64_t batch, std::int64_t rows,
                std::int64_t memory_rows);

}  // namespace headlight::layers
