// A short call, sequence by sequence: what does not depend on how its operands are stored.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/attention/kernels.h"
#include "ops/attention/check.h"
#include "ops/attention/masks.h"
#include "runtime/costs.h"
#include "runtime/parallel.h"
#include "simd/integers.h"

namespace headlight::ops {

// The kernel's room for the queries of one head, one to a lane, has so many rows and columns at most; that for its
// weights no more than is on the stack.
inline constexpr std::int64_t kMaxShortHeadDim = 128;
inline constexpr std::int64_t kMaxShortRows = 32;

// A head that takes no more floats than that has them on the stack of a call that wakes no workers: to borrow them
// would show in a call of a few rows.
inline constexpr std::int64_t kShortStackFloats = 1024;

// Floats of that room.
[[nodiscard]] inline std::int64_t short_columns(const kernels::AttentionKernels& kernels,
                                                const AttentionSizes& sizes) noexcept {
  const std::int64_t lanes = sizes.query_length <= kernels.lanes ? kernels.lanes : kernels.short_rows;
  const std::int64_t of_weights = std::int64_t{kernels.lanes} * kernels.short_keys;
  const std::int64_t words = kernels::filled_up(sizes.head_dim / kernels.numbers_of_word, kernels.words_at_once);
  return std::max(words * lanes, of_weights);
}

// Bytes that a call borrows whose heads take so many floats each.
[[nodiscard]] inline std::size_t short_scratch_bytes(std::int64_t floats, int workers) noexcept {
  if (workers == 1 && floats <= kShortStackFloats) return 0;
  return static_cast<std::size_t>(workers) * round_up(static_cast<std::size_t>(floats) * sizeof(float), 128);
}

// Rows of one sample that begin together, and what they see.
struct ShortRows {
  std::int64_t sample;
  std::int64_t first;  // in the tensor, as first_key
  std::int64_t rows;
  std::int64_t first_key;
  std::int64_t keys;
  bool all_seen;
  std::int32_t begin[kMaxShortRows];
  std::int32_t end[kMaxShortRows];
};

template <class Call>
[[gnu::always_inline]] inline void find_intervals(const Call& call, const AttentionSequence& sequence,
                                                  ShortRows& group) noexcept {
  const IntervalRule rule(call.options, sequence);
  const bool same = rule.same_for_all_rows();
  const KeyInterval all{0, sequence.keys};
  const std::int64_t keys = std::max<std::int64_t>(sequence.keys, 1);
  const std::int64_t first = group.first - sequence.first_query;
  const std::int64_t rows = group.rows;
  bool all_seen = true;
  for (std::int64_t r = 0; r < rows; ++r) {
    const KeyInterval seen = first + r >= sequence.queries ? KeyInterval{} : same ? all : rule(first + r);
    group.begin[r] = static_cast<std::int32_t>(seen.begin);
    group.end[r] = static_cast<std::int32_t>(seen.end);
    all_seen = all_seen && seen.begin == 0 && seen.end == keys;
  }
  group.keys = keys;
  group.all_seen = all_seen;
}

// Heads [first_head, last_head) of a sequence. A sample's rows past its length are padding, and end as zeros.
template <class Call>
void attend_sequence(const Call& call, std::int64_t sample, std::int64_t number, std::int64_t first_head,
                     std::int64_t last_head, float* room) noexcept {
  const AttentionSizes& sizes = call.sizes;
  const AttentionSequence sequence =
      AttentionSequences(call.options, sizes.query_length, sizes.key_length)(sample, number);
  const std::int64_t last =
      call.options.query_offsets.empty() ? sizes.query_length : sequence.first_query + sequence.queries;
  ShortRows group;
  group.sample = sample;
  group.first_key = sequence.first_key;
  for (group.first = sequence.first_query; group.first < last; group.first += call.kernels.short_rows) {
    group.rows = std::min<std::int64_t>(call.kernels.short_rows, last - group.first);
    find_intervals(call, sequence, group);
    for (std::int64_t head = first_head; head < last_head; ++head) call.attend(group, head, room);
  }
}

// An order of magnitude, for whether other workers are worth waking.
template <class Call>
double short_nanoseconds(const Call& call, std::int64_t sequences) noexcept {
  const AttentionSizes& sizes = call.sizes;
  const double heads = static_cast<double>(sizes.batch) * static_cast<double>(sizes.query_heads);
  const double keys = static_cast<double>(sizes.key_length) / static_cast<double>(sequences);
  const auto vectors =
      static_cast<double>(divide_up(divide_up(sizes.query_length, sequences), std::int64_t{call.kernels.lanes}));
  const double vector_products = keys * static_cast<double>(sizes.head_dim + sizes.value_dim);
  return heads * static_cast<double>(sequences) *
         (runtime::costs::kShortHead +
          vector_products * (runtime::costs::kShortProduct + runtime::costs::kShortProductOfVector * vectors));
}

// Workers that a short call wakes.
template <class Call>
int short_workers(const Engine& engine, const Call& call, std::int64_t sequences) noexcept {
  if (engine.threads() == 1) return 1;
  const std::int64_t tasks = call.sizes.batch * sequences * call.sizes.query_heads;
  return runtime::workers_for(engine, tasks, short_nanoseconds(call, sequences));
}

// All heads of all sequences, one after another.
template <class Call>
void attend_sequences(const Call& call, std::int64_t sequences, float* room) noexcept {
  for (std::int64_t b = 0; b < call.sizes.batch; ++b) {
    for (std::int64_t s = 0; s < sequences; ++s) attend_sequence(call, b, s, 0, call.sizes.query_heads, room);
  }
}

// A frame of its own: calls that borrow their room have none of it.
template <class Call>
[[gnu::noinline]] void attend_sequences_on_stack(const Call& call, std::int64_t sequences) noexcept {
  alignas(64) float room[kShortStackFloats];
  attend_sequences(call, sequences, room);
}

// call.attend(rows, head, room) for all of them; call.options, call.sizes and call.kernels are those of the call, and
// call.floats() says how much room a head takes. Throws OutOfMemory.
template <class Call>
void attend_short_rows(Engine& engine, std::string_view name, const Call& call) {
  const AttentionSizes& sizes = call.sizes;
  const std::int64_t heads = sizes.query_heads;
  const std::int64_t sequences = AttentionSequences(call.options, sizes.query_length, sizes.key_length).count();
  const int workers = short_workers(engine, call, sequences);
  const std::size_t bytes = short_scratch_bytes(call.floats(), workers);
  if (bytes == 0) return attend_sequences_on_stack(call, sequences);
  const runtime::Scratch scratch(engine, bytes, name);
  const std::size_t of_worker = bytes / static_cast<std::size_t>(workers);
  const auto room = [&](int worker) {
    return reinterpret_cast<float*>(scratch.data() + static_cast<std::size_t>(worker) * of_worker);
  };
  if (workers == 1) return attend_sequences(call, sequences, room(0));
  runtime::parallel_for(engine, sizes.batch * sequences * heads, workers, [&](std::int64_t task, int worker) {
    const std::int64_t n = task / heads;
    attend_sequence(call, n / sequences, n % sequences, task % heads, task % heads + 1, room(worker));
  });
}

}  // namespace headlight::ops
