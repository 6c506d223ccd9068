#include "mpi/distance_gradients.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "mpi/attention_backward_parts.h"
#include "mpi/call.h"
#include "mpi/check_shares.h"
#include "mpi/group.h"
#include "mpi/key_broadcast.h"
#include "ops/attention_backward/bias.h"
#include "ops/attention_backward/run.h"
#include "runtime/parallel.h"

namespace headlight::mpi {
namespace {

constexpr std::string_view kDistances = "mpi::SequenceAttention::differentiate_distances";

// Some rows of one shard, whose keys come. Pairs of a distance are added in ascending order of rows, whatever the
// blocks of keys: as one process adds them up.
class DistanceRows final : public BackwardPart {
 public:
  // `rows` hold those from first_query on; `sums` [H, Lq + Lk − 1] are those of their shard.
  DistanceRows(Engine& engine, const Whole& whole, std::int64_t first_query, const ops::AttentionBackwardOperands& rows,
               const View<float, 2>& sums)
      : BackwardPart(engine, whole, first_query, rows.query.extent(1), whole.sizes.key_length),
        first_query_(first_query),
        sums_(sums),
        delta_({rows.query.extent(0), rows.query.extent(2), rows.query.extent(1)}) {
    operands_ = rows;
    call_.deltas = delta_.data();
    plan_workers(engine, call_.sizes.query_heads);
  }

  [[nodiscard]] std::size_t scratch_bytes() const noexcept { return call_.plan.bytes(); }
  void begin(Engine& engine) noexcept { ops::begin_rows(engine, call_); }

  // Goes on with blocks of keys as QueryGradientRows does.
  void attend(Engine& engine, const Keys& keys, const Received& received) {
    const runtime::Scratch scratch(engine, call_.plan.bytes(), kDistances);
    call_.scratch = scratch.data();
    call_.keys = {keys.key, keys.value, received.first};
    runtime::parallel_for(engine, call_.sizes.query_heads, call_.plan.workers, [&](std::int64_t head, int worker) {
      attend_head(head, worker, received.from, received.to);
    });
  }

 private:
  void attend_head(std::int64_t head, int worker, std::int64_t from, std::int64_t to) noexcept {
    const std::int64_t zero = whole_.sizes.query_length - 1 - first_query_;
    for_each_block(0, 0, call_.sizes.query_length, from, to,
                   [&](const ops::AttentionSequence& sequence, std::int64_t key, std::int64_t keys,
                       std::int64_t first_row, std::int64_t last_row) {
                     ops::BackwardBlock block(call_, worker, 0, head / call_.sizes.group, sequence, key, keys);
                     block.tile().cap_derivatives = nullptr;  // what is added is added behind the cap
                     for (std::int64_t row = first_row; row < last_row; row += call_.plan.query_block) {
                       if (!block.take_rows(head, row, std::min(call_.plan.query_block, last_row - row))) continue;
                       call_.backward.products.float_score_gradients(block.tile());
                       const std::int64_t first = sequence.first_key + key - sequence.first_query - row + zero;
                       ops::add_to_distances(block.tile(), first, &sums_(head, 0));
                     }
                   });
  }

  std::int64_t first_query_;
  View<float, 2> sums_;
  Tensor<float, 3> delta_;
};

// Everything that a call needs memory for before it begins.
class Distances {
 public:
  Distances(Engine& engine, const Call& call, const AttentionOptions& options,
            const ops::AttentionBackwardOperands& shares, const RowShards& shards, const View<float, 3>& distances)
      : engine_(engine),
        whole_{call.here, call.options_of(options), call.heads, ops::backward_kernels_of_types(engine, shares, {})},
        keys_(call, backward_blocks(engine, whole_.kernels.attention, call.here).keys) {
    for (std::int64_t row = 0; row < distances.extent(0) * distances.extent(1); ++row) {
      std::fill_n(&distances(row / distances.extent(1), row % distances.extent(1), 0), distances.extent(2), 0.0f);
    }
    const std::int64_t most =
        rows_at_once(engine, call, call.here.query_heads, call.here.head_dim + call.here.value_dim);
    for (const RowShards::Part& part : shards.parts()) {
      const Run run = {part.whole, part.count};
      for (const Run& some : cut_runs({&run, 1}, whole_.options.query_offsets, most)) {
        const std::int64_t at = part.first + some.first - part.whole;
        const ops::AttentionBackwardOperands rows = {
            .query = some_rows(shares.query, at, some.count),
            .key = {},
            .value = {},
            .out = some_rows(shares.out, at, some.count),
            .log_sum_exp = some_rows(shares.log_sum_exp, at, some.count),
            .out_gradient = some_rows(shares.out_gradient, at, some.count),
            .log_sum_exp_gradient = some_rows(shares.log_sum_exp_gradient, at, some.count)};
        const View<float, 2> sums(&distances(part.shard, 0, 0), {distances.extent(1), distances.extent(2)},
                                  {distances.stride(1), distances.stride(2)});
        rows_.push_back(std::make_unique<DistanceRows>(engine, whole_, some.first, rows, sums));
      }
    }
    std::size_t bytes = 0;
    for (const auto& rows : rows_) bytes = std::max(bytes, rows->scratch_bytes());
    // The engine keeps it for the calls to come.
    const runtime::Scratch scratch(engine, bytes, kDistances);
  }

  void run(Transport& transport, const Keys& share, Statistics& statistics) {
    for (const auto& rows : rows_) {
      rows->begin(engine_);
      transport.progress();
    }
    keys_.run(transport, share, statistics, [&](const Keys& keys, const Received& received, const auto& progress) {
      for (const auto& rows : rows_) {
        rows->attend(engine_, keys, received);
        progress();
      }
    });
  }

 private:
  Engine& engine_;
  BackwardPart::Whole whole_;
  KeyBroadcast keys_;
  std::vector<std::unique_ptr<DistanceRows>> rows_;
};

}  // namespace

Statistics differentiate_distances(Group& group, Engine& engine, const AttentionShape& whole,
                                   const ops::AttentionBackwardOperands& shares, const RowShards& shards,
                                   const View<float, 3>& distances, const AttentionOptions& options, Spread spread) {
  spread.head_ranks = 1;
  Transport& transport = group.state().transport;
  Statistics statistics;
  Call call;
  std::optional<Distances> work;
  const Stopwatch all(statistics.seconds);
  together(
      transport, record_of(kDistances, engine, whole, options, spread), statistics.exchange_seconds,
      [&] {
        call = make_call(kDistances, whole, options, transport.rank(), transport.size(), spread);
        check_distance_shares(kDistances, call, shares, shards.count(), distances, options);
        if (const std::int64_t rows = shares.query.extent(1); rows != shards.row_count()) {
          ops::fail(kDistances, "query has ", rows, " rows, expected ", shards.row_count(), ", those of the shards");
        }
        work.emplace(engine, call, options, shares, shards, distances);
      },
      [&] {
        work->run(transport, {shares.key, shares.value}, statistics);
      });
  return statistics;
}

}  // namespace headlight::mpi
