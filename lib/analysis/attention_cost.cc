#include "headlight/analysis/attention_cost.h"

#include <algorithm>

#include "headlight/attention_backward.h"
#include "layers/sizes.h"

namespace headlight::analysis {

namespace {

constexpr std::int64_t kFloat = sizeof(float);
// Longer than any memory holds, and far enough below 2⁶³ that its square times eight fits.
constexpr std::int64_t kLongest = std::int64_t{1} << 29;

void check(const AttentionStep& step) {
  constexpr std::string_view kName = "attention_cost";
  layers::at_least(0, kName, "batch", step.batch);
  layers::at_least(0, kName, "length", step.length);
  layers::at_least(1, kName, "heads", step.heads);
  layers::at_least(0, kName, "head_dim", step.head_dim);
}

}  // namespace

AttentionStepBytes attention_step_bytes(const Engine& engine, const AttentionStep& step) {
  check(step);
  const AttentionShape shape = {.batch = step.batch,
                                .query_length = step.length,
                                .key_length = step.length,
                                .query_heads = step.heads,
                                .key_value_heads = step.heads,
                                .head_dim = step.head_dim,
                                .value_dim = step.head_dim};
  const std::int64_t rows = step.batch * step.heads * step.length;
  const std::int64_t tensor = kFloat * rows * step.head_dim;
  AttentionStepBytes bytes = {.inputs = 3 * tensor, .outputs = tensor + kFloat * rows, .gradients = 4 * tensor};
  if (step.method == AttentionMethod::unfused) {
    bytes.probabilities = kFloat * rows * step.length;
    const std::int64_t heads = step.batch * step.heads;
    bytes.scratch = kFloat * std::min<std::int64_t>(engine.threads(), heads) * step.length * step.length;
    return bytes;
  }
  if (step.gradient_over_out) bytes.gradients -= tensor;
  bytes.scratch =
      static_cast<std::int64_t>(std::max(workspace_bytes(engine, shape), backward_workspace_bytes(engine, shape)));
  return bytes;
}

AttentionStepFlops attention_step_flops(const AttentionStep& step) {
  check(step);
  const auto length = static_cast<double>(step.length);
  const bool recomputes = step.method == AttentionMethod::recomputing;
  const double pairs = recomputes && step.causal != Causal::none ? length * (length + 1) / 2 : length * length;
  const double heads = static_cast<double>(step.batch) * static_cast<double>(step.heads);
  const double product = 2 * heads * pairs * static_cast<double>(step.head_dim);
  return {.forward = 2 * product, .backward = (recomputes ? 5 : 4) * product};
}

std::int64_t longest_sequence(const Engine& engine, const AttentionStep& step, std::int64_t bytes) {
  std::int64_t fits = 0, too_long = kLongest;
  while (too_long - fits > 1) {
    AttentionStep tried = step;
    tried.length = fits + (too_long - fits) / 2;
    (attention_step_bytes(engine, tried).all() <= bytes ? fits : too_long) = tried.length;
  }
  return fits;
}

}  // namespace headlight::analysis
