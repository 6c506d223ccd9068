// Gradients of sinks, which every rank of a column adds up from the rows that are broadcast.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "mpi/call.h"
#include "mpi/messages.h"
#include "ops/attention_backward/run.h"

namespace headlight::mpi {

// Those of this rank's heads: of each sample over rows as they come, in ascending order, then over
// samples, as one process adds them up.
class SinkSums {
 public:
  SinkSums(const Call& call, const AttentionOptions& options)
      : call_(call), sinks_(options.sinks), sums_(static_cast<std::size_t>(call.here.batch * call.here.query_heads)) {}

  // Rows `from` … of [B, n, Hkv, 1], of head `series` of each group.
  void take(std::int64_t series, std::int64_t from, const View<const float, 4>& log_sum_exp,
            const View<const float, 4>& delta) noexcept {
    for (std::int64_t b = 0; b < log_sum_exp.extent(0); ++b) {
      for (std::int64_t i = from; i < log_sum_exp.extent(1); ++i) {
        for (std::int64_t of_keys = 0; of_keys < log_sum_exp.extent(2); ++of_keys) {
          const std::int64_t head = of_keys * call_.here.group + series;
          sums_[static_cast<std::size_t>(b * call_.here.query_heads + head)] += ops::sink_part(
              sinks_[static_cast<std::size_t>(head)], log_sum_exp(b, i, of_keys, 0), delta(b, i, of_keys, 0));
        }
      }
    }
  }

  // All heads', of which the ranks of a row have some each.
  void finish(Transport& transport, const View<float, 1>& gradient) const {
    const auto heads = static_cast<std::size_t>(call_.here.query_heads);
    const int ranks = call_.grid.head_ranks;
    Messages messages(static_cast<std::size_t>(ranks) + 1);
    messages.make(static_cast<std::size_t>(ranks), heads * sizeof(float));
    float* const own = messages.floats(static_cast<std::size_t>(ranks));
    for (std::size_t h = 0; h < heads; ++h) {
      double sum = 0;
      for (std::size_t b = 0; b < static_cast<std::size_t>(call_.here.batch); ++b) sum += sums_[b * heads + h];
      own[h] = 0.0f - static_cast<float>(sum);
    }
    for (int column = 0; column < ranks; ++column) {
      if (column == call_.grid.column) continue;
      messages.make(static_cast<std::size_t>(column), heads * sizeof(float));
      messages.send(transport, call_.grid.rank_at(call_.grid.row, column), static_cast<std::size_t>(ranks));
      messages.receive(transport, call_.grid.rank_at(call_.grid.row, column), static_cast<std::size_t>(column));
    }
    transport.wait(messages.requests);
    for (int column = 0; column < ranks; ++column) {
      const float* const of = column == call_.grid.column ? own : messages.floats(static_cast<std::size_t>(column));
      for (std::size_t h = 0; h < heads; ++h) {
        gradient(column * call_.here.query_heads + static_cast<std::int64_t>(h)) = of[h];
      }
    }
  }

 private:
  const Call& call_;
  std::span<const float> sinks_;
  std::vector<double> sums_;  // [B, H]
};

}  // namespace headlight::mpi
