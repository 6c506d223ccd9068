#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "headlight/tensor.h"
#include "mpi/attention_backward_parts.h"
#include "mpi/call.h"
#include "mpi/check_shares.h"
#include "mpi/exchange.h"
#include "mpi/group.h"
#include "mpi/key_broadcast.h"
#include "mpi/sink_sums.h"
#include "ops/attention/masks.h"
#include "ops/attention/typed_kernels.h"
#include "ops/attention_backward/kernels.h"
#include "ops/typed_check.h"
#include "runtime/parallel.h"
#include "simd/integers.h"

namespace headlight::mpi {
namespace {

constexpr std::string_view kAttentionBackward = "mpi::attention_backward";

// Rows of queries on their way: of each the queries, the output gradients, log-sum-exps and δ of one head of each
// group, in the order in which one process adds up the gradients of keys and values: all rows of the group's first
// head, then those of its next.
std::vector<Segment> row_segments(const Call& call) {
  std::vector<Segment> segments;
  for (std::int64_t g = 0; g < call.here.group; ++g) {
    for (Segment segment : call.segments_of(call.queries)) {
      segment.series = g;
      segments.push_back(segment);
    }
  }
  return segments;
}

// What is asked of attention_backward() in one process.
TypedAttentionGradients gradients_of_tensors(const Gradients& gradients) noexcept {
  return {.query = gradients.query, .key = gradients.key, .value = gradients.value};
}

// What a rank works on in pass n of so many: of those parts that it has, neighbours.
template <class Part>
std::span<const std::unique_ptr<Part>> parts_of_pass(const std::vector<std::unique_ptr<Part>>& parts, std::int64_t n,
                                                     std::int64_t passes) noexcept {
  const auto count = static_cast<std::int64_t>(parts.size());
  const std::int64_t first = runtime::first_of_run(count, passes, n);
  const std::int64_t last = runtime::first_of_run(count, passes, n + 1);
  return std::span(parts).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first));
}

// The most floats that the parts of a pass ask for.
template <class Part>
std::int64_t room_of_pass(const std::vector<std::unique_ptr<Part>>& parts, std::int64_t passes) noexcept {
  std::int64_t most = 0;
  for (std::int64_t n = 0; n < passes; ++n) {
    std::int64_t room = 0;
    for (const auto& part : parts_of_pass(parts, n, passes)) room += part->room();
    most = std::max(most, room);
  }
  return most;
}

// Everything that a call needs memory for, but for exchanges, before it begins.
class Backward {
 public:
  // `shares` and `gradients`: for their types.
  Backward(Engine& engine, const Call& call, const AttentionOptions& options,
           const ops::AttentionBackwardOperands& shares, const Gradients& gradients)
      : engine_(engine),
        call_(call),
        whole_{call.here, call.options_of(options), call.heads,
               ops::backward_kernels_of_types(engine, shares, gradients_of_tensors(gradients))},
        blocks_(backward_blocks(engine, whole_.kernels.attention, call.here)),
        keys_(call, blocks_.keys, shares.key.type, shares.value.type),
        records_{call.here.batch,
                 call.here.key_value_heads,
                 {Field{call.here.head_dim, shares.query.type}, Field{call.here.value_dim, shares.out_gradient.type},
                  Field{1}, Field{1}}},
        broadcast_(row_segments(call), call.grid.column_ranks(), records_.bytes(), call.carry(blocks_.rows),
                   call.segments_at_once()),
        delta_({call.here.batch * call.here.key_value_heads * (call.segment_rows() + call.carry(blocks_.rows))}),
        sinks_(call, whole_.options) {
    const bool of_query = is_given(gradients.query) && gradients.query.type != NumberType::float32;
    const auto of_keys = [&](const MutableTypedView<4>& gradient) {
      return is_given(gradient) && KeyGradientKeys::sums_lie_apart(whole_, gradient);
    };
    row_passes_ = call.passes(call.whole.query_length, of_query ? 1 : 0);
    key_passes_ =
        call.passes(call.whole.key_length, (of_keys(gradients.key) ? 1 : 0) + (of_keys(gradients.value) ? 1 : 0));
  }

  // What this rank's row of the grid holds, of the heads that the rank works on.
  void hold(const ops::AttentionBackwardOperands& of_row, const Gradients& gradients) {
    shares_ = of_row;
    gradients_ = gradients;
    hold_rows();
    if (is_given(gradients.key) || is_given(gradients.value)) hold_keys();
    room_ = Tensor<float, 1>({std::max(room_of_pass(rows_, row_passes_), room_of_pass(kept_keys_, key_passes_))});
    std::size_t bytes = 0;
    for (const auto& rows : rows_) bytes = std::max(bytes, rows->scratch_bytes());
    for (const auto& keys : kept_keys_) bytes = std::max(bytes, keys->scratch_bytes(engine_));
    // The engine keeps it for the calls to come.
    const runtime::Scratch scratch(engine_, bytes, kAttentionBackward);
  }

  void run(Transport& transport, Statistics& statistics) {
    for (const auto& rows : rows_) {
      rows->begin(engine_);
      transport.progress();
    }
    if (is_given(gradients_.query)) {
      for (std::int64_t n = 0; n < row_passes_; ++n) {
        run_rows(transport, parts_of_pass(rows_, n, row_passes_), statistics);
      }
    }
    if (is_given(gradients_.key) || is_given(gradients_.value) || gradients_.sinks) {
      for (std::int64_t n = 0; n < key_passes_; ++n) {
        run_keys(transport, parts_of_pass(kept_keys_, n, key_passes_), n == 0 && gradients_.sinks, statistics);
      }
    }
    if (gradients_.sinks) sinks_.finish(transport, gradients_.sinks);
  }

 private:
  // How many rows or keys, of so many, are one part.
  [[nodiscard]] std::int64_t rows_of_part(std::int64_t length, std::int64_t heads, std::int64_t products,
                                          std::int64_t passes) const noexcept {
    const std::int64_t at_once = rows_at_once(engine_, call_, heads, products);
    return passes == 1 ? at_once : std::min(at_once, call_.rows_of_pass(length, passes));
  }

  void hold_rows() {
    std::int64_t at = 0;
    const std::int64_t most = rows_of_part(call_.whole.query_length, call_.here.query_heads,
                                           2 * call_.here.head_dim + call_.here.value_dim, row_passes_);
    for (const Run& run : cut_runs(call_.queries.of_row, whole_.options.query_offsets, most)) {
      const auto some = [&](const auto& view) { return some_rows(view, at, run.count); };
      const ops::AttentionBackwardOperands rows = {.query = some(shares_.query),
                                                   .key = {},
                                                   .value = {},
                                                   .out = some(shares_.out),
                                                   .log_sum_exp = some(shares_.log_sum_exp),
                                                   .out_gradient = some(shares_.out_gradient),
                                                   .log_sum_exp_gradient = some(shares_.log_sum_exp_gradient)};
      rows_.push_back(
          std::make_unique<QueryGradientRows>(engine_, whole_, run.first, rows, some_given(gradients_.query, at, run)));
      at += run.count;
    }
  }

  void hold_keys() {
    std::int64_t at = 0;
    // Rows come with one head of each group.
    const std::int64_t most = rows_of_part(call_.whole.key_length, call_.here.key_value_heads,
                                           2 * (call_.here.head_dim + call_.here.value_dim), key_passes_);
    for (const Run& run : cut_runs(call_.keys.of_row, ops::packed_key_offsets(whole_.options), most)) {
      kept_keys_.push_back(std::make_unique<KeyGradientKeys>(
          engine_, whole_, run.first, some_rows(shares_.key, at, run.count), some_rows(shares_.value, at, run.count),
          some_given(gradients_.key, at, run), some_given(gradients_.value, at, run)));
      at += run.count;
    }
  }

  // Of a gradient that is not given, nothing.
  static MutableTypedView<4> some_given(const MutableTypedView<4>& gradient, std::int64_t at, const Run& run) noexcept {
    return is_given(gradient) ? some_rows(gradient, at, run.count) : MutableTypedView<4>();
  }

  // The sums of a pass lie one behind another.
  template <class Part>
  void begin_sums(Transport& transport, std::span<const std::unique_ptr<Part>> parts) {
    float* room = room_.data();
    for (const auto& part : parts) {
      part->begin_sums(room);
      room += part->room();
      transport.progress();
    }
  }

  // Query gradients of some rows, while keys are broadcast.
  void run_rows(Transport& transport, std::span<const std::unique_ptr<QueryGradientRows>> all_rows,
                Statistics& statistics) {
    begin_sums(transport, all_rows);
    keys_.run(transport, {shares_.key, shares_.value}, statistics,
              [&](const Keys& keys, const Received& received, const auto& progress) {
                for (const auto& rows : all_rows) {
                  rows->attend(engine_, keys.key, keys.value, received.first, received.from, received.to);
                  progress();
                }
              });
    for (const auto& rows : all_rows) {
      rows->finish(engine_);
      transport.progress();
    }
  }

  // Gradients of some keys and values, and of sinks, while rows are broadcast.
  void run_keys(Transport& transport, std::span<const std::unique_ptr<KeyGradientKeys>> all_keys, bool with_sinks,
                Statistics& statistics) {
    begin_sums(transport, all_keys);
    broadcast_.begin(transport, [&](const Segment& segment, std::byte* rows) { pack_rows(segment, rows); });
    while (!broadcast_.done()) {
      const Received received = broadcast_.next();
      const std::int64_t count = received.to - received.first;
      const KeyGradientKeys::Rows rows = {received.series,
                                          received.first,
                                          records_(received.rows, count, 0),
                                          records_(received.rows, count, 1),
                                          as_numbers(records_.floats(received.rows, count, 2)),
                                          delta_.data()};
      copy_numbers(as_numbers(records_.floats(received.rows, count, 3)), delta_.data());
      if (with_sinks) {
        sinks_.take(received.series, received.from - received.first, records_.floats(received.rows, count, 2),
                    records_.floats(received.rows, count, 3));
      }
      for (const auto& keys : all_keys) {
        keys->attend(engine_, rows, received.from, received.to);
        broadcast_.progress();
      }
    }
    for (const auto& keys : all_keys) {
      keys->finish(engine_);
      broadcast_.progress();
    }
    broadcast_.finish();
    broadcast_.tell(statistics);
  }

  static void copy_numbers(const View<const float, 3>& from, float* to) noexcept {
    for (std::int64_t b = 0; b < from.extent(0); ++b) {
      for (std::int64_t h = 0; h < from.extent(1); ++h) {
        for (std::int64_t i = 0; i < from.extent(2); ++i) *to++ = from(b, h, i);
      }
    }
  }

  void pack_rows(const Segment& segment, std::byte* rows) {
    const std::int64_t place = place_in(call_.queries.of_row, segment.first);
    const auto pack = [&](const TypedView<4>& tensor, std::int64_t first, std::size_t field) {
      copy_rows(some_heads(some_rows(tensor, first, segment.count), segment.series, call_.here.group),
                records_(rows, segment.count, field));
    };
    pack(shares_.query, place, 0);
    pack(shares_.out_gradient, place, 1);
    pack(as_rows(shares_.log_sum_exp), place, 2);
    const View<float, 4> delta = records_.floats(rows, segment.count, 3);
    for (const auto& run : rows_) {
      const std::int64_t begin = run->first_query();
      const std::int64_t first = std::max(begin, segment.first);
      const std::int64_t count = std::min(begin + run->delta().shape()[2], segment.first + segment.count) - first;
      if (count <= 0) continue;
      copy_rows(
          some_heads(some_rows(as_rows(run->delta().view()), first - begin, count), segment.series, call_.here.group),
          some_rows(delta, first - segment.first, count));
    }
  }

  Engine& engine_;
  const Call& call_;
  BackwardPart::Whole whole_;
  BackwardBlocks blocks_;
  KeyBroadcast keys_;
  Records<4> records_;
  RowBroadcast broadcast_;
  Tensor<float, 1> delta_;  // of the rows that have come: [B, Hkv, n]
  SinkSums sinks_;
  ops::AttentionBackwardOperands shares_{};
  Gradients gradients_;
  std::vector<std::unique_ptr<QueryGradientRows>> rows_;
  std::vector<std::unique_ptr<KeyGradientKeys>> kept_keys_;
  std::int64_t row_passes_ = 1;
  std::int64_t key_passes_ = 1;
  Tensor<float, 1> room_;  // for sums that lie apart from gradients, of one pass
};

// What is exchanged before and behind it where ranks share out the heads.
void run_by_heads(Transport& transport, const Call& call, Backward& backward,
                  const ops::AttentionBackwardOperands& shares, const Gradients& gradients, Statistics& statistics) {
  const auto gather = [&](const Holding& holding, const TypedView<4>& share) {
    const Stopwatch exchanging(statistics.exchange_seconds);
    return gather_rows(transport, call.grid, holding, share);
  };
  const auto gather_numbers = [&](const View<const float, 3>& share) {
    const Stopwatch exchanging(statistics.exchange_seconds);
    return is_given(share) ? gather_floats(transport, call.grid, call.queries, as_rows(share)) : Tensor<float, 4>();
  };
  const auto like = [](const MutableTypedView<4>& wanted, const TypedTensor& rows) {
    return is_given(wanted) ? TypedTensor(wanted.type, rows.view().shape) : TypedTensor();
  };
  const auto scatter = [&](const Holding& holding, const TypedTensor& rows, const MutableTypedView<4>& share) {
    const Stopwatch exchanging(statistics.exchange_seconds);
    if (is_given(share)) scatter_rows(transport, call.grid, holding, rows.view(), share);
  };
  const TypedTensor query = gather(call.queries, shares.query), key = gather(call.keys, shares.key),
                    value = gather(call.keys, shares.value), out = gather(call.queries, shares.out),
                    out_gradient = gather(call.queries, shares.out_gradient);
  const Tensor<float, 4> log_sum_exp = gather_numbers(shares.log_sum_exp),
                         log_sum_exp_gradient = gather_numbers(shares.log_sum_exp_gradient);
  const TypedTensor of_query = like(gradients.query, query), of_key = like(gradients.key, key),
                    of_value = like(gradients.value, value);
  backward.hold({.query = query.view(),
                 .key = key.view(),
                 .value = value.view(),
                 .out = out.view(),
                 .log_sum_exp = as_numbers(log_sum_exp.view()),
                 .out_gradient = out_gradient.view(),
                 .log_sum_exp_gradient = as_numbers(log_sum_exp_gradient.view())},
                {of_query.view(), of_key.view(), of_value.view(), gradients.sinks});
  backward.run(transport, statistics);
  scatter(call.queries, of_query, gradients.query);
  scatter(call.keys, of_key, gradients.key);
  scatter(call.keys, of_value, gradients.value);
}

// What all ranks must say alike beside the options.
void add_types(const Engine& engine, const ops::AttentionBackwardOperands& shares, const Gradients& gradients,
               Record& record) {
  for (const auto& [name, type] : {std::pair{"the type of query", shares.query.type},
                                   {"the type of key", shares.key.type},
                                   {"the type of value", shares.value.type},
                                   {"the type of out", shares.out.type},
                                   {"the type of out_gradient", shares.out_gradient.type}}) {
    record.emplace_back(name, ops::type_name(type));
  }
  for (const auto& [name, view] : {std::pair{"gradients.query", gradients.query},
                                   {"gradients.key", gradients.key},
                                   {"gradients.value", gradients.value}}) {
    record.emplace_back(name, is_given(view) ? "of " + ops::type_name(view.type) : "not given");
  }
  record.emplace_back("gradients.sinks", gradients.sinks ? "given" : "not given");
  record.emplace_back("log_sum_exp_gradient", is_given(shares.log_sum_exp_gradient) ? "given" : "not given");
  if (!ops::are_pairs_of_bfloat16(shares.query, shares.key, shares.value)) return;
  const bool pairs = ops::backward_kernels_of_types(engine, shares, gradients_of_tensors(gradients)).multiplies_pairs();
  record.emplace_back("products of bfloat16", pairs ? "of pairs" : "of widened numbers");
}

}  // namespace

Statistics attention_backward(Group& group, Engine& engine, const AttentionShape& whole, const TypedView<4>& query,
                              const TypedView<4>& key, const TypedView<4>& value, const TypedView<4>& out,
                              View<const float, 3> log_sum_exp, const TypedView<4>& out_gradient,
                              const Gradients& gradients, const AttentionOptions& options, const Spread& spread) {
  const ops::AttentionBackwardOperands shares = {
      query, key, value, out, log_sum_exp, out_gradient, options.log_sum_exp_gradient};
  Transport& transport = group.state().transport;
  Statistics statistics;
  Call call;
  std::optional<Backward> backward;
  Record record = record_of(kAttentionBackward, engine, whole, options, spread);
  add_types(engine, shares, gradients, record);
  {
    const Stopwatch all(statistics.seconds);
    together(
        transport, record, statistics.exchange_seconds,
        [&] {
          call = make_call(kAttentionBackward, whole, options, transport.rank(), transport.size(), spread);
          check_backward_shares(kAttentionBackward, call, shares, gradients, options);
          backward.emplace(engine, call, options, shares, gradients);
          if (call.grid.head_ranks == 1) backward->hold(shares, gradients);
        },
        [&] {
          if (call.grid.head_ranks == 1) return backward->run(transport, statistics);
          run_by_heads(transport, call, *backward, shares, gradients, statistics);
        });
  }
  return statistics;
}

}  // namespace headlight::mpi
