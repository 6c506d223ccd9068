// What one forward and backward pass of attention alone holds and computes, before it is run.
#pragma once

#include <cstdint>

#include "headlight/attention.h"
#include "headlight/engine.h"
#include "headlight/export.h"

namespace headlight::analysis {

// How attention that trains may go about its weights P.
enum class AttentionMethod : std::uint8_t {
  unfused,      // scores written out: the forward pass keeps P, the backward pass makes dP, then dS of it
  recomputing,  // attention() keeps a log-sum-exp a row, attention_backward() works P out again
};

// One pass forward and one back over float32 tensors of their own: self-attention of `length` positions.
struct AttentionStep {
  // How, for how many samples of how many positions.
  AttentionMethod method = AttentionMethod::recomputing;
  std::int64_t batch = 1;
  std::int64_t length = 0;
  std::int64_t heads = 1;  // of queries, keys and values alike
  // D, and which keys a row sees.
  std::int64_t head_dim = 64;
  Causal causal = Causal::none;
  // The query gradient lies where `out` was. Of `recomputing` alone.
  bool gradient_over_out = false;
};

// In bytes. The first three are what either method holds, and grow with the length.
struct AttentionStepBytes {
  std::int64_t inputs = 0;         // q, k, v
  std::int64_t outputs = 0;        // out, log-sum-exp
  std::int64_t gradients = 0;      // of out, q, k, v
  std::int64_t probabilities = 0;  // unfused: P, 4 · B · H · L²
  std::int64_t scratch = 0;        // the engine's, of either pass; unfused: dP of one head for each thread at work
  // Their sum.
  [[nodiscard]] std::int64_t all() const noexcept { return inputs + outputs + gradients + probabilities + scratch; }
};

// A multiply-add is two operations. Recomputing counts visible pairs, unfused all of them: it computes them all.
struct AttentionStepFlops {
  double forward = 0;   // 4 · pairs · D a head
  double backward = 0;  // 10 · pairs · D, S = q · kᵀ once more; unfused: 8
  // Their sum.
  [[nodiscard]] double all() const noexcept { return forward + backward; }
};

// With that engine's threads and instruction set. Throw std::invalid_argument for sizes that are negative, and for more
// than 10¹⁴ bytes.
[[nodiscard]] HEADLIGHT_API AttentionStepBytes attention_step_bytes(const Engine& engine, const AttentionStep& step);
[[nodiscard]] HEADLIGHT_API AttentionStepFlops attention_step_flops(const AttentionStep& step);

// The longest sequence whose step takes at most so many bytes; step.length does not matter. 0 where none does.
[[nodiscard]] HEADLIGHT_API std::int64_t longest_sequence(const Engine& engine, const AttentionStep& step,
                                                          std::int64_t bytes);

}  // namespace headlight::analysis
