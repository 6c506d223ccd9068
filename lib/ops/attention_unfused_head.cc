#include "ops/attention_unfused_head.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/kernels.h"
#include "ops/attention_rows.h"
#include "ops/gemm_internal.h"

namespace headlight::ops {
namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();

// Rows first … first + count of head h of sample b, as a matrix.
template <class T>
View<T, 2> rows_of(const View<T, 4>& x, std::int64_t b, std::int64_t h, std::int64_t first,
                   std::int64_t count) noexcept {
  return {x.data + b * x.stride(0) + first * x.stride(1) + h * x.stride(2), {count, x.extent(3)}, {x.stride(1), 1}};
}

// One head of one sequence, and the matrix of its scores and later its probabilities.
struct Head {
  const UnfusedCall& call;
  const AttentionSequence& sequence;
  std::int64_t b;
  std::int64_t h;
  IntervalRule rule;
  View<float, 2> scores;  // [queries, keys]

  // Calls f(key) for the keys that the row must not see.
  template <class Function>
  void for_each_hidden(std::int64_t row, Function f) const noexcept {
    const KeyInterval seen = rule(row);
    for (std::int64_t key = 0; key < seen.begin; ++key) f(key);
    for (std::int64_t key = seen.end; key < sequence.keys; ++key) f(key);
    if (!call.mask) return;
    const bool hides = call.options.mask->means == MaskMeans::ignore;
    for (std::int64_t key = seen.begin; key < seen.end; ++key) {
      const bool entry = call.mask(b, h, sequence.first_query + row, sequence.first_key + key) != 0;
      if (entry == hides) f(key);
    }
  }
};

// scores = scale · query · keyᵀ + bias, and −inf where a row must not see. The mask comes last: it covers whatever the
// others left there.
void write_scores(const Head& head, float* gemm_scratch) noexcept {
  const UnfusedCall& call = head.call;
  const View<float, 2>& scores = head.scores;
  if (call.sizes.head_dim == 0) {
    std::fill_n(scores.data, scores.size(), 0.0f);
  } else {
    const auto query = rows_of(call.query, head.b, head.h, head.sequence.first_query, head.sequence.queries);
    const auto key = rows_of(call.key, head.b, head.h / call.sizes.group, head.sequence.first_key, head.sequence.keys);
    run_gemm_block(call.isa, gemm_block(query, key, scores, Transpose::no, Transpose::yes, call.scale), gemm_scratch);
  }
  for (std::int64_t row = 0; row < head.sequence.queries; ++row) {
    float* const scores_of_row = &scores(row, 0);
    if (call.bias) {
      const float* const bias = &call.bias(head.b, head.h, head.sequence.first_query + row, head.sequence.first_key);
      const std::int64_t step = call.bias.stride(3);
      for (std::int64_t key = 0; key < head.sequence.keys; ++key) scores_of_row[key] += bias[key * step];
    }
    head.for_each_hidden(row, [&](std::int64_t key) { scores_of_row[key] = kNothing; });
  }
}

// Scores become probabilities. Of its log-sum-exp the row keeps the maximum m before, and its share 1 / Σ exp(s − m)
// after: their difference of logarithms, with an error of some u whatever the size of the scores.
void make_probabilities(const Head& head) noexcept {
  const View<float, 2>& scores = head.scores;
  const auto softmax = kernels::row_kernels(head.call.isa).softmax;
  for (std::int64_t row = 0; row < head.sequence.queries; ++row) {
    float* const values = &scores(row, 0);
    const std::int64_t largest = std::max_element(values, values + scores.extent(1)) - values;
    const float maximum = values[largest];
    softmax(values, scores.stride(0), values, scores.stride(0), 1, scores.extent(1));
    if (!head.call.options.log_sum_exp) continue;
    // A row of −inf has become zeros, and −inf − log 0 would be NaN; a NaN anywhere in a row is everywhere now.
    const float share = values[largest];
    head.call.options.log_sum_exp(head.b, head.h, head.sequence.first_query + row) =
        share == 0 ? kNothing : maximum - std::log(share);
  }
}

// out = probabilities · values, leaving out the keys that a row must not see: 0 · NaN would be NaN. Slow, and only for
// such values.
void mix_visible_values(const Head& head, const View<const float, 2>& values, const View<float, 2>& out) noexcept {
  for (std::int64_t row = 0; row < head.sequence.queries; ++row) {
    float* const mixed = out.data + row * out.stride(0);
    std::fill_n(mixed, out.extent(1), 0.0f);
    // −1 marks the hidden keys: no share is negative, and the scores are of no use any more.
    float* const shares = &head.scores(row, 0);
    head.for_each_hidden(row, [&](std::int64_t key) { shares[key] = -1; });
    for (std::int64_t key = 0; key < head.sequence.keys; ++key) {
      if (shares[key] == -1) {
        shares[key] = 0;
        continue;
      }
      const float* const value = values.data + key * values.stride(0);
      for (std::int64_t d = 0; d < out.extent(1); ++d) mixed[d] = std::fma(shares[key], value[d], mixed[d]);
    }
  }
}

// Each row's probabilities through the dropout of its place.
void drop_probabilities(const Head& head) noexcept {
  const UnfusedCall& call = head.call;
  if (call.options.dropout.probability == 0) return;
  const kernels::AttentionDropout dropout = dropout_of(call.options);
  const auto drop = kernels::attention_kernels(call.isa).drop_weights;
  for (std::int64_t row = 0; row < head.sequence.queries; ++row) {
    drop(dropout,
         {static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(head.b * call.sizes.query_heads + head.h)},
         head.sequence.keys, &head.scores(row, 0));
  }
}

Head head_of(const UnfusedCall& call, const AttentionSequence& sequence, std::int64_t b, std::int64_t h,
             const UnfusedScratch& scratch) noexcept {
  return {call,
          sequence,
          b,
          h,
          IntervalRule(call.options, sequence),
          View<float, 2>(scratch.scores, {sequence.queries, sequence.keys})};
}

}  // namespace

void unfused_probabilities(const UnfusedCall& call, const AttentionSequence& sequence, std::int64_t b, std::int64_t h,
                           const UnfusedScratch& scratch) noexcept {
  if (sequence.queries == 0) return;
  if (sequence.keys == 0) {
    for (std::int64_t row = 0; row < sequence.queries; ++row) {
      if (call.options.log_sum_exp) call.options.log_sum_exp(b, h, sequence.first_query + row) = kNothing;
    }
    return;
  }
  const Head head = head_of(call, sequence, b, h, scratch);
  write_scores(head, scratch.gemm);
  make_probabilities(head);
}

void mix_unfused(const UnfusedCall& call, const AttentionSequence& sequence, std::int64_t b, std::int64_t h,
                 const UnfusedScratch& scratch) noexcept {
  if (call.sizes.value_dim == 0 || sequence.queries == 0) return;
  const auto out = rows_of(call.out, b, h, sequence.first_query, sequence.queries);
  if (sequence.keys == 0) {
    for (std::int64_t row = 0; row < sequence.queries; ++row) {
      std::fill_n(out.data + row * out.stride(0), out.extent(1), 0.0f);
    }
    return;
  }
  const Head head = head_of(call, sequence, b, h, scratch);
  drop_probabilities(head);
  const auto values = rows_of(call.value, b, h / call.sizes.group, sequence.first_key, sequence.keys);
  if (kernels::attention_kernels(call.isa).all_finite(values.data, values.stride(0), values.extent(0),
                                                      values.extent(1))) {
    run_gemm_block(call.isa, gemm_block(head.scores, values, out), scratch.gemm);
  } else {
    mix_visible_values(head, values, out);
  }
}

}  // namespace headlight::ops
