// What a training step of an encoder holds and computes, before it is run: bytes by purpose, and operations.
#pragma once

#include <cstdint>
#include <span>

#include "headlight/export.h"
#include "headlight/layers/encoder.h"
#include "headlight/layers/training.h"

namespace headlight::analysis {

struct TrainingPlan {
  EncoderOptions encoder{};
  // Of the sequences of a batch.
  std::span<const std::int64_t> lengths{};
  Checkpoint checkpoint = Checkpoint::keep_linear;
  // Of every_k_layers; 0: √n, rounded.
  std::int64_t k = 0;
  // The optimiser's, for each parameter: 0 for SGD, 1 with momentum, 2 for AdamW.
  std::int64_t moments = 2;
};

// Float32, in bytes. Beside these a step has the caller's own tensors (token ids, hidden states and their gradients)
// and the engine's scratch memory, where layers that are computed again stand as long as their segment takes.
struct TrainingBytes {
  std::int64_t parameters = 0;
  std::int64_t gradients = 0;
  std::int64_t optimizer = 0;
  std::int64_t saved = 0;           // SavedState::bytes() after a step
  std::int64_t computed_again = 0;  // scratch that the backward pass of a segment takes for what was not kept
  [[nodiscard]] std::int64_t all() const noexcept {
    return parameters + gradients + optimizer + saved + computed_again;
  }
};

// A multiply-add is two operations; row operations are not counted. pairs = Σ length².
struct TrainingFlops {
  double forward = 0;   // a layer: tokens · (8 E² + 4 E F) + 4 · pairs · E
  double backward = 0;  // a layer: 2 · tokens · (8 E² + 4 E F) + 10 · pairs · E
  double again = 0;     // forward passes within the backward pass
  [[nodiscard]] double all() const noexcept { return forward + backward + again; }
};

// Throw std::invalid_argument for sizes that no Encoder takes, and negative ones.
[[nodiscard]] HEADLIGHT_API TrainingBytes training_bytes(const TrainingPlan& plan);
[[nodiscard]] HEADLIGHT_API TrainingFlops training_flops(const TrainingPlan& plan);

}  // namespace headlight::analysis
