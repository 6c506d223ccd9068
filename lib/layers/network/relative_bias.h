// A bias by the distance between tokens, one table for all blocks of a network.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headlight/attention.h"
#include "headlight/layers/network_spec.h"
#include "layers/network/operation.h"
#include "layers/network/parameters.h"

namespace headlight::layers {

// Which row of the table a key has.
class DistanceBuckets {
 public:
  explicit DistanceBuckets(const RelativeBiasSpec& spec) noexcept;

  // At that distance behind the query: j − i, negative in front of it.
  [[nodiscard]] std::int64_t of(std::int64_t distance) const noexcept;

 private:
  std::int64_t half_;   // buckets on either side of the query
  std::int64_t exact_;  // of these, how many have one distance each
  std::int64_t max_distance_;
  double most_;  // log(max_distance / exact)
};

// What the table makes of all distances within N tokens: y [N, 2 H], whose memory holds one row for each head, one
// directly behind another, of which number N − 1 + (j − i) is the bias of that distance. So it grows with the tokens
// alone, and sequences that lie side by side read the same numbers.
class RelativeBiasOperation final : public Operation {
 public:
  RelativeBiasOperation(const RelativeBiasSpec& spec, const MatrixParameter& table, const Slice& y)
      : Operation(y, {}, -1), spec_(spec), table_(table) {}

  // The columns of y.
  [[nodiscard]] static std::int64_t columns(std::int64_t heads) noexcept { return 2 * heads; }
  // Those rows as [H, 2 N − 1].
  [[nodiscard]] static View<float, 2> by_distance(const View<float, 2>& y) noexcept;

  // Where some of the tokens are here alone, who attends makes biases of all distances by itself.
  void forward(const GraphCall& call, const RowRange& rows) const override;
  // The gradient of the table is added to by who attends with it.
  void backward(const GraphCall&, const RowRange&) override {}
  [[nodiscard]] bool keeps_input(std::size_t) const noexcept override { return false; }
  [[nodiscard]] bool goes_by_rows() const noexcept override { return false; }

 private:
  RelativeBiasSpec spec_;
  const MatrixParameter& table_;
};

// The biases by_distance [H, 2 N − 1], with room for H numbers behind them.
void fill_by_distance(const RelativeBiasSpec& spec, const MatrixParameter& table, const View<float, 2>& by_distance);
// The same as the bias of an attention over N tokens.
[[nodiscard]] View<const float, 4> as_bias(const View<const float, 2>& by_distance) noexcept;

// The memory of gradients by distance, of an attention with such a bias over so many tokens.
[[nodiscard]] inline std::size_t distance_bytes(const AttentionSpec& spec, std::int64_t tokens) noexcept {
  if (tokens == 0) return 0;
  return static_cast<std::size_t>(spec.heads) * static_cast<std::size_t>(2 * tokens - 1) * sizeof(float);
}

// Adds gradients by distance [H, 2 N − 1] to that of the table.
void add_bucket_gradients(const RelativeBiasSpec& spec, View<const float, 2> by_distance, MatrixParameter& table);

}  // namespace headlight::layers
