#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "headlight/attention_stream.h"
#include "kernels/kernels.h"
#include "ops/attention/rows.h"
#include "ops/attention/running.h"
#include "ops/check.h"
#include "ops/empty_views.h"
#include "ops/typed_check.h"
#include "runtime/parallel.h"
#include "simd/integers.h"

namespace headlight {
namespace {

constexpr std::string_view kStreamName = "AttentionStream";

void check_options(const AttentionOptions& options) {
  const auto refuse = [](bool given, const char* what) {
    if (given) ops::fail(kStreamName, "options.", what, " is given, expected none: keys have no end yet");
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
  if (options.log_sum_exp) ops::fail(kStreamName, "options.log_sum_exp is given, expected none: it is finish()'s");
}

ops::AttentionSizes sizes_of(const View<const float, 4>& query, std::int64_t key_value_heads, std::int64_t value_dim,
                             const AttentionOptions& options) {
  for (const auto& [what, count] : {std::pair{"key_value_heads", key_value_heads}, {"value_dim", value_dim}}) {
    if (count < 0) ops::fail(kStreamName, what, " is ", count, ", expected at least 0");
  }
  // No keys and no columns: what is left to check are the query and the options.
  const View<const float, 4> key(nullptr, {query.extent(0), 0, key_value_heads, query.extent(3)});
  const View<const float, 4> value(nullptr, {query.extent(0), 0, key_value_heads, 0});
  const View<float, 4> out(nullptr, {query.extent(0), query.extent(1), query.extent(2), 0});
  ops::AttentionSizes sizes = ops::check_attention(kStreamName, query, key, value, out, options);
  // Two blocks of keys, as plans distinguish one alone.
  sizes.value_dim = value_dim;
  sizes.key_length = 2 * ops::attention_key_block(sizes);
  return ops::check_attention_shape(kStreamName, {sizes.batch, sizes.query_length, sizes.key_length, sizes.query_heads,
                                                  sizes.key_value_heads, sizes.head_dim, sizes.value_dim});
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
             .plan = ops::plan_running_rows(engine_, kernels::attention_kernels(engine_.isa()), sizes, sizes.key_length,
                                            options),
             .scale = ops::scale_of(options, sizes.head_dim),
             .modifiers = ops::score_modifiers(options, ops::scale_of(options, sizes.head_dim).exponent_scale),
             .dropout = ops::dropout_of(options),
             .heads = {.all = sizes.query_heads},
             .scratch = nullptr} {
    key = Tensor<float, 4>({sizes.batch, call.plan.key_block, sizes.key_value_heads, sizes.head_dim});
    value = Tensor<float, 4>({sizes.batch, call.plan.key_block, sizes.key_value_heads, sizes.value_dim});
    // Nothing is written to it before finish(), but addresses are worked out: all the same one.
    call.out =
        View<float, 4>(&anywhere, {sizes.batch, sizes.query_length, sizes.query_heads, sizes.value_dim}, {0, 0, 0, 1});
    ops::lay_empty_views(anywhere, call.query, call.out);
    running.emplace(call, false);
  }

  // A sample with the first `count` keys.
  [[nodiscard]] ops::AttentionSequence sequence_of(std::int64_t sample, std::int64_t count) const noexcept {
    ops::AttentionSequence sequence = call.sequences(sample, 0);
    sequence.keys = count;
    return sequence;
  }

  void attend(const View<const float, 4>& some_keys, const View<const float, 4>& some_values) {
    const runtime::Scratch scratch(*engine, call.plan.bytes(), kStreamName);
    attend(some_keys, some_values, scratch.data());
  }
  void attend(const View<const float, 4>& some_keys, const View<const float, 4>& some_values,
              std::byte* scratch) noexcept {
    call.scratch = scratch;
    call.keys = {some_keys, some_values, done};
    const std::int64_t before = done;
    done += some_keys.extent(1);
    call.sequences = {options, call.sizes.query_length, done};
    running->attend(*engine, before, done);
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

  Engine* engine;
  float anywhere = 0;
  AttentionOptions options;
  ops::AttentionCall call;
  std::optional<ops::RunningRows> running;
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
  if (state == nullptr) ops::fail(kStreamName, call, " after the stream was moved from");
  if (state->ended) ops::fail(kStreamName, call, " after finish()");
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
  return state_->running->bytes() + static_cast<std::size_t>(state_->key.size() + state_->value.size()) * sizeof(float);
}

void AttentionStream::append(View<const float, 4> key, View<const float, 4> value) {
  State& state = state_to(state_.get(), "append()");
  const ops::AttentionSizes& sizes = state.call.sizes;
  ops::check_view(kStreamName, "key", key);
  ops::check_view(kStreamName, "value", value);
  const std::int64_t count = key.extent(1);
  const std::array<std::int64_t, 4> keys = {sizes.batch, -1, sizes.key_value_heads, sizes.head_dim};
  const std::array<std::int64_t, 4> values = {sizes.batch, count, sizes.key_value_heads, sizes.value_dim};
  ops::check_shape(kStreamName, "key", key.shape, keys, "[B, n, Hkv, Dqk]");
  ops::check_shape(kStreamName, "value", value.shape, values, "[B, n, Hkv, Dv]");

  std::int64_t all = 0;
  if (__builtin_add_overflow(state.keys(), count, &all)) all = std::numeric_limits<std::int64_t>::max();
  static_cast<void>(ops::check_attention_shape(kStreamName, {sizes.batch, sizes.query_length, all, sizes.query_heads,
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
  const runtime::Scratch scratch(*engine, fills_a_block ? call.plan.bytes() : 0, kStreamName);
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
  const ops::Extent extent = ops::check_output(kStreamName, "out", out, shape, "[B, Lq, Hq, Dv]");
  const ops::Extent query_extent = ops::check_view(kStreamName, "query", state.call.query);
  if (log_sum_exp) {
    const std::array<std::int64_t, 3> rows = {sizes.batch, sizes.query_heads, sizes.query_length};
    const ops::Extent rows_extent = ops::check_output(kStreamName, "log_sum_exp", log_sum_exp, rows, "[B, Hq, Lq]");
    ops::check_disjoint(kStreamName, "log_sum_exp", rows_extent, "out", extent);
    ops::check_disjoint(kStreamName, "log_sum_exp", rows_extent, "query", query_extent);
  }
  ops::check_disjoint(kStreamName, "out", extent, "query", query_extent);
  if (state.waiting > 0) {
    state.attend(some_of(state.key, 0, state.waiting), some_of(state.value, 0, state.waiting));
    state.waiting = 0;
  }
  ops::lay_empty_views(state.anywhere, out);
  state.call.out = out;
  state.options.log_sum_exp = log_sum_exp;
  state.ended = true;
  state.call.sequences = {state.options, sizes.query_length, state.done};
  state.running->finish(*state.engine);
}

}  // namespace headlight
