// Random specifications of networks, every choice in them, and the twin of one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headlight/layers/network.h"
#include "layers/encoder_twin.h"
#include "layers/twins.h"
#include "reference/network.h"
#include "support/compare.h"
#include "support/random.h"

namespace headlight::test {

inline NormSpec draw_norm(Random& random, bool may_be_none = true) {
  NormSpec norm;
  norm.epsilon = random.once_in(2) ? 1e-5f : 1e-3f;
  switch (random.integer(may_be_none ? 0 : 1, 2)) {
    case 0:
      break;
    case 1:
      norm.kind = NormKind::layer;
      norm.bias = random.once_in(2);
      break;
    default:
      norm.kind = NormKind::rms;
      norm.one_plus_weight = random.once_in(2);
  }
  return norm;
}

inline RotarySpec draw_rotary(Random& random, std::int64_t head_dim) {
  RotarySpec rotary;
  rotary.dims = random.integer(0, head_dim / 2) * 2;
  rotary.pairing = random.once_in(2) ? RotaryPairing::interleaved : RotaryPairing::halves;
  rotary.base = random.once_in(2) ? 10000 : 500;
  if (random.once_in(2)) {
    const auto last = static_cast<std::int64_t>(RotaryScalingKind::longrope);
    rotary.scaling.kind = static_cast<RotaryScalingKind>(random.integer(0, last));
    rotary.scaling.factor = 4;
    rotary.scaling.original_length = 16;  // shorter than some sequences, longer than others
    rotary.scaling.short_factors.assign(static_cast<std::size_t>(rotary.dims / 2), 1.5);
    rotary.scaling.long_factors.assign(static_cast<std::size_t>(rotary.dims / 2), 3);
    // 2 numbers have no other base.
    if (rotary.dims == 2 && rotary.scaling.kind == RotaryScalingKind::dynamic) rotary.scaling = {};
  }
  return rotary;
}

inline AttentionSpec draw_attention(Random& random, std::int64_t width) {
  AttentionSpec attention;
  attention.key_value_heads = random.integer(1, 3);
  attention.heads = attention.key_value_heads * random.integer(1, 3);
  attention.head_dim = random.integer(1, 9);
  if (width % attention.heads == 0 && random.once_in(4)) attention.head_dim = 0;
  const std::int64_t head_dim = attention.head_dim == 0 ? width / attention.heads : attention.head_dim;
  attention.input_bias = random.once_in(2);
  attention.output_bias = random.once_in(2);
  attention.whole_width_norms = random.once_in(3);
  if (random.once_in(2)) attention.query_norm = draw_norm(random);
  if (random.once_in(2)) attention.key_norm = draw_norm(random);
  if (random.once_in(2)) attention.rotary = draw_rotary(random, head_dim);
  attention.causal = random.once_in(3);
  if (random.once_in(3)) attention.window_before = random.integer(0, 9);
  if (random.once_in(3)) attention.window_after = random.integer(0, 9);
  if (random.once_in(4)) attention.scale = 0.3f;
  if (random.once_in(4)) attention.softcap = 3;
  attention.sinks = random.once_in(4);
  if (random.once_in(2)) attention.merge = static_cast<Merge>(random.integer(0, 5));
  attention.orthogonal = random.once_in(4);
  return attention;
}

// One for the blocks that have as many heads as the first, or some of them.
inline void draw_relative_bias(Random& random, std::vector<BlockSpec>& blocks) {
  const RelativeBiasSpec bias{.buckets = 2 * random.integer(2, 8), .max_distance = random.integer(5, 40)};
  for (BlockSpec& block : blocks) {
    if (block.attention.heads == blocks.front().attention.heads && !random.once_in(4)) {
      block.attention.relative_bias = bias;
    }
  }
}

// `parallel`: without a norm of the sum.
inline ResidualSpec draw_residual(Random& random, bool parallel) {
  ResidualSpec residual;
  residual.before = draw_norm(random);
  if (random.once_in(3)) residual.after = draw_norm(random);
  if (!parallel && random.once_in(2)) residual.sum = draw_norm(random);
  if (random.once_in(4)) residual.factor = 0.5f;
  return residual;
}

inline FeedForwardSpec draw_feed_forward(Random& random) {
  FeedForwardSpec spec;
  spec.hidden_width = random.integer(1, 30);
  spec.activation = static_cast<Activation>(random.integer(0, static_cast<std::int64_t>(kLastActivation)));
  spec.gated = random.once_in(2);
  spec.input_bias = random.once_in(2);
  spec.output_bias = random.once_in(2);
  return spec;
}

inline LogitsSpec draw_logits(Random& random) {
  LogitsSpec spec;
  spec.weight = static_cast<LogitsSpec::Weight>(random.integer(0, 2));
  spec.bias = random.once_in(2);
  if (random.once_in(2)) spec.factor = 0.5f;
  if (random.once_in(2)) spec.cap = 2;
  return spec;
}

inline NetworkSpec draw_network(Random& random) {
  NetworkSpec spec;
  spec.width = random.integer(1, 24);
  spec.embedding.vocabulary = 20;
  if (random.once_in(2)) spec.embedding.positions = 40;
  if (random.once_in(2)) spec.embedding.token_types = 2;
  if (random.once_in(3)) spec.embedding.scale = 3;
  spec.embedding.norm = draw_norm(random);
  const std::int64_t blocks = random.integer(0, 3);
  for (std::int64_t number = 0; number < blocks; ++number) {
    BlockSpec block;
    block.parallel = random.once_in(4);
    block.attention = draw_attention(random, spec.width);
    block.attention_residual = draw_residual(random, block.parallel);
    block.feed_forward = draw_feed_forward(random);
    block.feed_forward_residual = draw_residual(random, block.parallel);
    spec.blocks.push_back(block);
  }
  if (random.once_in(3)) draw_relative_bias(random, spec.blocks);
  spec.last_norm = draw_norm(random);
  spec.logits = draw_logits(random);
  return spec;
}

// Its weights, each moved by a unit roundoff up or down: how far that moves hidden states tells how much a network
// magnifies roundings, such as one that normalises two numbers that are nearly the same.
inline TwinWeights<double> moved_weights(const Network& network, Random& random) {
  const Weights weights = network.weights();
  TwinWeights<double> moved(weights);
  for (const auto& [name, weight] : weights) {
    for (double& value : moved.values(name)) value *= 1 + (random.once_in(2) ? kUnitRoundoff : -kUnitRoundoff);
  }
  return moved;
}

// The hidden states [L, E] of one sequence.
template <class Scalar>
Tensor<Scalar, 2> network_twin(const NetworkSpec& spec, const TwinWeights<Scalar>& weights, const Tokens& tokens) {
  return reference::Network<Scalar, TwinWeights<Scalar>>(spec, weights)(tokens.ids, tokens.positions,
                                                                        tokens.token_types);
}

// [L, vocabulary] of hidden states.
template <class Scalar>
Tensor<Scalar, 2> logits_twin(const NetworkSpec& spec, const TwinWeights<Scalar>& weights,
                              const Tensor<Scalar, 2>& hidden) {
  return reference::Network<Scalar, TwinWeights<Scalar>>(spec, weights).logits(hidden);
}

// For sequences of so many tokens at most.
inline NetworkSpec draw_network_for(Random& random, std::int64_t tokens) {
  NetworkSpec spec = draw_network(random);
  if (spec.embedding.positions > 0) spec.embedding.positions = tokens;
  return spec;
}

inline Tensor<float, 2> forward(Engine& engine, const Network& network, const Tokens& tokens) {
  Tensor<float, 2> hidden({tokens.count(), network.spec().width});
  network.forward(engine, tokens.input(), hidden.view());
  return hidden;
}

}  // namespace headlight::test
