// attention_unfused_backward(): two matrices of a head at a time, P and the score gradients, by the engine's products.
// P is the forward pass's where that kept it, else worked out again.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <string_view>

#include "baseline/attention_unfused.h"
#include "baseline/attention_unfused_head.h"
#include "baseline/unfused_plan.h"
#include "kernels/kernels.h"
#include "ops/attention/check.h"
#include "ops/attention/row_scores.h"
#include "ops/attention/score_modifiers.h"
#include "ops/attention_backward/check.h"
#include "ops/check.h"
#include "ops/rows/typed.h"
#include "runtime/parallel.h"

namespace headlight::baseline {
namespace {

using ops::AttentionSequence;

constexpr std::string_view kName = "attention_unfused_backward";

struct UnfusedBackward {
  UnfusedCall forward;
  View<const float, 4> out_gradient;
  const AttentionGradients& gradients;
  const Probabilities& kept;

  [[nodiscard]] bool keeps_probabilities() const noexcept { return static_cast<bool>(kept.per_head); }
};

// Where a head finds its memory: P, where the forward pass did not keep it; then the score gradients; and what products
// and a soft cap ask for.
struct BackwardScratch {
  float* probabilities;
  float* gradients;
  float* raw_scores;  // of some rows, and derivatives of one, where there is a soft cap
  float* gemm;
};

// c ← c + factor · op(a) · b, op the transpose for the keys' gradients. With `exactly`, pairs that are hidden are
// left out, for 0 · NaN is NaN: slow, and only for such inputs.
struct Products {
  const UnfusedHead& head;
  bool exactly;
  float* gemm_scratch;

  void operator()(const View<const float, 2>& a, Transpose transpose, const View<const float, 2>& b,
                  const View<float, 2>& c, float factor) const noexcept {
    if (c.size() == 0) return;
    if (!exactly) {
      return multiply_unfused(head.call.isa, a, transpose, b, Transpose::no, c, factor, 1.0f, gemm_scratch);
    }
    for (std::int64_t row = 0; row < head.sequence.queries; ++row) {
      std::int64_t next = 0;
      const auto add_until = [&](std::int64_t last) {
        for (std::int64_t key = next; key < last; ++key) {
          const std::int64_t from = transpose == Transpose::yes ? row : key;
          const std::int64_t to = transpose == Transpose::yes ? key : row;
          for (std::int64_t d = 0; d < c.extent(1); ++d) c(to, d) += factor * a(row, key) * b(from, d);
        }
        next = last + 1;
      };
      head.for_each_hidden(row, add_until);
      add_until(head.sequence.keys);
    }
  }
};

// Σ_i P_sink δ_i of a head, which its sink's gradient is the negative of. With P_j the greatest of a row,
// P_sink = P_j exp(sink − score_j).
class SinkSum {
 public:
  explicit SinkSum(const UnfusedHead& head) noexcept
      : head_(head),
        keys_(head.call.key, head.call.value),
        modifiers_(ops::score_modifiers(head.call.options, head.call.scale * static_cast<float>(std::numbers::log2e))) {
  }

  void add(std::int64_t row, float delta) noexcept {
    const UnfusedCall& call = head_.call;
    if (call.options.sinks.empty()) return;
    const float* const probabilities = &head_.scores(row, 0);
    const std::int64_t j = std::max_element(probabilities, probabilities + head_.sequence.keys) - probabilities;
    if (probabilities[j] == 0) return;  // and δ is 0
    const std::int64_t query = head_.sequence.first_query + row;
    const ops::RowScores scores(call.options, modifiers_, keys_,
                                {.query = ops::operand_at(call.query, head_.b, query, head_.h),
                                 .head_dim = call.sizes.head_dim,
                                 .sample = head_.b,
                                 .head = head_.h,
                                 .key_value_head = head_.h / call.sizes.group,
                                 .row = query,
                                 .position = head_.sequence.first_key + head_.rule.position(row)});
    const double sink =
        static_cast<double>(call.options.sinks[static_cast<std::size_t>(head_.h)]) * std::numbers::log2e;
    const double distance = sink - static_cast<double>(scores(head_.sequence.first_key + j));
    sum_ += static_cast<double>(probabilities[j]) * std::exp2(distance) * static_cast<double>(delta);
  }
  [[nodiscard]] double sum() const noexcept { return sum_; }

 private:
  const UnfusedHead& head_;
  ops::KeySource keys_;
  kernels::ScoreModifiers modifiers_;
  double sum_ = 0;
};

// gradients dP ← dS = P∘(dP − δ), δ = Σ_j P dP; zeros where a row must not see, as in P.
void make_score_gradients(const UnfusedHead& head, const View<float, 2>& gradients, SinkSum& sinks) noexcept {
  const auto row_dots = kernels::attention_backward_kernels(head.call.isa).rows.row_dots;
  const std::int64_t keys = head.sequence.keys;
  for (std::int64_t row = 0; row < head.sequence.queries; ++row) {
    const float* const probabilities = &head.scores(row, 0);
    float* const of_row = &gradients(row, 0);
    head.for_each_hidden(row, [&](std::int64_t key) { of_row[key] = 0; });
    float delta;
    row_dots({.data = probabilities}, {.data = of_row}, 1, keys, &delta, 1);
    sinks.add(row, delta);
    for (std::int64_t key = 0; key < keys; ++key) of_row[key] = probabilities[key] * (of_row[key] - delta);
    if (std::isnan(delta)) head.for_each_hidden(row, [&](std::int64_t key) { of_row[key] = 0; });
  }
}

// Gradients by capped scores → by raw ones: times 1 − (capped / cap)².
void differentiate_cap(const UnfusedHead& head, const View<float, 2>& gradients,
                       const BackwardScratch& scratch) noexcept {
  const std::int64_t keys = head.sequence.keys;
  float* const derivatives = scratch.raw_scores + kCappedRows * keys;
  for (std::int64_t first = 0; first < head.sequence.queries; first += kCappedRows) {
    const View<float, 2> scores(scratch.raw_scores, {std::min(kCappedRows, head.sequence.queries - first), keys});
    raw_unfused_scores(head, first, scores, scratch.gemm);
    for (std::int64_t row = first; row < first + scores.extent(0); ++row) {
      head.apply_modifiers(row, &scores(row - first, 0), derivatives);
      float* const of_row = &gradients(row, 0);
      for (std::int64_t key = 0; key < keys; ++key) of_row[key] *= derivatives[key];
      // A product that is NaN has a derivative that is, which 0 would not silence.
      head.for_each_hidden(row, [&](std::int64_t key) { of_row[key] = 0; });
    }
  }
}

void add_bias_gradient(const UnfusedHead& head, const View<const float, 2>& score_gradients,
                       const View<float, 4>& bias) noexcept {
  const auto at = [&](int axis, std::int64_t index) { return bias.extent(axis) == 1 ? 0 : index; };
  for (std::int64_t row = 0; row < head.sequence.queries; ++row) {
    float* const to = &bias(at(0, head.b), at(1, head.h), at(2, head.sequence.first_query + row), 0);
    for (std::int64_t key = 0; key < head.sequence.keys; ++key) {
      to[at(3, head.sequence.first_key + key)] += score_gradients(row, key);
    }
  }
}

// P of the head, [queries, keys].
UnfusedHead head_of(const UnfusedBackward& call, const AttentionSequence& sequence, std::int64_t b, std::int64_t h,
                    const BackwardScratch& scratch) noexcept {
  const UnfusedScratch own{scratch.probabilities, scratch.gemm};
  if (!call.keeps_probabilities()) unfused_probabilities(call.forward, sequence, b, h, own);
  UnfusedHead head = unfused_head(call.forward, sequence, b, h, own);
  if (!call.keeps_probabilities()) return head;
  const View<float, 4>& kept = call.kept.per_head;
  head.scores.data = &kept(b, h, sequence.first_query, call.kept.own_keys ? 0 : sequence.first_key);
  head.scores.strides = {kept.stride(2), 1};
  return head;
}

// dV += (P∘Z)ᵀ dO. The second matrix is still free, and takes P∘Z.
void add_value_gradient(const UnfusedHead& head, const View<float, 2>& dropped,
                        const View<const float, 2>& out_gradient, const View<float, 2>& gradient,
                        const Products& add_product) noexcept {
  if (head.call.options.dropout.probability == 0) {
    return add_product(head.scores, Transpose::yes, out_gradient, gradient, 1.0f);
  }
  for (std::int64_t row = 0; row < head.sequence.queries; ++row) {
    std::copy_n(&head.scores(row, 0), head.sequence.keys, &dropped(row, 0));
  }
  drop_unfused(head, dropped.data);
  add_product(dropped, Transpose::yes, out_gradient, gradient, 1.0f);
}

void differentiate_head(const UnfusedBackward& call, const AttentionSequence& sequence, std::int64_t b, std::int64_t h,
                        const BackwardScratch& scratch) noexcept {
  if (sequence.queries == 0 || sequence.keys == 0) return;
  const UnfusedCall& forward = call.forward;
  const UnfusedHead head = head_of(call, sequence, b, h, scratch);
  const std::int64_t key_head = h / forward.sizes.group;
  const auto of_rows = [&](const auto& x) { return rows_of(x, b, h, sequence.first_query, sequence.queries); };
  const auto of_keys = [&](const auto& x) { return rows_of(x, b, key_head, sequence.first_key, sequence.keys); };
  const auto finite = [&](const View<const float, 2>& x) {
    return kernels::attention_kernels(forward.isa)
        .all_finite({.stride = x.stride(0), .data = x.data}, x.extent(0), x.extent(1));
  };
  const auto query = of_rows(forward.query), out_gradient = of_rows(call.out_gradient);
  const auto key = of_keys(forward.key);
  const View<float, 2> gradients(scratch.gradients, {sequence.queries, sequence.keys});
  const Products add_product{head, !finite(query) || !finite(key) || !finite(out_gradient), scratch.gemm};
  if (call.gradients.value) {
    add_value_gradient(head, gradients, out_gradient, of_keys(call.gradients.value), add_product);
  }

  if (forward.sizes.value_dim == 0) {
    std::fill_n(gradients.data, gradients.size(), 0.0f);
  } else {
    multiply_unfused(forward.isa, out_gradient, Transpose::no, of_keys(forward.value), Transpose::yes, gradients, 1.0f,
                     0.0f, scratch.gemm);
  }
  drop_unfused(head, gradients.data);
  SinkSum sinks(head);
  make_score_gradients(head, gradients, sinks);
  if (call.gradients.sinks) call.gradients.sinks(h) -= static_cast<float>(sinks.sum());
  if (call.gradients.bias) add_bias_gradient(head, gradients, call.gradients.bias);
  if (forward.options.softcap != 0) differentiate_cap(head, gradients, scratch);
  if (call.gradients.query) {
    add_product(gradients, Transpose::no, key, of_rows(call.gradients.query), forward.scale);
  }
  if (call.gradients.key) add_product(gradients, Transpose::yes, query, of_keys(call.gradients.key), forward.scale);
}

void clear_head(const View<float, 4>& x, std::int64_t b, std::int64_t h) noexcept {
  for (std::int64_t i = 0; x && x.extent(3) > 0 && i < x.extent(1); ++i)
    std::fill_n(x.data + b * x.stride(0) + i * x.stride(1) + h * x.stride(2), x.extent(3), 0.0f);
}

// What the forward pass wrote, where that is all rows; else nothing.
Probabilities kept_probabilities(const ops::AttentionSizes& sizes, const AttentionGradients& gradients,
                                 const AttentionOptions& options) {
  if (!options.probabilities.per_head || !options.probabilities.rows.empty()) return {};
  Probabilities kept = options.probabilities;
  kept.averaged = {};
  const ops::Extent extent = ops::check_kept_probabilities(kName, options, sizes);
  const auto check = [&](std::string_view name, const View<float, 4>& gradient) {
    if (!gradient) return;
    ops::check_disjoint(kName, name, ops::check_view(kName, name, gradient), "probabilities.per_head", extent);
  };
  check("gradients.query", gradients.query);
  check("gradients.key", gradients.key);
  check("gradients.value", gradients.value);
  check("gradients.bias", gradients.bias);
  if (gradients.sinks) {
    ops::check_disjoint(kName, "gradients.sinks", ops::check_view(kName, "gradients.sinks", gradients.sinks),
                        "probabilities.per_head", extent);
  }
  return kept;
}

}  // namespace

void attention_unfused_backward(Engine& engine, View<const float, 4> query, View<const float, 4> key,
                                View<const float, 4> value, View<const float, 4> out_gradient,
                                const AttentionGradients& gradients, const AttentionOptions& options) {
  const ops::AttentionSizes sizes =
      ops::check_attention_backward_inputs(kName, query, key, value, out_gradient, gradients, options);
  const Probabilities kept = kept_probabilities(sizes, gradients, options);
  if (ops::asks_for_nothing(gradients)) return;
  const AttentionOptions inputs_alone = ops::without_outputs(options);
  const UnfusedBackward call{unfused_call(engine.isa(), query, key, value, {}, inputs_alone, sizes), out_gradient,
                             gradients, kept};
  const ops::AttentionSequences sequences(options, sizes.query_length, sizes.key_length);
  // Heads that share keys, or all that share a bias or sinks, add to the same sums: they stay on one thread, in their
  // order.
  const std::int64_t tasks = sizes.batch * sizes.key_value_heads;
  const UnfusedBackwardPlan plan =
      plan_unfused_backward(engine, sizes, inputs_alone, call.keeps_probabilities(), gradients.bias || gradients.sinks);
  const runtime::Scratch memory(engine, plan.bytes(), kName);
  if (gradients.bias && !gradients.accumulate) {
    for (std::int64_t b = 0; b < gradients.bias.extent(0); ++b) {
      for (std::int64_t h = 0; h < gradients.bias.extent(1); ++h) {
        for (std::int64_t i = 0; i < gradients.bias.extent(2); ++i) {
          std::fill_n(&gradients.bias(b, h, i, 0), gradients.bias.extent(3), 0.0f);
        }
      }
    }
  }
  for (std::int64_t h = 0; gradients.sinks && !gradients.accumulate && h < sizes.query_heads; ++h) {
    gradients.sinks(h) = 0;
  }
  runtime::parallel_for(engine, tasks, plan.workers, [&](std::int64_t task, int worker) {
    const auto own = [&](const ops::WorkerPart<float>& part) { return plan.in(memory.data(), worker, part); };
    const BackwardScratch scratch{own(plan.probabilities), own(plan.gradients), own(plan.raw_scores), own(plan.gemm)};
    const std::int64_t b = task / sizes.key_value_heads;
    const std::int64_t key_head = task % sizes.key_value_heads;
    if (!gradients.accumulate) {
      clear_head(gradients.key, b, key_head);
      clear_head(gradients.value, b, key_head);
    }
    for (std::int64_t h = key_head * sizes.group; h < (key_head + 1) * sizes.group; ++h) {
      if (!gradients.accumulate) clear_head(gradients.query, b, h);
      for (std::int64_t s = 0; s < sequences.count(); ++s) {
        differentiate_head(call, sequences(b, s), b, h, scratch);
      }
    }
  });
}

}  // namespace headlight::baseline
