#include "headlight/analysis/attention_cost.h"

#include <algorithm>

#include "baseline/unfused_plan.h"
#include "layers/sizes.h"
#include "ops/attention/plan.h"
#include "ops/attention_backward/plan.h"

namespace headlight::analysis {

namespace {

constexpr std::string_view kAttentionCostName = "attention_cost";
constexpr std::int64_t kFloat = sizeof(float);
// As many bytes as no machine has, and far below 2⁶³.
constexpr double kMost = 1e14;
constexpr std::int64_t kLongest = std::int64_t{1} << 40;

// All but the scratch memory, roughly.
double rough_bytes(const AttentionStep& step) noexcept {
  const double rows =
      static_cast<double>(step.batch) * static_cast<double>(step.heads) * static_cast<double>(step.length);
  const bool squares = step.method == AttentionMethod::unfused;
  return kFloat * rows *
         (7 * static_cast<double>(step.head_dim) + 1 + (squares ? static_cast<double>(step.length) : 0));
}

void check(const AttentionStep& step) {
  layers::at_least(0, kAttentionCostName, "batch", step.batch);
  layers::at_least(0, kAttentionCostName, "length", step.length);
  layers::at_least(1, kAttentionCostName, "heads", step.heads);
  layers::at_least(0, kAttentionCostName, "head_dim", step.head_dim);
}

}  // namespace

AttentionStepBytes attention_step_bytes(const Engine& engine, const AttentionStep& step) {
  check(step);
  if (rough_bytes(step) > kMost) ops::fail(kAttentionCostName, "the step takes more than 10¹⁴ bytes");
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
    const ops::AttentionSizes sizes = ops::check_attention_shape(kAttentionCostName, shape);
    bytes.scratch = static_cast<std::int64_t>(
        std::max(baseline::plan_unfused(engine, sizes, {}, sizes.batch * sizes.query_heads).bytes(),
                 baseline::plan_unfused_backward(engine, sizes, {}, true, false).bytes()));
    return bytes;
  }
  if (step.gradient_over_out) bytes.gradients -= tensor;
  // workspace_bytes() counts what probabilities would need, which nobody asks for here.
  const std::size_t forward =
      ops::attention_call_bytes(engine, ops::check_attention_shape(kAttentionCostName, shape), {}, false);
  bytes.scratch = static_cast<std::int64_t>(
      std::max(forward, ops::float_backward_scratch_bytes(engine, kAttentionCostName, shape)));
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
  if (step.batch == 0) return kLongest;  // nothing of any length
  std::int64_t fits = 0, too_long = kLongest;
  while (too_long - fits > 1) {
    AttentionStep tried = step;
    tried.length = fits + (too_long - fits) / 2;
    const bool is_close = rough_bytes(tried) <= std::min(static_cast<double>(bytes), kMost);
    (is_close && attention_step_bytes(engine, tried).all() <= bytes ? fits : too_long) = tried.length;
  }
  return fits;
}

}  // namespace headlight::analysis
