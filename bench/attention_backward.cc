// Attention backward: full, causal, with dropout, and forward and backward together, in [B, L, H, D] memory.
#include "headlight/attention_backward.h"

#include <cmath>
#include <memory>

#include "baseline/attention_unfused.h"
#include "harness/attention_case.h"
#include "harness/case_name.h"
#include "harness/inputs.h"
#include "harness/spans.h"
#include "harness/suite.h"
#include "harness/typed_attention.h"
#include "reference/attention.h"
#include "reference/dropout.h"

namespace headlight::bench {
namespace {

struct Self {
  std::int64_t heads, length, head_dim;
  Causal causal = Causal::none;
  float dropout = 0;
  bool with_forward = false;
  std::int64_t chunk = 0;
};

// Operands of one case; the forward pass has been run once.
struct Backward {
  explicit Backward(const Self& shape_, Engine& engine)
      : shape(shape_),
        query(filled<4>(sizes(), 1)),
        key(filled<4>(sizes(), 2)),
        value(filled<4>(sizes(), 3)),
        out_gradient(filled<4>(sizes(), 4)),
        out(sizes()),
        query_gradient(sizes()),
        key_gradient(sizes()),
        value_gradient(sizes()),
        log_sum_exp({1, shape.heads, shape.length}) {
    options.causal = shape.causal;
    options.chunk = shape.chunk;
    options.dropout = {shape.dropout, 42, 7};
    forward(engine);
  }
  [[nodiscard]] View<float, 4>::Shape sizes() const { return {1, shape.length, shape.heads, shape.head_dim}; }

  void forward(Engine& engine) {
    AttentionOptions with_rows = options;
    with_rows.log_sum_exp = log_sum_exp;
    attention(engine, query, key, value, out, with_rows);
  }
  void backward(Engine& engine) {
    attention_backward(engine, query, key, value, out, log_sum_exp, out_gradient, gradients(), options);
  }
  [[nodiscard]] AttentionGradients gradients() { return {query_gradient, key_gradient, value_gradient}; }

  Self shape;
  Tensor<float, 4> query, key, value, out_gradient, out, query_gradient, key_gradient, value_gradient;
  Tensor<float, 3> log_sum_exp;
  AttentionOptions options;
};

// One pair's probability, dropout factor and score gradient in float64, from the log-sum-exp of the forward pass.
struct Pair {
  double probability = 0, factor = 0, score_gradient = 0;
};
Pair pair_of(const Backward& work, std::int64_t h, std::int64_t i, std::int64_t j) {
  const Self& shape = work.shape;
  if (!reference::visible(work.options, shape.length, shape.length, 0, h, i, j)) return {};
  double score = 0, probability_gradient = 0, delta = 0;
  for (std::int64_t d = 0; d < shape.head_dim; ++d) {
    const double gradient = work.out_gradient(0, i, h, d);
    score += static_cast<double>(work.query(0, i, h, d)) * work.key(0, j, h, d);
    probability_gradient += gradient * work.value(0, j, h, d);
    delta += gradient * work.out(0, i, h, d);
  }
  Pair pair;
  pair.probability = std::exp(score / std::sqrt(static_cast<double>(shape.head_dim)) - work.log_sum_exp(0, h, i));
  pair.factor = reference::dropout_factor(work.options.dropout, j, i, static_cast<std::uint32_t>(h));
  pair.score_gradient = pair.probability * (probability_gradient * pair.factor - delta);
  return pair;
}

// The gradients of some queries, keys and values in float64, against ours.
bool some_rows_are_right(const Backward& work) {
  const Self& shape = work.shape;
  const double scale = 1 / std::sqrt(static_cast<double>(shape.head_dim));
  for (std::int64_t probe = 0; probe < 4; ++probe) {
    const std::int64_t h = probe * 7919 % shape.heads;
    const std::int64_t at = (probe * 104729 + shape.length - 1) % shape.length;
    for (std::int64_t d = 0; d < shape.head_dim; d += 7) {
      double query = 0, key = 0, value = 0, size = 0;
      for (std::int64_t n = 0; n < shape.length; ++n) {
        const Pair row = pair_of(work, h, at, n), column = pair_of(work, h, n, at);
        query += scale * row.score_gradient * work.key(0, n, h, d);
        key += scale * column.score_gradient * work.query(0, n, h, d);
        value += column.probability * column.factor * work.out_gradient(0, n, h, d);
        size += column.probability * column.factor;
      }
      // Entries are below 1 and a row's probabilities add up to 1: far above rounding, far below a wrong weight.
      const double allowed = 1e-5 * (1 + size);
      if (!(std::abs(query - work.query_gradient(0, at, h, d)) < allowed)) return false;
      if (!(std::abs(key - work.key_gradient(0, at, h, d)) < allowed)) return false;
      if (!(std::abs(value - work.value_gradient(0, at, h, d)) < allowed)) return false;
    }
  }
  return true;
}

Work work_of(const Self& shape, const CaseContext& context) {
  Engine* engine = &context.engine;
  const auto operands = std::make_shared<Backward>(shape, *engine);
  Work work;
  work.run = [operands, engine] {
    if (operands->shape.with_forward) operands->forward(*engine);
    operands->backward(*engine);
  };
  work.is_right = [operands] { return some_rows_are_right(*operands); };
  const auto length = static_cast<double>(shape.length);
  const double full = shape.chunk > 0 ? length * static_cast<double>(shape.chunk) : length * length;
  const double pairs = shape.causal == Causal::none ? full : length * (length + 1) / 2;
  work.operations =
      (shape.with_forward ? 14 : 10) * pairs * static_cast<double>(shape.heads) * static_cast<double>(shape.head_dim);
  work.reads = reads_of(operands->query, operands->key, operands->value, operands->out_gradient, operands->out,
                        operands->log_sum_exp);
  work.writes = writes_of(operands->query_gradient, operands->key_gradient, operands->value_gradient);
  // The forward pass writes the output, too.
  if (shape.with_forward) work.writes.push_back(writes_of(operands->out).front());
  if (context.options.peers && !context.options.quick && !shape.with_forward) {
    work.peers.push_back({"headlight unfused", "", [operands, engine] {
                            baseline::attention_unfused_backward(*engine, operands->query, operands->key,
                                                                 operands->value, operands->out_gradient,
                                                                 operands->gradients(), operands->options);
                          }});
  }
  return work;
}

std::string name_of(const Self& shape) {
  const std::string kind = shape.chunk > 0                ? case_name("chunk", shape.chunk)
                           : shape.causal != Causal::none ? "causal"
                                                          : "full";
  return case_name(kind, shape.dropout > 0 ? "_dropout" : "", shape.with_forward ? "_with_forward" : "", "/H",
                   shape.heads, "/L", shape.length, "/D", shape.head_dim);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add = [&](const Self& shape, bool quick) {
    all.push_back({name_of(shape), [shape](const CaseContext& context) { return work_of(shape, context); }, quick,
                   shape.length == 16});
  };
  for (const std::int64_t length : {128, 512, 1024, 4096}) add({12, length, 64}, length == 1024);
  for (const std::int64_t length : {512, 1024, 4096}) add({12, length, 64, Causal::top_left}, length == 1024);
  add({12, 1024, 64, Causal::none, 0.1f}, true);
  add({12, 1024, 64, Causal::none, 0, true}, true);
  add({12, 4096, 64, Causal::none, 0, true}, false);
  for (const std::int64_t length : {1024, 4096}) add({12, length, 64, Causal::top_left, 0, true}, false);
  add({12, 1024, 64, Causal::none, 0.1f, true}, true);
  add({12, 1024, 32}, false);
  add({8, 2048, 128}, false);
  for (const std::int64_t chunk : {64, 256}) {
    add({.heads = 12, .length = 4096, .head_dim = 64, .with_forward = true, .chunk = chunk}, false);
  }
  add({12, 16, 64}, false);
  const auto add_typed = [&](NumberType type, const TypedAttention& shape, bool with_forward) {
    const char* const causal = shape.causal == Causal::none ? "" : "_causal";
    all.push_back({case_name(name(type), causal, with_forward ? "_with_forward" : "", "/H", shape.heads, "/L",
                             shape.query_length, "/D", shape.head_dim),
                   [=](const CaseContext& context) { return typed_backward_work(shape, type, with_forward, context); },
                   false});
  };
  for (const bool with_forward : {false, true}) {
    for (const NumberType type : {NumberType::bfloat16, NumberType::float16}) {
      for (const std::int64_t length : {128, 512, 1024}) add_typed(type, {length, length, 12, 12, 64}, with_forward);
    }
    for (const std::int64_t length : {1024, 4096}) {
      TypedAttention shape{length, length, 12, 12, 64};
      shape.causal = Causal::top_left;
      add_typed(NumberType::bfloat16, shape, with_forward);
    }
    add_typed(NumberType::bfloat16, {2048, 2048, 8, 8, 128}, with_forward);
  }
  return all;
}

}  // namespace
}  // namespace headlight::bench

int main(int argc, char** argv) {
  return headlight::bench::run_suite("attention_backward", headlight::bench::cases(), argc, argv);
}
