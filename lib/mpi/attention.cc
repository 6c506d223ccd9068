#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "headlight/tensor.h"
#include "kernels/kernels.h"
#include "mpi/call.h"
#include "mpi/check_shares.h"
#include "mpi/distance_bias.h"
#include "mpi/exchange.h"
#include "mpi/group.h"
#include "mpi/key_broadcast.h"
#include "ops/attention/running.h"
#include "ops/attention/typed_kernels.h"
#include "ops/typed_check.h"
#include "runtime/parallel.h"

namespace headlight::mpi {
namespace {

constexpr std::string_view kAttention = "mpi::attention";

// One run of the rows that this rank works on: a call of its own, whose sequences are those of the whole.
struct RunOfRows {
  RunOfRows(const Engine& engine, const Call& call, const kernels::AttentionKernels& kernels,
            const AttentionOptions& options_, const Run& run, const TypedView<4>& query, const MutableTypedView<4>& out,
            const View<float, 3>& log_sum_exp)
      : options(of_rows(options_, run)), attention(make(engine, call, kernels, options, run, query.type)) {
    options.log_sum_exp = log_sum_exp;
    attention.query = query;
    attention.out = out;
    rows.emplace(attention, true);
  }
  RunOfRows(const RunOfRows&) = delete;
  RunOfRows& operator=(const RunOfRows&) = delete;

  static AttentionOptions of_rows(AttentionOptions options, const Run& run) noexcept {
    options.bias = rows_of_bias(options.bias, run.first, run.count);
    return options;
  }

  static ops::AttentionCall make(const Engine& engine, const Call& call, const kernels::AttentionKernels& kernels,
                                 const AttentionOptions& options, const Run& run, NumberType query) noexcept {
    ops::AttentionSizes sizes = call.here;
    sizes.query_length = run.count;
    const ops::AttentionScale scale = ops::scale_of(options, sizes.head_dim);
    return {.query = {},
            .keys = {},
            .out = {},
            .options = options,
            .sizes = sizes,
            .sequences = {options, call.whole.query_length, call.whole.key_length, run.first},
            .kernels = kernels,
            .plan = ops::plan_running_rows(engine, kernels, sizes, call.segment_rows(), options, query),
            .scale = scale,
            .modifiers = ops::score_modifiers(options, scale.exponent_scale),
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
  // `shares`: for their types.
  Forward(Engine& engine, const Call& call, const AttentionOptions& options, const ops::AttentionOperands& shares)
      : engine_(engine),
        call_(call),
        kernels_(kernels_of(engine, shares)),
        options_(call.options_of(options)),
        keys_(call, ops::attention_key_block(call.here), shares.key.type, shares.value.type) {}

  // Rows that this rank's row of the grid holds, of the heads that it works on.
  void hold(const TypedView<4>& query, const MutableTypedView<4>& out, const View<float, 3>& log_sum_exp) {
    std::int64_t at = 0;
    std::size_t bytes = 0;
    const std::int64_t most =
        rows_at_once(engine_, call_, call_.here.query_heads, call_.here.head_dim + call_.here.value_dim);
    for (const Run& run : cut_runs(call_.queries.of_row, options_.query_offsets, most)) {
      runs_.push_back(std::make_unique<RunOfRows>(engine_, call_, kernels_, options_, run,
                                                  some_rows(query, at, run.count), some_rows(out, at, run.count),
                                                  some_rows(log_sum_exp, at, run.count)));
      bytes = std::max(bytes, runs_.back()->attention.plan.bytes());
      at += run.count;
    }
    scratch_.emplace(engine_, bytes, kAttention);
    for (const auto& run : runs_) run->attention.scratch = scratch_->data();
  }

  void run(Transport& transport, const Keys& keys, Statistics& statistics) {
    keys_.run(transport, keys, statistics, [&](const Keys& here, const Received& received, const auto& progress) {
      for (const auto& rows : runs_) {
        rows->attention.keys = {here.key, here.value, here.key_scales, here.value_scales, received.first};
        rows->rows->attend(engine_, received.from, received.to);
        progress();
      }
    });
    for (const auto& rows : runs_) {
      rows->rows->finish(engine_);
      transport.progress();
    }
  }

 private:
  static kernels::AttentionKernels kernels_of(const Engine& engine, const ops::AttentionOperands& shares) noexcept {
    const bool all_floats = shares.query.type == NumberType::float32 && shares.key.type == NumberType::float32 &&
                            shares.value.type == NumberType::float32 && shares.out.type == NumberType::float32;
    return all_floats ? kernels::attention_kernels(engine.isa())
                      : ops::kernels_of_types(engine, shares.query, shares.key, shares.value);
  }

  Engine& engine_;
  const Call& call_;
  kernels::AttentionKernels kernels_;
  AttentionOptions options_;
  KeyBroadcast keys_;
  std::vector<std::unique_ptr<RunOfRows>> runs_;
  std::optional<runtime::Scratch> scratch_;
};

// What is exchanged before and behind it where ranks share out the heads.
void run_by_heads(Transport& transport, const Call& call, Forward& forward, const ops::AttentionOperands& shares,
                  const View<float, 3>& log_sum_exp, Statistics& statistics) {
  const auto gather = [&](const Holding& holding, const TypedView<4>& share) {
    const Stopwatch exchanging(statistics.exchange_seconds);
    return gather_rows(transport, call.grid, holding, share);
  };
  const auto gather_scales = [&](const View<const float, 3>& scales) {
    return is_given(scales) ? gather(call.keys, ops::each_scale(scales)) : TypedTensor();
  };
  const TypedTensor query = gather(call.queries, shares.query), key = gather(call.keys, shares.key),
                    value = gather(call.keys, shares.value), key_scales = gather_scales(shares.key_scales),
                    value_scales = gather_scales(shares.value_scales);
  const TypedView<4>::Shape& rows = query.view().shape;
  const TypedTensor out(shares.out.type, {rows[0], rows[1], rows[2], call.here.value_dim});
  Tensor<float, 4> sums({rows[0], rows[1], rows[2], 1});
  forward.hold(query.view(), out.view(), is_given(log_sum_exp) ? as_numbers(sums.view()) : View<float, 3>());
  forward.run(transport, {key.view(), value.view(), as_scales(key_scales.view()), as_scales(value_scales.view())},
              statistics);
  const Stopwatch exchanging(statistics.exchange_seconds);
  scatter_rows(transport, call.grid, call.queries, out.view(), shares.out);
  if (is_given(log_sum_exp)) scatter_rows(transport, call.grid, call.queries, sums, as_rows(log_sum_exp));
}

// What all ranks must say alike beside the options.
void add_types(const Engine& engine, const ops::AttentionOperands& shares, Record& record) {
  for (const auto& [name, type] : {std::pair{"the type of query", shares.query.type},
                                   {"the type of key", shares.key.type},
                                   {"the type of value", shares.value.type},
                                   {"the type of out", shares.out.type}}) {
    record.emplace_back(name, ops::type_name(type));
  }
  if (!ops::are_pairs_of_bfloat16(shares.query, shares.key, shares.value)) return;
  const bool pairs = kernels::pair_attention_kernels(engine.features()) != nullptr;
  record.emplace_back("products of bfloat16", pairs ? "of pairs" : "of widened numbers");
}

}  // namespace

Statistics attention(Group& group, Engine& engine, const AttentionShape& whole, const TypedView<4>& query,
                     const TypedView<4>& key, const TypedView<4>& value, const MutableTypedView<4>& out,
                     const AttentionOptions& options, const Spread& spread) {
  const ops::AttentionOperands shares = {query, key, value, out, options.key_scales, options.value_scales};
  Transport& transport = group.state().transport;
  Statistics statistics;
  Call call;
  std::optional<Forward> forward;
  Record record = record_of(kAttention, engine, whole, options, spread);
  record.emplace_back("options.log_sum_exp", is_given(options.log_sum_exp) ? "given" : "not given");
  add_types(engine, shares, record);
  {
    const Stopwatch all(statistics.seconds);
    together(
        transport, record, statistics.exchange_seconds,
        [&] {
          call = make_call(kAttention, whole, options, transport.rank(), transport.size(), spread);
          check_shares(kAttention, call, shares, options);
          forward.emplace(engine, call, options, shares);
          if (call.grid.head_ranks == 1) forward->hold(shares.query, shares.out, options.log_sum_exp);
        },
        [&] {
          if (call.grid.head_ranks > 1)
            return run_by_heads(transport, call, *forward, shares, options.log_sum_exp, statistics);
          forward->run(transport, {shares.key, shares.value, shares.key_scales, shares.value_scales}, statistics);
        });
  }
  return statistics;
}

}  // namespace headlight::mpi
