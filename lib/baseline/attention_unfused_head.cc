#include "baseline/attention_unfused_head.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include "baseline/unfused_plan.h"
#include "kernels/kernels.h"
#include "ops/attention/rows.h"
#include "ops/attention/scale.h"
#include "ops/attention/score_modifiers.h"
#include "ops/gemm/internal.h"

namespace headlight::baseline {
namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();

// Of rows [first, first + scores.extent(0)) and keys [first_key, first_key + scores.extent(1)) of the tensors.
void raw_scores(const UnfusedCall& call, std::int64_t b, std::int64_t h, std::int64_t first, std::int64_t first_key,
                const View<float, 2>& scores, float* gemm_scratch) noexcept {
  if (call.sizes.head_dim == 0) {
    for (std::int64_t row = 0; row < scores.extent(0); ++row) std::fill_n(&scores(row, 0), scores.extent(1), 0.0f);
    return;
  }
  const auto query = rows_of(call.query, b, h, first, scores.extent(0));
  const auto key = rows_of(call.key, b, h / call.sizes.group, first_key, scores.extent(1));
  multiply_unfused(call.isa, query, Transpose::no, key, Transpose::yes, scores, call.scale, 0.0f, gemm_scratch);
}

// scores = scale · query · keyᵀ through the modifiers, and −inf where a row must not see. The mask comes last: it
// covers whatever the others left there.
void write_scores(const UnfusedHead& head, float* gemm_scratch) noexcept {
  const UnfusedCall& call = head.call;
  const View<float, 2>& scores = head.scores;
  raw_scores(call, head.b, head.h, head.sequence.first_query, head.sequence.first_key, scores, gemm_scratch);
  for (std::int64_t row = 0; row < head.sequence.queries; ++row) {
    float* const scores_of_row = &scores(row, 0);
    head.apply_modifiers(row, scores_of_row, nullptr);
    if (call.bias) {
      const float* const bias = &call.bias(head.b, head.h, head.sequence.first_query + row, head.sequence.first_key);
      const std::int64_t stride = call.bias.stride(3);
      for (std::int64_t key = 0; key < head.sequence.keys; ++key) scores_of_row[key] += bias[key * stride];
    }
    head.for_each_hidden(row, [&](std::int64_t key) { scores_of_row[key] = kNothing; });
    if (call.options.scores && call.options.scores_at == ScoreStage::masked) {
      std::copy_n(scores_of_row, head.sequence.keys,
                  &call.options.scores(head.b, head.h, head.sequence.first_query + row, head.sequence.first_key));
    }
  }
}

// What a sink leaves to the keys of a row: their share of the sum, and the log-sum-exp of all.
struct SharedRow {
  double share;
  double log_sum_exp;
};
SharedRow share_with_sink(double sink, double of_keys) noexcept {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (sink == -kInfinity) return {1, of_keys};
  const double maximum = std::isnan(sink) ? sink : std::max(of_keys, sink);
  const double all = maximum + std::log(std::exp(of_keys - maximum) + std::exp(sink - maximum));
  return {std::exp(of_keys - all), all};
}

// Scores become probabilities. Of its log-sum-exp the row keeps the maximum m before, and its share 1 / Σ exp(s − m)
// after: their difference of logarithms, with an error of some u whatever the size of the scores.
void make_probabilities(const UnfusedHead& head) noexcept {
  const View<float, 2>& scores = head.scores;
  const AttentionOptions& options = head.call.options;
  const auto softmax = kernels::row_kernels(head.call.isa).softmax;
  for (std::int64_t row = 0; row < head.sequence.queries; ++row) {
    float* const values = &scores(row, 0);
    const std::int64_t largest = std::max_element(values, values + scores.extent(1)) - values;
    const float maximum = values[largest];
    softmax({values, scores.stride(0)}, {values, scores.stride(0)}, 1, scores.extent(1));
    float share = values[largest];
    // A row of −inf has become zeros, and −inf − log 0 would be NaN.
    float log_sum_exp = share == 0 ? kNothing : maximum - std::log(share);
    if (!options.sinks.empty()) {
      const double of_keys = static_cast<double>(maximum) - std::log(static_cast<double>(share));
      const SharedRow shared = share_with_sink(static_cast<double>(options.sinks[static_cast<std::size_t>(head.h)]),
                                               share == 0 ? -std::numeric_limits<double>::infinity() : of_keys);
      log_sum_exp = static_cast<float>(shared.log_sum_exp);
      for (std::int64_t key = 0; key < scores.extent(1); ++key) values[key] *= static_cast<float>(shared.share);
      share = values[largest];
    }
    // A NaN anywhere in a row is everywhere now: where it must not see, too.
    if (std::isnan(share)) head.for_each_hidden(row, [&](std::int64_t key) { values[key] = 0; });
    if (options.log_sum_exp) options.log_sum_exp(head.b, head.h, head.sequence.first_query + row) = log_sum_exp;
  }
}

// out = probabilities · values, leaving out the keys that a row must not see: 0 · NaN would be NaN. Slow, and only for
// such values.
void mix_visible_values(const UnfusedHead& head, const View<const float, 2>& values,
                        const View<float, 2>& out) noexcept {
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

// An axis of one entry serves all.
template <class T>
View<T, 4> broadcast(View<T, 4> view) noexcept {
  for (std::size_t axis = 0; axis < 4; ++axis) {
    if (view.shape[axis] == 1) view.strides[axis] = 0;
  }
  return view;
}

}  // namespace

UnfusedCall unfused_call(Isa isa, View<const float, 4> query, View<const float, 4> key, View<const float, 4> value,
                         View<float, 4> out, const AttentionOptions& options,
                         const ops::AttentionSizes& sizes) noexcept {
  const auto scale = static_cast<float>(ops::softmax_scale(options, sizes.head_dim));
  // Products come scaled, in units of e, and bias and masks are seen to here.
  AttentionOptions modifiers_alone = options;
  modifiers_alone.bias = {};
  modifiers_alone.mask.reset();
  return {isa,
          query,
          key,
          value,
          out,
          options,
          sizes,
          scale,
          ops::score_modifiers(modifiers_alone, static_cast<float>(std::numbers::log2e)),
          options.mask ? broadcast(options.mask->entries) : View<const std::uint8_t, 4>{},
          broadcast(options.bias)};
}

void UnfusedHead::apply_modifiers(std::int64_t row, float* scores_of_row, float* cap_derivatives) const noexcept {
  if (call.modifiers.asked == 0) return;
  kernels::ScoreModifiers modifiers = call.modifiers;
  kernels::RowSlope slope{};
  if (!call.options.alibi.empty()) {
    slope = {call.options.alibi[static_cast<std::size_t>(h)], sequence.first_key + rule.position(row)};
  }
  modifiers.slopes = &slope;
  modifiers.first_key = sequence.first_key;
  kernels::attention_kernels(call.isa).modify_row(modifiers, sequence.keys, ops::natural_factor(modifiers),
                                                  scores_of_row, cap_derivatives);
}

void raw_unfused_scores(const UnfusedHead& head, std::int64_t first, const View<float, 2>& scores,
                        float* gemm_scratch) noexcept {
  raw_scores(head.call, head.b, head.h, head.sequence.first_query + first, head.sequence.first_key, scores,
             gemm_scratch);
}

void give_unfused_products(const UnfusedCall& call, std::int64_t b, std::int64_t h, float* gemm_scratch) noexcept {
  const View<float, 4>& all = call.options.scores;
  const View<float, 2> scores(&all(b, h, 0, 0), {all.extent(2), all.extent(3)}, {all.stride(2), 1});
  raw_scores(call, b, h, 0, 0, scores, gemm_scratch);
  if (call.options.scores_at == ScoreStage::raw || call.options.softcap == 0) return;
  kernels::ScoreModifiers modifiers = call.modifiers;
  modifiers.asked = static_cast<unsigned>(kernels::ScoreModifier::softcap);
  for (std::int64_t row = 0; row < scores.extent(0); ++row) {
    kernels::attention_kernels(call.isa).modify_row(modifiers, scores.extent(1), 1.0f, &scores(row, 0), nullptr);
  }
}

void multiply_unfused(Isa isa, const View<const float, 2>& a, Transpose transpose_a, const View<const float, 2>& b,
                      Transpose transpose_b, const View<float, 2>& c, float alpha, float beta,
                      float* scratch) noexcept {
  for (std::int64_t row = 0; row < c.extent(0); row += kRowsAtOnce) {
    const std::int64_t rows = std::min(kRowsAtOnce, c.extent(0) - row);
    const bool turned = transpose_a == Transpose::yes;
    const View<const float, 2> some_a(a.data + row * a.stride(turned ? 1 : 0),
                                      {turned ? a.extent(0) : rows, turned ? rows : a.extent(1)}, a.strides);
    const View<float, 2> some_c(c.data + row * c.stride(0), {rows, c.extent(1)}, c.strides);
    ops::run_gemm_block(isa, ops::gemm_block(some_a, b, some_c, transpose_a, transpose_b, alpha, beta), scratch);
  }
}

void drop_unfused(const UnfusedHead& head, float* rows) noexcept {
  const UnfusedCall& call = head.call;
  if (call.options.dropout.probability == 0) return;
  const kernels::AttentionDropout dropout = ops::dropout_of(call.options);
  const auto drop = kernels::attention_kernels(call.isa).drop_weights;
  for (std::int64_t row = 0; row < head.sequence.queries; ++row) {
    drop(dropout,
         {static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(head.b * call.sizes.query_heads + head.h)},
         head.sequence.keys, rows + row * head.sequence.keys);
  }
}

void unfused_probabilities(const UnfusedCall& call, const ops::AttentionSequence& sequence, std::int64_t b,
                           std::int64_t h, const UnfusedScratch& scratch) noexcept {
  if (sequence.queries == 0) return;
  if (sequence.keys == 0) {
    const float sink = call.options.sinks.empty() ? kNothing : call.options.sinks[static_cast<std::size_t>(h)];
    for (std::int64_t row = 0; row < sequence.queries; ++row) {
      if (call.options.log_sum_exp) call.options.log_sum_exp(b, h, sequence.first_query + row) = sink;
    }
    return;
  }
  const UnfusedHead head = unfused_head(call, sequence, b, h, scratch);
  write_scores(head, scratch.gemm);
  make_probabilities(head);
}

void mix_unfused(const UnfusedCall& call, const ops::AttentionSequence& sequence, std::int64_t b, std::int64_t h,
                 const UnfusedScratch& scratch) noexcept {
  if (call.sizes.value_dim == 0 || sequence.queries == 0) return;
  const auto out = rows_of(call.out, b, h, sequence.first_query, sequence.queries);
  if (sequence.keys == 0) {
    for (std::int64_t row = 0; row < sequence.queries; ++row) {
      std::fill_n(out.data + row * out.stride(0), out.extent(1), 0.0f);
    }
    return;
  }
  const UnfusedHead head = unfused_head(call, sequence, b, h, scratch);
  drop_unfused(head, head.scores.data);
  const auto values = rows_of(call.value, b, h / call.sizes.group, sequence.first_key, sequence.keys);
  if (kernels::attention_kernels(call.isa).all_finite({.stride = values.stride(0), .data = values.data},
                                                      values.extent(0), values.extent(1))) {
    multiply_unfused(call.isa, head.scores, Transpose::no, values, Transpose::no, out, 1.0f, 0.0f, scratch.gemm);
  } else {
    mix_visible_values(head, values, out);
  }
}

}  // namespace headlight::baseline
