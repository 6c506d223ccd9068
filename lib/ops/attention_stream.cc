#include "headlight/attention_stream.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>

#include "kernels/kernels.h"
#include "ops/attention_row_block.h"
#include "ops/attention_rows.h"
#include "ops/check.h"
#include "ops/empty_views.h"
#include "ops/typed_check.h"
#include "runtime/parallel.h"
#include "simd/integers.h"

namespace headlight {
namespace {

constexpr std::string_view kName = "AttentionStream";

void check_options(const AttentionOptions& options) {
  const auto refuse = [](bool given, const char* what) {
    if (given) ops::fail(kName, std::string("options.") + what + " is given, expected none: keys have no end yet");
  };
  if (!options.query_start) {
    refuse(options.causal == Causal::bottom_right, "causal = bottom_right without query_start");
    refuse(options.align == Align::bottom_right, "align = bottom_right without query_start");
  }
  refuse(!options.query_lengths.empty(), "query_lengths");
  refuse(!options.key_lengths.empty(), "key_lengths");
  refuse(!options.query_offsets.empty() || !options.key_offsets.empty(), "query_offsets");
  refuse(options.mask.has_value(), "mask");
  refuse(static_cast<bool>(options.bias), "bias");
  refuse(options.probabilities.per_head || options.probabilities.averaged, "probabilities");
  refuse(!options.probabilities.rows.empty(), "probabilities.rows");
  refuse(static_cast<bool>(options.scores), "scores");
  if (options.log_sum_exp) ops::fail(kName, "options.log_sum_exp is given, expected none: it is finish()'s");
}

ops::AttentionSizes sizes_of(const View<const float, 4>& query, std::int64_t key_value_heads, std::int64_t value_dim,
                             const AttentionOptions& options) {
  for (const auto& [what, count] : {std::pair{"key_value_heads", key_value_heads}, {"value_dim", value_dim}}) {
    if (count < 0) ops::fail(kName, std::string(what) + " is " + std::to_string(count) + ", expected at least 0");
  }
  // No keys and no columns: what is left to check are the query and the options.
  const View<const float, 4> key(nullptr, {query.extent(0), 0, key_value_heads, query.extent(3)});
  const View<const float, 4> value(nullptr, {query.extent(0), 0, key_value_heads, 0});
  const View<float, 4> out(nullptr, {query.extent(0), query.extent(1), query.extent(2), 0});
  ops::AttentionSizes sizes = ops::check_attention(kName, query, key, value, out, options);
  // Two blocks of keys, as plans distinguish one alone.
  sizes.value_dim = value_dim;
  sizes.key_length = 2 * ops::attention_key_block(sizes);
  return ops::check_attention_shape(kName, {sizes.batch, sizes.query_length, sizes.key_length, sizes.query_heads,
                                            sizes.key_value_heads, sizes.head_dim, sizes.value_dim});
}

ops::AttentionPlan plan_of(const Engine& engine, const ops::AttentionSizes& sizes, const AttentionOptions& options) {
  ops::AttentionTraits traits = ops::traits_of(options, sizes, ops::scale_of(options, sizes.head_dim));
  traits.by_block = true;
  return ops::plan_attention(engine, kernels::attention_kernels(engine.isa()), sizes, traits);
}

}  // namespace

struct AttentionStream::State {
  State(Engine& engine_, const View<const float, 4>& query, const ops::AttentionSizes& sizes,
        const AttentionOptions& given)
      : engine(&engine_),
        options(given),
        call{.query = query,
             .keys = {},
             .out = {},
             .options = options,
             .sizes = sizes,
             .sequences = {options, sizes.query_length, sizes.key_length},
             .kernels = kernels::attention_kernels(engine_.isa()),
             .plan = plan_of(engine_, sizes, options),
             .scale = ops::scale_of(options, sizes.head_dim),
             .steps = ops::score_steps(options, ops::scale_of(options, sizes.head_dim).exponent_scale),
             .dropout = ops::dropout_of(options),
             .scratch = nullptr} {
    const std::int64_t rows = sizes.batch * sizes.key_value_heads * call.plan.rows;
    maximum = Tensor<float, 1>({rows});
    sums = Tensor<float, 2>({rows, call.kernels.lanes});
    out = Tensor<float, 2>({rows, call.plan.padded_value_dim});
    key = Tensor<float, 4>({sizes.batch, call.plan.key_block, sizes.key_value_heads, sizes.head_dim});
    value = Tensor<float, 4>({sizes.batch, call.plan.key_block, sizes.key_value_heads, sizes.value_dim});
    // Nothing is written to it before finish(), but addresses are worked out.
    call.out = View<float, 4>(out.data(), {sizes.batch, sizes.query_length, sizes.query_heads, sizes.value_dim});
    ops::lay_empty_views(anywhere, call.query, call.out);
    if (options.sinks.empty()) return;
    for (std::int64_t b = 0; b < sizes.batch; ++b) {
      for (std::int64_t head = 0; head < sizes.key_value_heads; ++head) {
        for (std::int64_t r = 0; r < call.plan.rows; ++r) {
          ops::begin_with_sink(call, ops::place_of(call, head, r).head, row(b, head, r));
        }
      }
    }
  }

  [[nodiscard]] kernels::AttentionState row(std::int64_t sample, std::int64_t head, std::int64_t r) noexcept {
    const std::int64_t n = (sample * call.sizes.key_value_heads + head) * call.plan.rows + r;
    return {maximum.data() + n, sums.data() + n * call.kernels.lanes, out.data() + n * call.plan.padded_value_dim};
  }

  // A sample with the first `count` keys.
  [[nodiscard]] ops::AttentionSequence sequence_of(std::int64_t sample, std::int64_t count) const noexcept {
    ops::AttentionSequence sequence = call.sequences(sample, 0);
    sequence.keys = count;
    return sequence;
  }

  // f(rows, worker) for every unit of rows.
  template <class Function>
  void for_each_unit(Function f) noexcept {
    const ops::AttentionPlan& plan = call.plan;
    const std::int64_t heads = call.sizes.key_value_heads;
    if (call.sizes.batch * heads * plan.rows == 0) return;
    const std::int64_t head_units = divide_up(heads, plan.unit_heads);
    const std::int64_t row_units = divide_up(plan.rows, plan.row_block);
    runtime::parallel_for(
        *engine, call.sizes.batch * head_units * row_units, plan.workers, [&](std::int64_t task, int worker) {
          const std::int64_t head = task / row_units % head_units * plan.unit_heads;
          const std::int64_t first = task % row_units * plan.row_block;
          f(ops::RowRange{task / row_units / head_units, head, first, std::min(first + plan.row_block, plan.rows),
                          std::min(plan.unit_heads, heads - head)},
            worker);
        });
  }

  // One row's state of a block into that of all blocks before; the row's first block begins it.
  void take(const kernels::AttentionState& to, const kernels::AttentionState& from, bool is_first) const noexcept {
    if (!is_first) return call.kernels.merge(to, from, call.sizes.value_dim);
    *to.maximum = *from.maximum;
    std::copy_n(from.sums, call.kernels.lanes, to.sums);
    std::copy_n(from.out, call.plan.padded_value_dim, to.out);
  }

  // The block of `count` keys that call.keys holds, from key `first` on.
  void attend_block(std::int64_t first, std::int64_t count) noexcept {
    for_each_unit([&](const ops::RowRange& range, int worker) {
      const ops::AttentionSequence sequence = sequence_of(range.sample, first + count);
      ops::RowBlock block(call, worker, range, sequence, {});
      const std::int64_t first_seen = std::max(first, block.first_key());
      if (first_seen >= block.last_key()) return;
      const ops::RowStates states = ops::worker_states(call, worker);
      block.run_partially(first_seen, block.last_key(), states);
      for (std::int64_t r = 0; r < range.last - range.first; ++r) {
        const ops::KeyInterval& interval = block.interval(r);
        if (std::max(interval.begin, first) >= interval.end) continue;
        for (std::int64_t head = 0; head < range.heads; ++head) {
          take(row(range.sample, range.key_value_head + head, range.first + r),
               states.row(call, head * states.head_step + r), interval.begin >= first && options.sinks.empty());
        }
      }
    });
  }

  void attend(const View<const float, 4>& some_keys, const View<const float, 4>& some_values) {
    const runtime::Scratch scratch(*engine, call.plan.bytes(), kName);
    attend(some_keys, some_values, scratch.data());
  }
  void attend(const View<const float, 4>& some_keys, const View<const float, 4>& some_values,
              std::byte* scratch) noexcept {
    call.scratch = scratch;
    call.keys = {some_keys, some_values, done};
    attend_block(done, some_keys.extent(1));
    done += some_keys.extent(1);
  }

  // The first `count` keys of a piece, which some rows may see.
  void take_in(const View<const float, 4>& some_keys, const View<const float, 4>& some_values, std::int64_t count);

  [[nodiscard]] std::int64_t keys() const noexcept { return done + waiting + unseen; }

  // No row sees the keys from there on, however many come: the last row sees the furthest.
  [[nodiscard]] std::int64_t end_of_seen() const noexcept {
    constexpr std::int64_t kEndless = std::int64_t{1} << 60;
    const std::int64_t rows = call.sizes.query_length;
    if (call.sizes.batch * call.sizes.query_heads * rows == 0) return 0;
    std::int64_t end = 0;
    for (std::int64_t b = 0; b < call.sizes.batch; ++b) {
      end = std::max(end, ops::IntervalRule(options, sequence_of(b, kEndless))(rows - 1).end);
    }
    return end;
  }

  void finish_rows() noexcept {
    for_each_unit([&](const ops::RowRange& range, int) {
      const ops::IntervalRule rule(options, sequence_of(range.sample, done));
      for (std::int64_t head = range.key_value_head; head < range.key_value_head + range.heads; ++head) {
        for (std::int64_t r = range.first; r < range.last; ++r) {
          const ops::RowPlace place = ops::place_of(call, head, r);
          const ops::KeyInterval interval = rule(place.query);
          if (interval.begin >= interval.end) {
            ops::finish_empty_row(call, range.sample, place);
          } else {
            ops::finish_row(call, range.sample, place, row(range.sample, head, r));
          }
        }
      }
    });
  }

  Engine* engine;
  float anywhere = 0;
  AttentionOptions options;
  ops::AttentionCall call;
  // Of all blocks so far: [B · Hkv · rows], [… , lanes], [… , padded value_dim].
  Tensor<float, 1> maximum;
  Tensor<float, 2> sums;
  Tensor<float, 2> out;
  // The block that is not full yet.
  Tensor<float, 4> key;
  Tensor<float, 4> value;
  std::int64_t waiting = 0;  // keys in it
  std::int64_t done = 0;     // keys before it
  std::int64_t unseen = 0;   // keys behind it: no row sees them, nor any that come after them
  bool ended = false;
};

namespace {

// Keys [first, first + count) of a piece.
View<const float, 4> some_of(const View<const float, 4>& piece, std::int64_t first, std::int64_t count) noexcept {
  return {
      piece.data + first * piece.stride(1), {piece.extent(0), count, piece.extent(2), piece.extent(3)}, piece.strides};
}

void copy_keys(const View<const float, 4>& from, Tensor<float, 4>& to, std::int64_t first) noexcept {
  const View<float, 4> rows = to;
  for (std::int64_t b = 0; b < from.extent(0); ++b) {
    for (std::int64_t j = 0; j < from.extent(1); ++j) {
      for (std::int64_t h = 0; h < from.extent(2); ++h) {
        std::copy_n(from.data + b * from.stride(0) + j * from.stride(1) + h * from.stride(2), from.extent(3),
                    rows.data + b * rows.stride(0) + (first + j) * rows.stride(1) + h * rows.stride(2));
      }
    }
  }
}

// What such a call goes on with.
template <class State>
State& state_to(State* state, const char* call) {
  if (state == nullptr) ops::fail(kName, std::string(call) + " after the stream was moved from");
  if (state->ended) ops::fail(kName, std::string(call) + " after finish()");
  return *state;
}

}  // namespace

AttentionStream::AttentionStream(Engine& engine, View<const float, 4> query, std::int64_t key_value_heads,
                                 std::int64_t value_dim, const AttentionOptions& options) {
  check_options(options);
  state_ = std::make_unique<State>(engine, query, sizes_of(query, key_value_heads, value_dim, options), options);
}

AttentionStream::~AttentionStream() = default;
AttentionStream::AttentionStream(AttentionStream&& other) noexcept = default;
AttentionStream& AttentionStream::operator=(AttentionStream&& other) noexcept = default;

std::int64_t AttentionStream::keys() const noexcept { return state_ == nullptr ? 0 : state_->keys(); }

std::size_t AttentionStream::bytes() const noexcept {
  if (state_ == nullptr) return 0;
  const auto floats =
      state_->maximum.size() + state_->sums.size() + state_->out.size() + state_->key.size() + state_->value.size();
  return static_cast<std::size_t>(floats) * sizeof(float);
}

void AttentionStream::append(View<const float, 4> key, View<const float, 4> value) {
  State& state = state_to(state_.get(), "append()");
  const ops::AttentionSizes& sizes = state.call.sizes;
  ops::check_view(kName, "key", key);
  ops::check_view(kName, "value", value);
  const std::int64_t count = key.extent(1);
  const std::array<std::int64_t, 4> keys = {sizes.batch, -1, sizes.key_value_heads, sizes.head_dim};
  const std::array<std::int64_t, 4> values = {sizes.batch, count, sizes.key_value_heads, sizes.value_dim};
  ops::check_shape(kName, "key", key.shape, keys, "[B, n, Hkv, Dqk]");
  ops::check_shape(kName, "value", value.shape, values, "[B, n, Hkv, Dv]");

  std::int64_t all = 0;
  if (__builtin_add_overflow(state.keys(), count, &all)) all = std::numeric_limits<std::int64_t>::max();
  static_cast<void>(ops::check_attention_shape(kName, {sizes.batch, sizes.query_length, all, sizes.query_heads,
                                                       sizes.key_value_heads, sizes.head_dim, sizes.value_dim}));
  ops::lay_empty_views(state.anywhere, key, value);
  const std::int64_t seen = std::clamp<std::int64_t>(state.end_of_seen() - state.keys(), 0, count);
  state.take_in(key, value, seen);
  state.unseen += count - seen;
}

void AttentionStream::State::take_in(const View<const float, 4>& some_keys, const View<const float, 4>& some_values,
                                     std::int64_t count) {
  const std::int64_t block = call.plan.key_block;
  const bool fills_a_block = waiting + count >= block;
  const runtime::Scratch scratch(*engine, fills_a_block ? call.plan.bytes() : 0, kName);
  for (std::int64_t taken = 0; taken < count;) {
    if (waiting == 0 && count - taken >= block) {
      attend(some_of(some_keys, taken, block), some_of(some_values, taken, block), scratch.data());
      taken += block;
      continue;
    }
    const std::int64_t some = std::min(block - waiting, count - taken);
    copy_keys(some_of(some_keys, taken, some), key, waiting);
    copy_keys(some_of(some_values, taken, some), value, waiting);
    taken += some;
    waiting += some;
    if (waiting < block) continue;
    attend(key, value, scratch.data());
    waiting = 0;
  }
}

void AttentionStream::finish(View<float, 4> out, View<float, 3> log_sum_exp) {
  State& state = state_to(state_.get(), "finish()");
  const ops::AttentionSizes& sizes = state.call.sizes;
  const std::array<std::int64_t, 4> shape = {sizes.batch, sizes.query_length, sizes.query_heads, sizes.value_dim};
  const ops::Extent extent = ops::check_output(kName, "out", out, shape, "[B, Lq, Hq, Dv]");
  const ops::Extent query_extent = ops::check_view(kName, "query", state.call.query);
  if (log_sum_exp) {
    const std::array<std::int64_t, 3> rows = {sizes.batch, sizes.query_heads, sizes.query_length};
    const ops::Extent rows_extent = ops::check_output(kName, "log_sum_exp", log_sum_exp, rows, "[B, Hq, Lq]");
    ops::check_disjoint(kName, "log_sum_exp", rows_extent, "out", extent);
    ops::check_disjoint(kName, "log_sum_exp", rows_extent, "query", query_extent);
  }
  ops::check_disjoint(kName, "out", extent, "query", query_extent);
  if (state.waiting > 0) {
    state.attend(some_of(state.key, 0, state.waiting), some_of(state.value, 0, state.waiting));
    state.waiting = 0;
  }
  ops::lay_empty_views(state.anywhere, out);
  state.call.out = out;
  state.options.log_sum_exp = log_sum_exp;
  state.ended = true;
  state.finish_rows();
}

}  // namespace headlight
