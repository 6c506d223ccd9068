#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "headlight/tensor.h"
#include "mpi/call.h"
#include "mpi/check_shares.h"
#include "mpi/exchange.h"
#include "mpi/group.h"
#include "mpi/key_travel.h"
#include "mpi/sink_sums.h"
#include "ops/attention_backward_parts.h"
#include "ops/attention_masks.h"
#include "runtime/parallel.h"

namespace headlight::mpi {
namespace {

constexpr std::string_view kName = "mpi::attention_backward";

// Rows of queries on their way: of each the queries, the output gradients, log-sum-exps and δ of one head of each
// group, in the order in which one process adds up the gradients of keys and values: all rows of the group's first
// head, then those of its next.
std::vector<Stop> row_stops(const Call& call) {
  std::vector<Stop> stops;
  for (std::int64_t g = 0; g < call.here.group; ++g) {
    for (Stop stop : call.stops_of(call.queries)) {
      stop.series = g;
      stops.push_back(stop);
    }
  }
  return stops;
}

// Everything that a call needs memory for, but for exchanges, before it begins.
class Backward {
 public:
  Backward(Engine& engine, const Call& call, const AttentionOptions& options)
      : engine_(engine),
        call_(call),
        whole_{call.here, call.options_of(options), call.heads},
        blocks_(ops::backward_blocks(engine, call.here)),
        keys_(call, blocks_.keys),
        records_{call.here.batch,
                 call.here.key_value_heads,
                 {Field{call.here.head_dim}, Field{call.here.value_dim}, Field{1}, Field{1}}},
        travelling_(row_stops(call), call.grid.column_ranks(), records_.bytes(), call.carry(blocks_.rows),
                    call.pieces()),
        delta_({call.here.batch * call.here.key_value_heads * (call.piece() + call.carry(blocks_.rows))}),
        sinks_(call, whole_.options) {}

  // What this rank's row of the grid holds, of the heads that the rank works on.
  void hold(const BackwardShares& of_row) {
    shares_ = of_row;
    std::size_t bytes = 0;
    std::int64_t at = 0;
    const std::int64_t head_dim = call_.here.head_dim, value_dim = call_.here.value_dim;
    const AttentionOptions& options = whole_.options;
    const std::int64_t most_rows = rows_at_once(engine_, call_, call_.here.query_heads, 2 * head_dim + value_dim);
    for (const Run& run : cut_runs(call_.queries.of_row, options.query_offsets, most_rows)) {
      const auto some = [&](const auto& view) { return some_rows(view, at, run.count); };
      const View<float, 4> gradient =
          is_given(of_row.gradients.query) ? some(of_row.gradients.query) : View<float, 4>();
      rows_.push_back(std::make_unique<ops::QueryGradientRows>(engine_, whole_, run.first, some(of_row.query),
                                                               some(of_row.out), some(of_row.log_sum_exp),
                                                               some(of_row.out_gradient), gradient));
      bytes = std::max(bytes, rows_.back()->scratch_bytes());
      at += run.count;
    }
    at = 0;
    const bool of_keys = is_given(of_row.gradients.key) || is_given(of_row.gradients.value);
    // Rows come with one head of each group.
    const std::int64_t most_keys = rows_at_once(engine_, call_, call_.here.key_value_heads, 2 * (head_dim + value_dim));
    for (const Run& run : cut_runs(of_keys ? std::span<const Run>(call_.keys.of_row) : std::span<const Run>(),
                                   ops::packed_key_offsets(options), most_keys)) {
      const auto some = [&](const View<float, 4>& view) {
        return is_given(view) ? some_rows(view, at, run.count) : View<float, 4>();
      };
      kept_keys_.push_back(std::make_unique<ops::KeyGradientKeys>(
          engine_, whole_, run.first, some_rows(of_row.key, at, run.count), some_rows(of_row.value, at, run.count),
          some(of_row.gradients.key), some(of_row.gradients.value)));
      bytes = std::max(bytes, kept_keys_.back()->scratch_bytes(engine_));
      at += run.count;
    }
    // The engine keeps it for the calls to come.
    const runtime::Scratch scratch(engine_, bytes, kName);
  }

  void run(Transport& transport, Statistics& statistics) {
    for (const auto& rows : rows_) {
      rows->begin(engine_);
      transport.poll();
    }
    for (const auto& keys : kept_keys_) {
      keys->begin();
      transport.poll();
    }
    const Gradients& gradients = shares_.gradients;
    if (is_given(gradients.query)) run_rows(transport, statistics);
    if (is_given(gradients.key) || is_given(gradients.value) || gradients.sinks) run_keys(transport, statistics);
    if (gradients.sinks) sinks_.finish(transport, gradients.sinks);
  }

 private:
  // Query gradients, while keys travel.
  void run_rows(Transport& transport, Statistics& statistics) {
    keys_.run(transport, {shares_.key, shares_.value}, statistics,
              [&](const Keys& keys, const Arrived& arrived, const auto& poll) {
                for (const auto& rows : rows_) {
                  rows->attend(engine_, as_floats(keys.key), as_floats(keys.value), arrived.first, arrived.from,
                               arrived.to);
                  poll();
                }
              });
  }

  // Gradients of keys, values and sinks, while rows travel.
  void run_keys(Transport& transport, Statistics& statistics) {
    travelling_.begin(transport, [&](const Stop& stop, std::byte* rows) { pack_rows(stop, rows); });
    while (!travelling_.done()) {
      const Arrived arrived = travelling_.next();
      const std::int64_t count = arrived.to - arrived.first;
      const ops::KeyGradientKeys::Rows rows = {arrived.series,
                                               arrived.first,
                                               records_.floats(arrived.rows, count, 0),
                                               records_.floats(arrived.rows, count, 1),
                                               as_numbers(records_.floats(arrived.rows, count, 2)),
                                               delta_.data()};
      copy_numbers(as_numbers(records_.floats(arrived.rows, count, 3)), delta_.data());
      if (shares_.gradients.sinks) {
        sinks_.take(arrived.series, arrived.from - arrived.first, records_.floats(arrived.rows, count, 2),
                    records_.floats(arrived.rows, count, 3));
      }
      for (const auto& keys : kept_keys_) {
        keys->attend(engine_, rows, arrived.from, arrived.to);
        travelling_.poll();
      }
    }
    for (const auto& keys : kept_keys_) {
      keys->finish(engine_);
      travelling_.poll();
    }
    travelling_.finish();
    travelling_.tell(statistics);
  }

  static void copy_numbers(const View<const float, 3>& from, float* to) noexcept {
    for (std::int64_t b = 0; b < from.extent(0); ++b) {
      for (std::int64_t h = 0; h < from.extent(1); ++h) {
        for (std::int64_t i = 0; i < from.extent(2); ++i) *to++ = from(b, h, i);
      }
    }
  }

  void pack_rows(const Stop& stop, std::byte* rows) {
    const std::int64_t place = place_in(call_.queries.of_row, stop.first);
    const auto pack = [&](const View<const float, 4>& tensor, std::int64_t first, std::size_t field) {
      copy_rows(some_heads(some_rows(tensor, first, stop.count), stop.series, call_.here.group),
                records_(rows, stop.count, field));
    };
    pack(shares_.query, place, 0);
    pack(shares_.out_gradient, place, 1);
    pack(as_rows(shares_.log_sum_exp), place, 2);
    const View<float, 4> delta = records_.floats(rows, stop.count, 3);
    for (const auto& run : rows_) {
      const std::int64_t begin = run->first_query();
      const std::int64_t first = std::max(begin, stop.first);
      const std::int64_t count = std::min(begin + run->delta().shape()[2], stop.first + stop.count) - first;
      if (count <= 0) continue;
      copy_rows(
          some_heads(some_rows(as_rows(run->delta().view()), first - begin, count), stop.series, call_.here.group),
          some_rows(delta, first - stop.first, count));
    }
  }

  Engine& engine_;
  const Call& call_;
  ops::BackwardPart::Whole whole_;
  ops::BackwardBlocks blocks_;
  KeyTravel keys_;
  Records<4> records_;
  Travelling travelling_;
  Tensor<float, 1> delta_;  // of the rows that have come: [B, Hkv, n]
  SinkSums sinks_;
  BackwardShares shares_{};
  std::vector<std::unique_ptr<ops::QueryGradientRows>> rows_;
  std::vector<std::unique_ptr<ops::KeyGradientKeys>> kept_keys_;
};

// What is exchanged before and behind it where ranks share out the heads.
void run_by_heads(Transport& transport, const Call& call, Backward& backward, const BackwardShares& shares,
                  Statistics& statistics) {
  const auto gather = [&](const Holding& holding, const View<const float, 4>& share) {
    const Stopwatch exchanging(statistics.exchange_seconds);
    return gather_floats(transport, call.grid, holding, share);
  };
  const auto scatter = [&](const Holding& holding, const Tensor<float, 4>& rows, const View<float, 4>& share) {
    const Stopwatch exchanging(statistics.exchange_seconds);
    if (is_given(share)) scatter_rows(transport, call.grid, holding, rows, share);
  };
  const auto like = [](const View<float, 4>& wanted, const Tensor<float, 4>& rows) {
    return is_given(wanted) ? Tensor<float, 4>(rows.shape()) : Tensor<float, 4>();
  };
  const Tensor<float, 4> query = gather(call.queries, shares.query), key = gather(call.keys, shares.key),
                         value = gather(call.keys, shares.value), out = gather(call.queries, shares.out),
                         out_gradient = gather(call.queries, shares.out_gradient),
                         log_sum_exp = gather(call.queries, as_rows(shares.log_sum_exp));
  const Gradients& wanted = shares.gradients;
  Tensor<float, 4> of_query = like(wanted.query, query), of_key = like(wanted.key, key),
                   of_value = like(wanted.value, value);
  backward.hold({query,
                 key,
                 value,
                 out,
                 as_numbers(log_sum_exp.view()),
                 out_gradient,
                 {of_query, of_key, of_value, wanted.sinks}});
  backward.run(transport, statistics);
  scatter(call.queries, of_query, wanted.query);
  scatter(call.keys, of_key, wanted.key);
  scatter(call.keys, of_value, wanted.value);
}

}  // namespace

Statistics attention_backward(Group& group, Engine& engine, const AttentionShape& whole, View<const float, 4> query,
                              View<const float, 4> key, View<const float, 4> value, View<const float, 4> out,
                              View<const float, 3> log_sum_exp, View<const float, 4> out_gradient,
                              const Gradients& gradients, const AttentionOptions& options, const Spread& spread) {
  Transport& transport = group.state().transport;
  Statistics statistics;
  Call call;
  std::optional<Backward> backward;
  const BackwardShares shares = {query, key, value, out, log_sum_exp, out_gradient, gradients};
  Record record = record_of(kName, engine, whole, options, spread);
  for (const auto& [name, view] : {std::pair{"gradients.query", gradients.query},
                                   {"gradients.key", gradients.key},
                                   {"gradients.value", gradients.value}}) {
    record.emplace_back(name, is_given(view) ? "given" : "not given");
  }
  record.emplace_back("gradients.sinks", gradients.sinks ? "given" : "not given");
  {
    const Stopwatch all(statistics.seconds);
    together(
        transport, record, statistics.exchange_seconds,
        [&] {
          call = make_call(kName, whole, options, transport.rank(), transport.size(), spread);
          check_backward_shares(kName, call, shares, options);
          backward.emplace(engine, call, options);
          if (call.grid.head_ranks == 1) backward->hold(shares);
        },
        [&] {
          if (call.grid.head_ranks == 1) return backward->run(transport, statistics);
          run_by_heads(transport, call, *backward, shares, statistics);
        });
  }
  return statistics;
}

}  // namespace headlight::mpi
