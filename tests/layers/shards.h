// What tests of layers by shards share: some rows of a whole, what was kept for each shard, shards that are not all
// here.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headlight/layers/layer.h"
#include "headlight/layers/training_attention.h"
#include "headlight/row_shards.h"
#include "headlight/tensor.h"
#include "headlight/view.h"
#include "layers/gradients.h"

namespace headlight::test {

// What is kept for each shard that is held.
inline std::vector<std::vector<float>> shards_of(Engine& engine, RowShards& rows,
                                                 const std::vector<Parameter>& parameters) {
  std::vector<std::vector<float>> all;
  for (std::int64_t shard = 0; shard < rows.count(); ++shard) {
    rows.give(engine, shard);
    all.push_back(gradients_of(parameters));
  }
  return all;
}

// Those rows of each sample, one after another.
inline Tensor<float, 3> share_of(std::span<const RowRun> runs, std::int64_t rows, const Tensor<float, 3>& whole) {
  Tensor<float, 3> share({whole.shape()[0], rows, whole.shape()[2]});
  for (std::int64_t b = 0; b < share.shape()[0]; ++b) {
    std::int64_t at = 0;
    for (const RowRun& run : runs) {
      for (std::int64_t i = run.first; i < run.first + run.count; ++i, ++at) {
        for (std::int64_t e = 0; e < share.shape()[2]; ++e) share(b, at, e) = whole(b, i, e);
      }
    }
  }
  return share;
}

// Names shards of which only some are held, as who spreads a sequence does; nothing here attends.
class OfSome final : public TrainingAttention {
 public:
  explicit OfSome(RowShards& rows) : rows_(&rows) {}
  [[nodiscard]] RowShards* shards() const noexcept override { return rows_; }
  [[nodiscard]] std::int64_t kept_columns(std::int64_t, const AttentionOptions&) const noexcept override { return 0; }
  void forward(Engine&, View<const float, 4>, View<const float, 4>, View<const float, 4>, View<float, 4>,
               View<float, 4>, const AttentionOptions&) const override {}
  void backward(Engine&, View<const float, 4>, View<const float, 4>, View<const float, 4>, View<const float, 4>,
                View<const float, 3>, View<float, 4>, View<const float, 4>, const AttentionGradients&,
                const AttentionOptions&) const override {}

 private:
  RowShards* rows_;
};

}  // namespace headlight::test
