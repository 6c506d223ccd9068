// The specification of the network that an encoder is.
#pragma once

#include "headlight/layers/encoder.h"
#include "headlight/layers/network_spec.h"

namespace headlight::test {

inline NetworkSpec specification(const EncoderOptions& options) {
  const NormSpec norm = {NormKind::layer, options.layer_norm_epsilon, true};
  const bool post = options.norm == Norm::post;
  BlockSpec block;
  block.attention = {.heads = options.heads,
                     .input_bias = true,
                     .output_bias = true,
                     .merge = options.merge,
                     .orthogonal = options.orthogonal};
  block.feed_forward = {.hidden_width = options.feed_forward_width,
                        .activation = options.activation,
                        .input_bias = true,
                        .output_bias = true};
  for (ResidualSpec* residual : {&block.attention_residual, &block.feed_forward_residual}) {
    (post ? residual->sum : residual->before) = norm;
  }
  NetworkSpec spec;
  spec.width = options.width;
  spec.embedding = {.vocabulary = options.vocabulary,
                    .positions = options.max_positions,
                    .token_types = options.token_types,
                    .norm = post ? norm : NormSpec()};
  spec.blocks.assign(static_cast<std::size_t>(options.layers), block);
  spec.last_norm = post ? NormSpec() : norm;
  spec.dropout = options.dropout;
  return spec;
}

}  // namespace headlight::test
