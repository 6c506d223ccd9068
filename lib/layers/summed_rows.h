// Which rows a gradient is summed over by itself: those of each shard, or all.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "headlight/layers/training_attention.h"
#include "headlight/row_shards.h"
#include "ops/attention_backward/row_sums.h"
#include "runtime/parallel.h"

namespace headlight::layers {

class SummedRows {
 public:
  // Of so many rows of queries; `who` asks for memory.
  SummedRows(Engine& engine, const TrainingAttention& attention, std::int64_t rows, std::string_view who)
      : shards_(attention.shards()),
        all_{0, 0, rows},
        memory_(engine, shards_ == nullptr ? 0 : shards_->parts().size() * sizeof(ops::RowsOfSum), who) {
    if (shards_ == nullptr) return;
    ops::RowsOfSum* to = list();
    for (const RowShards::Part& part : shards_->parts()) *to++ = {part.shard, part.first, part.count};
  }

  [[nodiscard]] std::int64_t sums() const noexcept { return shards_ == nullptr ? 1 : shards_->count(); }
  [[nodiscard]] std::span<const ops::RowsOfSum> rows() const noexcept {
    if (shards_ == nullptr) return {&all_, 1};
    return {list(), shards_->parts().size()};
  }
  // add(sum) for one sum after the other, which adds to that gradient of a parameter; shards keep theirs.
  template <class Add>
  void for_each(Engine& engine, std::span<float> gradient, const Add& add) const {
    for (std::int64_t sum = 0; sum < sums(); ++sum) {
      add(sum);
      if (shards_ != nullptr) shards_->keep(engine, sum, gradient);
    }
  }

 private:
  [[nodiscard]] ops::RowsOfSum* list() const noexcept { return reinterpret_cast<ops::RowsOfSum*>(memory_.data()); }

  RowShards* shards_;
  ops::RowsOfSum all_;
  runtime::Scratch memory_;
};

}  // namespace headlight::layers
