// What one operation of a network computes, keeps and borrows in a training step, as it says what it is made of.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/training_scratch.h"
#include "headlight/analysis/attention_cost.h"
#include "headlight/engine.h"
#include "layers/network/graph.h"
#include "layers/network/parts.h"

namespace headlight::analysis {

inline constexpr std::string_view kNetworkCostName = "training_cost";

// The sequences of a step, and how it computes their attention.
struct TrainedSequences {
  std::vector<std::int64_t> lengths;    // of each, or the one that all of shape.batch have
  std::vector<std::int64_t> offsets{};  // of packed ones, [sequences + 1]
  layers::BatchShape shape{};
  AttentionMethod attention = AttentionMethod::recomputing;

  [[nodiscard]] std::int64_t tokens() const noexcept { return shape.rows(); }
  // Whether weights P are written out and kept.
  [[nodiscard]] bool unfused() const noexcept { return attention == AttentionMethod::unfused; }
};

[[nodiscard]] double forward_flops(const TrainedSequences& sequences, const layers::Operation& operation);
[[nodiscard]] double backward_flops(const TrainedSequences& sequences, const layers::Operation& operation);

// What it keeps for the way back beside its output: log-sum-exp, and P where it is written out.
[[nodiscard]] std::size_t bytes_beside_output(const TrainedSequences& sequences, const layers::Operation& operation);

// Its scratch memory, forward and backward, for `rows` of the tokens.
void pass_forward(const Engine& engine, const TrainedSequences& sequences, const layers::Operation& operation,
                  std::int64_t rows, ScratchAccount& account);
void pass_backward(const Engine& engine, const TrainedSequences& sequences, const layers::Operation& operation,
                   std::int64_t rows, ScratchAccount& account);

}  // namespace headlight::analysis
