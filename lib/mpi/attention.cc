#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "headlight/tensor.h"
#include "kernels/kernels.h"
#include "mpi/call.h"
#include "mpi/check_shares.h"
#include "mpi/exchange.h"
#include "mpi/group.h"
#include "mpi/key_travel.h"
#include "ops/attention_running.h"
#include "runtime/parallel.h"

namespace headlight::mpi {
namespace {

constexpr std::string_view kName = "mpi::attention";

// One run of the rows that this rank works on: a call of its own, whose sequences are those of the whole.
struct RunOfRows {
  RunOfRows(const Engine& engine, const Call& call, const AttentionOptions& options_, const Run& run,
            const View<const float, 4>& query, const View<float, 4>& out, const View<float, 3>& log_sum_exp)
      : options(options_), attention(make(engine, call, options, run)) {
    options.log_sum_exp = log_sum_exp;
    attention.query = query;
    attention.out = out;
    rows.emplace(attention, true);
  }
  RunOfRows(const RunOfRows&) = delete;
  RunOfRows& operator=(const RunOfRows&) = delete;

  static ops::AttentionCall make(const Engine& engine, const Call& call, const AttentionOptions& options,
                                 const Run& run) noexcept {
    ops::AttentionSizes sizes = call.here;
    sizes.query_length = run.count;
    const ops::AttentionScale scale = ops::scale_of(options, sizes.head_dim);
    return {.query = {},
            .keys = {},
            .out = {},
            .options = options,
            .sizes = sizes,
            .sequences = {options, call.whole.query_length, call.whole.key_length, run.first},
            .kernels = kernels::attention_kernels(engine.isa()),
            .plan = ops::plan_running_rows(engine, sizes, call.piece(), options),
            .scale = scale,
            .steps = ops::score_steps(options, scale.exponent_scale),
            .dropout = ops::dropout_of(options),
            .heads = call.heads,
            .scratch = nullptr};
  }

  AttentionOptions options;
  ops::AttentionCall attention;
  std::optional<ops::RunningRows> rows;
};

// Everything that a call needs memory for, but for exchanges, before it begins.
class Forward {
 public:
  // Rows that this rank's row of the grid holds, of the heads that it works on.
  Forward(Engine& engine, const Call& call, const AttentionOptions& options)
      : engine_(engine),
        call_(call),
        options_(call.options_of(options)),
        keys_(call, ops::attention_key_block(call.here)) {}

  void hold(const View<const float, 4>& query, const View<float, 4>& out, const View<float, 3>& log_sum_exp) {
    std::int64_t at = 0;
    std::size_t bytes = 0;
    const std::int64_t most =
        rows_at_once(engine_, call_, call_.here.query_heads, call_.here.head_dim + call_.here.value_dim);
    for (const Run& run : cut_runs(call_.queries.of_row, options_.query_offsets, most)) {
      runs_.push_back(std::make_unique<RunOfRows>(engine_, call_, options_, run, some_rows(query, at, run.count),
                                                  some_rows(out, at, run.count),
                                                  some_rows(log_sum_exp, at, run.count)));
      bytes = std::max(bytes, runs_.back()->attention.plan.bytes());
      at += run.count;
    }
    scratch_.emplace(engine_, bytes, kName);
    for (const auto& run : runs_) run->attention.scratch = scratch_->data();
  }

  void run(Transport& transport, const View<const float, 4>& key, const View<const float, 4>& value,
           Statistics& statistics) {
    keys_.run(transport, key, value, statistics,
              [&](const View<const float, 4>& keys, const View<const float, 4>& values, const Arrived& arrived,
                  const auto& poll) {
                for (const auto& rows : runs_) {
                  rows->attention.keys = {keys, values, arrived.first};
                  rows->rows->attend(engine_, arrived.from, arrived.to);
                  poll();
                }
              });
    for (const auto& rows : runs_) {
      rows->rows->finish(engine_);
      transport.poll();
    }
  }

 private:
  Engine& engine_;
  const Call& call_;
  AttentionOptions options_;
  KeyTravel keys_;
  std::vector<std::unique_ptr<RunOfRows>> runs_;
  std::optional<runtime::Scratch> scratch_;
};

// What is exchanged before and behind it where ranks share out the heads.
void run_by_heads(Transport& transport, const Call& call, Forward& forward, const View<const float, 4>& query,
                  const View<const float, 4>& key, const View<const float, 4>& value, const View<float, 4>& out,
                  const View<float, 3>& log_sum_exp, Statistics& statistics) {
  const auto gather = [&](const Holding& holding, const View<const float, 4>& share) {
    const Stopwatch exchanging(statistics.exchange_seconds);
    return gather_rows(transport, call.grid, holding, share);
  };
  const Tensor<float, 4> rows = gather(call.queries, query), keys = gather(call.keys, key),
                         values = gather(call.keys, value);
  Tensor<float, 4> result({call.here.batch, rows.shape()[1], call.here.query_heads, call.here.value_dim});
  Tensor<float, 4> sums({call.here.batch, rows.shape()[1], call.here.query_heads, 1});
  forward.hold(rows, result, is_given(log_sum_exp) ? as_numbers(sums.view()) : View<float, 3>());
  forward.run(transport, keys, values, statistics);
  const Stopwatch exchanging(statistics.exchange_seconds);
  scatter_rows(transport, call.grid, call.queries, result, out);
  if (is_given(log_sum_exp)) scatter_rows(transport, call.grid, call.queries, sums, as_rows(log_sum_exp));
}

}  // namespace

Statistics attention(Group& group, Engine& engine, const AttentionShape& whole, View<const float, 4> query,
                     View<const float, 4> key, View<const float, 4> value, View<float, 4> out,
                     const AttentionOptions& options, const Spread& spread) {
  Transport& transport = group.state().transport;
  Statistics statistics;
  Call call;
  std::optional<Forward> forward;
  Record record = record_of(kName, engine, whole, options, spread);
  record.emplace_back("options.log_sum_exp", is_given(options.log_sum_exp) ? "given" : "not given");
  {
    const Stopwatch all(statistics.seconds);
    together(
        transport, record, statistics.exchange_seconds,
        [&] {
          call = make_call(kName, whole, options, transport.rank(), transport.size(), spread);
          check_shares(kName, call, query, key, value, out, options);
          forward.emplace(engine, call, options);
          if (call.grid.head_ranks == 1) forward->hold(query, out, options.log_sum_exp);
        },
        [&] {
          if (call.grid.head_ranks == 1) return forward->run(transport, key, value, statistics);
          run_by_heads(transport, call, *forward, query, key, value, out, options.log_sum_exp, statistics);
        });
  }
  return statistics;
}

}  // namespace headlight::mpi
