// What a training step of an encoder, or of one layer, holds and computes, before it is run: bytes by purpose, and
// operations. (Of attention alone: attention_cost.h.)
#pragma once

#include <cstdint>
#include <span>

#include "headlight/analysis/attention_cost.h"
#include "headlight/engine.h"
#include "headlight/export.h"
#include "headlight/layers/encoder.h"
#include "headlight/layers/network_spec.h"
#include "headlight/layers/training.h"
#include "headlight/layers/transformer.h"

namespace headlight::analysis {

// What is to be trained, on what, and what is kept for the way back, in float32.
struct TrainingPlan {
  EncoderOptions encoder{};  // the network
  // Of the sequences of a batch.
  std::span<const std::int64_t> lengths{};
  // What a SavedState keeps.
  Checkpoint checkpoint = Checkpoint::keep_linear;
  // Of every_k_layers; 0: √n, rounded.
  std::int64_t k = 0;
  // The optimiser's, for each parameter: 0 for SGD, 1 with momentum, 2 for AdamW.
  std::int64_t moments = 2;
  // unfused: as a SavedState whose TrainingAttention keeps the probabilities.
  AttentionMethod attention = AttentionMethod::recomputing;
};

// The same of a TransformerEncoderLayer alone, whose input and gradients are the caller's, rows evenly spaced.
struct LayerTrainingPlan {
  // The layer, and how many sequences of what length it gets.
  TransformerLayerOptions layer{};
  std::int64_t batch = 1;
  std::int64_t length = 0;
  // As in TrainingPlan.
  Checkpoint checkpoint = Checkpoint::keep_linear;
  std::int64_t moments = 2;
  AttentionMethod attention = AttentionMethod::recomputing;
};

// The same of a Network; of its logits the parameters alone.
struct NetworkTrainingPlan {
  NetworkSpec network{};  // what is trained
  // As in TrainingPlan.
  std::span<const std::int64_t> lengths{};
  Checkpoint checkpoint = Checkpoint::keep_linear;
  std::int64_t k = 0;
  std::int64_t moments = 2;
  AttentionMethod attention = AttentionMethod::recomputing;
};

// Float32, in bytes. Beside these a step has the caller's own tensors (token ids, hidden states and their gradients)
// and tables of names, some 300 bytes a parameter.
struct TrainingBytes {
  // The parameters, their gradients, and the optimiser's moments.
  std::int64_t parameters = 0;
  std::int64_t gradients = 0;
  std::int64_t optimizer = 0;
  std::int64_t saved = 0;    // SavedState::bytes() after a step; unfused: the probabilities too
  std::int64_t scratch = 0;  // Engine::scratch_bytes() after two steps on an engine that did nothing else before; of a
                             // Network within 64 KiB
  // Of that scratch, what the backward pass of a segment, or of a layer, takes for what was not kept.
  std::int64_t computed_again = 0;
  // Their sum, in which computed_again is a part of the scratch memory.
  [[nodiscard]] std::int64_t all() const noexcept { return parameters + gradients + optimizer + saved + scratch; }
};

// A multiply-add is two operations; row operations are not counted. pairs = Σ length²; of a Network whose attention has
// a mask, those of tokens that see each other, unless it is unfused.
struct TrainingFlops {
  double forward = 0;  // a layer: tokens · (8 E² + 4 E F) + 4 · pairs · E
  double backward = 0;  // a layer: 2 · tokens · (8 E² + 4 E F) + 10 · pairs · E; unfused, which keeps P, 8 · pairs · E
  double again = 0;  // forward passes within the backward pass
  // Their sum.
  [[nodiscard]] double all() const noexcept { return forward + backward + again; }
};

// With that engine's threads and instruction set, which scratch memory depends on; nothing is run or taken. Parameters
// are taken to be open, as an optimiser wants them: products then pack no copies to keep. Throw std::invalid_argument
// for sizes that no Encoder, Network or layer takes, negative ones, and for more than 10¹⁴ bytes.
[[nodiscard]] HEADLIGHT_API TrainingBytes training_bytes(const Engine& engine, const TrainingPlan& plan);
[[nodiscard]] HEADLIGHT_API TrainingBytes training_bytes(const Engine& engine, const LayerTrainingPlan& plan);
[[nodiscard]] HEADLIGHT_API TrainingBytes training_bytes(const Engine& engine, const NetworkTrainingPlan& plan);
[[nodiscard]] HEADLIGHT_API TrainingFlops training_flops(const TrainingPlan& plan);
[[nodiscard]] HEADLIGHT_API TrainingFlops training_flops(const LayerTrainingPlan& plan);
[[nodiscard]] HEADLIGHT_API TrainingFlops training_flops(const NetworkTrainingPlan& plan);

}  // namespace headlight::analysis
