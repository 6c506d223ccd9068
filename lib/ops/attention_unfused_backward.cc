// attention_unfused_backward(): two matrices of a head at a time, P and the score gradients, by the engine's products.
#include <algorithm>
#include <cmath>

#include "headlight/attention_backward.h"
#include "kernels/kernels.h"
#include "ops/attention_backward_check.h"
#include "ops/attention_unfused_head.h"
#include "ops/gemm_internal.h"
#include "runtime/parallel.h"

namespace headlight {
namespace {

using ops::AttentionSequence;
using ops::UnfusedCall;
using ops::UnfusedHead;
using ops::UnfusedScratch;

struct UnfusedBackward {
  UnfusedCall forward;
  View<const float, 4> out_gradient;
  const AttentionGradients& gradients;
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
      return ops::run_gemm_block(head.call.isa, ops::gemm_block(a, b, c, transpose, Transpose::no, factor, 1.0f),
                                 gemm_scratch);
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

// probability_gradients ← dS = P∘(dP − δ), δ = Σ_j P dP; zeros where a row must not see.
void make_score_gradients(const UnfusedHead& head, const View<float, 2>& gradients) noexcept {
  const auto dot = kernels::attention_backward_kernels(head.call.isa).dot;
  const std::int64_t keys = head.sequence.keys;
  for (std::int64_t row = 0; row < head.sequence.queries; ++row) {
    float* const probabilities = &head.scores(row, 0);
    float* const of_row = &gradients(row, 0);
    head.for_each_hidden(row, [&](std::int64_t key) { probabilities[key] = of_row[key] = 0; });
    const float delta = dot(probabilities, of_row, keys);
    for (std::int64_t key = 0; key < keys; ++key) of_row[key] = probabilities[key] * (of_row[key] - delta);
    if (std::isnan(delta)) head.for_each_hidden(row, [&](std::int64_t key) { of_row[key] = 0; });
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

void differentiate_head(const UnfusedBackward& call, const AttentionSequence& sequence, std::int64_t b, std::int64_t h,
                        const UnfusedScratch& scratch, float* probability_gradients) noexcept {
  if (sequence.queries == 0 || sequence.keys == 0) return;
  const UnfusedCall& forward = call.forward;
  ops::unfused_probabilities(forward, sequence, b, h, scratch);
  const UnfusedHead head = ops::unfused_head(forward, sequence, b, h, scratch);
  const std::int64_t key_head = h / forward.sizes.group;
  const auto of_rows = [&](const auto& x) { return ops::rows_of(x, b, h, sequence.first_query, sequence.queries); };
  const auto of_keys = [&](const auto& x) { return ops::rows_of(x, b, key_head, sequence.first_key, sequence.keys); };
  const auto finite = [&](const View<const float, 2>& x) {
    return kernels::attention_kernels(forward.isa).all_finite(x.data, x.stride(0), x.extent(0), x.extent(1));
  };
  const auto query = of_rows(forward.query), out_gradient = of_rows(call.out_gradient);
  const auto key = of_keys(forward.key);

  const View<float, 2> gradients(probability_gradients, {sequence.queries, sequence.keys});
  if (forward.sizes.value_dim == 0) {
    std::fill_n(gradients.data, gradients.size(), 0.0f);
  } else {
    ops::run_gemm_block(forward.isa,
                        ops::gemm_block(out_gradient, of_keys(forward.value), gradients, Transpose::no, Transpose::yes),
                        scratch.gemm);
  }
  ops::drop_unfused(head, gradients.data);
  make_score_gradients(head, gradients);
  if (call.gradients.bias) add_bias_gradient(head, gradients, call.gradients.bias);

  const Products add_product{head, !finite(query) || !finite(key) || !finite(out_gradient), scratch.gemm};
  if (call.gradients.query) {
    add_product(gradients, Transpose::no, key, of_rows(call.gradients.query), forward.scale);
  }
  if (call.gradients.key) add_product(gradients, Transpose::yes, query, of_keys(call.gradients.key), forward.scale);
  if (call.gradients.value) {
    ops::drop_unfused(head, head.scores.data);
    add_product(head.scores, Transpose::yes, out_gradient, of_keys(call.gradients.value), 1.0f);
  }
}

void clear_head(const View<float, 4>& x, std::int64_t b, std::int64_t h) noexcept {
  for (std::int64_t i = 0; x && i < x.extent(1); ++i)
    std::fill_n(x.data + b * x.stride(0) + i * x.stride(1) + h * x.stride(2), x.extent(3), 0.0f);
}

std::int64_t gemm_floats(const UnfusedCall& call, const ops::AttentionSequences& sequences) noexcept {
  const std::int64_t dim = call.sizes.head_dim, value_dim = call.sizes.value_dim;
  std::int64_t most = 0;
  for (std::int64_t b = 0; b < call.sizes.batch; ++b) {
    for (std::int64_t s = 0; s < sequences.count(); ++s) {
      const std::int64_t queries = sequences(b, s).queries, keys = sequences(b, s).keys;
      most = std::max({most, ops::gemm_scratch_floats(call.isa, queries, keys, dim),
                       ops::gemm_scratch_floats(call.isa, queries, keys, value_dim),
                       ops::gemm_scratch_floats(call.isa, queries, dim, keys),
                       ops::gemm_scratch_floats(call.isa, keys, dim, queries, Transpose::yes),
                       ops::gemm_scratch_floats(call.isa, keys, value_dim, queries, Transpose::yes)});
    }
  }
  return most;
}

}  // namespace

void attention_unfused_backward(Engine& engine, View<const float, 4> query, View<const float, 4> key,
                                View<const float, 4> value, View<const float, 4> out_gradient,
                                const AttentionGradients& gradients, const AttentionOptions& options) {
  const ops::AttentionSizes sizes = ops::check_attention_backward("attention_unfused_backward", query, key, value, {},
                                                                  {}, out_gradient, gradients, options);
  if (ops::asks_for_nothing(gradients)) return;
  AttentionOptions inputs_alone = options;
  inputs_alone.log_sum_exp = {};
  inputs_alone.probabilities = {};
  const UnfusedBackward call{ops::unfused_call(engine.isa(), query, key, value, {}, inputs_alone, sizes), out_gradient,
                             gradients};
  const std::int64_t scores = ops::most_unfused_scores(call.forward);
  const ops::AttentionSequences sequences(options, sizes.query_length, sizes.key_length);

  // Heads that share keys, or all that share a bias, add to the same sums: they stay on one thread, in their order.
  const std::int64_t tasks = sizes.batch * sizes.key_value_heads;
  const double nanoseconds = static_cast<double>(sizes.batch * sizes.query_heads) * static_cast<double>(scores) *
                             static_cast<double>(3 * sizes.head_dim + 2 * sizes.value_dim) / 50;
  const int lanes = gradients.bias ? 1 : runtime::lanes_for(engine, tasks, nanoseconds);
  runtime::ScratchLayout layout;
  const std::size_t probabilities_at = layout.add<float>(scores);
  const std::size_t gradients_at = layout.add<float>(scores);
  const std::size_t gemm_at = layout.add<float>(gemm_floats(call.forward, sequences));
  const runtime::Scratch memory(engine, layout.bytes() * static_cast<std::size_t>(lanes));
  if (gradients.bias && !gradients.accumulate) {
    for (std::int64_t b = 0; b < gradients.bias.extent(0); ++b) {
      for (std::int64_t h = 0; h < gradients.bias.extent(1); ++h) {
        for (std::int64_t i = 0; i < gradients.bias.extent(2); ++i) {
          std::fill_n(&gradients.bias(b, h, i, 0), gradients.bias.extent(3), 0.0f);
        }
      }
    }
  }
  runtime::parallel_for(engine, tasks, lanes, [&](std::int64_t task, int lane) {
    std::byte* const own = memory.data() + layout.bytes() * static_cast<std::size_t>(lane);
    const auto part = [&](std::size_t at) { return reinterpret_cast<float*>(own + at); };
    const std::int64_t b = task / sizes.key_value_heads;
    const std::int64_t key_head = task % sizes.key_value_heads;
    if (!gradients.accumulate) {
      clear_head(gradients.key, b, key_head);
      clear_head(gradients.value, b, key_head);
    }
    for (std::int64_t h = key_head * sizes.group; h < (key_head + 1) * sizes.group; ++h) {
      if (!gradients.accumulate) clear_head(gradients.query, b, h);
      for (std::int64_t s = 0; s < sequences.count(); ++s) {
        differentiate_head(call, sequences(b, s), b, h, {part(probabilities_at), part(gemm_at)}, part(gradients_at));
      }
    }
  });
}

}  // namespace headlight
