// Plain twins of the transformer's layers (Vaswani et al. 2017; Pre-LN: Xiong et al. 2020). All tensors [B, L, E] and
// contiguous.
#pragma once

#include <span>

#include "reference/activation.h"
#include "reference/dropout.h"
#include "reference/multi_head_attention.h"
#include "reference/normalization.h"

namespace headlight::reference {

template <class Scalar>
struct LayerNorm {
  View<const Scalar, 1> weight;
  View<const Scalar, 1> bias;
  Scalar epsilon = static_cast<Scalar>(1e-5);
};

template <class Scalar>
struct FeedForward {
  Linear<Scalar> in;   // [F, E]
  Linear<Scalar> out;  // [E, F]
  Activation activation = Activation::relu;
};

// Where layers drop numbers in training: softmax weights, the output of each part, feed-forward activations. Rows count
// through the batch. Not used: nothing is dropped.
struct LayerDropouts {
  Dropout self_attention{};
  Dropout self_output{};
  Dropout cross_attention{};
  Dropout cross_output{};
  Dropout activation{};
  Dropout feed_forward{};
};

template <class Scalar>
struct EncoderLayer {
  MultiHeadAttention<Scalar> self_attention;
  FeedForward<Scalar> feed_forward;
  LayerNorm<Scalar> norm1;
  LayerNorm<Scalar> norm2;
  bool norm_first = false;  // Pre-LN
  LayerDropouts dropouts{};
};

template <class Scalar>
struct DecoderLayer {
  MultiHeadAttention<Scalar> self_attention;
  MultiHeadAttention<Scalar> cross_attention;
  FeedForward<Scalar> feed_forward;
  LayerNorm<Scalar> norm1;
  LayerNorm<Scalar> norm2;
  LayerNorm<Scalar> norm3;
  bool norm_first = false;
  LayerDropouts dropouts{};
};

// y = dropout(activation(x W_inᵀ + b_in)) W_outᵀ + b_out
template <class Scalar>
void feed_forward(const FeedForward<Scalar>& layer, View<const Scalar, 3> x, View<Scalar, 3> y,
                  const Dropout& dropout_of_activations = {}) {
  Tensor<Scalar, 2> hidden({x.extent(0) * x.extent(1), layer.in.weight.extent(0)});
  linear<Scalar>(rows_of(x), layer.in.weight, layer.in.bias, hidden);
  for (Scalar& element : hidden) element = activate(layer.activation, element);
  dropout<Scalar>(hidden, hidden, dropout_of_activations);
  linear<Scalar>(hidden, layer.out.weight, layer.out.bias, rows_of(y));
}

// The residual connection around every part F of a layer, in place. Post-LN: x ← LN(x + dropout(F(x))); Pre-LN: x ← x +
// dropout(F(LN(x))).
template <class Scalar, class Part>
void residual_branch(Tensor<Scalar, 3>& x, const LayerNorm<Scalar>& norm, bool norm_first, const Dropout& dropped,
                     Part part) {
  Tensor<Scalar, 3> in(x.shape());
  Tensor<Scalar, 3> change(x.shape());
  const View<Scalar, 2> rows = rows_of(x.view());
  if (norm_first) {
    layer_norm<Scalar>(rows, {}, norm.weight, norm.bias, norm.epsilon, rows_of(in.view()));
    part(in.view(), change.view());
    dropout<Scalar>(rows_of(change.view()), rows_of(change.view()), dropped);
    for (std::int64_t n = 0; n < x.size(); ++n) x.data()[n] += change.data()[n];
  } else {
    part(x.view(), change.view());
    dropout<Scalar>(rows_of(change.view()), rows_of(change.view()), dropped);
    layer_norm<Scalar>(rows, rows_of(change.view()), norm.weight, norm.bias, norm.epsilon, rows);
  }
}

// The options of an attention with that dropout.
inline AttentionOptions with_dropout(AttentionOptions options, const Dropout& dropout) {
  if (dropout.probability != 0) options.dropout = dropout;
  return options;
}

template <class Scalar>
void encoder_layer(const EncoderLayer<Scalar>& layer, Tensor<Scalar, 3>& x, const AttentionOptions& options = {}) {
  const LayerDropouts& drop = layer.dropouts;
  residual_branch(
      x, layer.norm1, layer.norm_first, drop.self_output, [&](View<const Scalar, 3> in, View<Scalar, 3> out) {
        multi_head_attention<Scalar>(layer.self_attention, in, in, in, out, with_dropout(options, drop.self_attention));
      });
  residual_branch(x, layer.norm2, layer.norm_first, drop.feed_forward,
                  [&](View<const Scalar, 3> in, View<Scalar, 3> out) {
                    feed_forward<Scalar>(layer.feed_forward, in, out, drop.activation);
                  });
}

// x [B, Lx, E] looks at itself, then at memory [B, Lm, width of its keys and values].
template <class Scalar>
void decoder_layer(const DecoderLayer<Scalar>& layer, Tensor<Scalar, 3>& x, View<const Scalar, 3> memory,
                   const AttentionOptions& self_options = {}, const AttentionOptions& cross_options = {}) {
  const LayerDropouts& drop = layer.dropouts;
  residual_branch(x, layer.norm1, layer.norm_first, drop.self_output,
                  [&](View<const Scalar, 3> in, View<Scalar, 3> out) {
                    multi_head_attention<Scalar>(layer.self_attention, in, in, in, out,
                                                 with_dropout(self_options, drop.self_attention));
                  });
  residual_branch(x, layer.norm2, layer.norm_first, drop.cross_output,
                  [&](View<const Scalar, 3> in, View<Scalar, 3> out) {
                    multi_head_attention<Scalar>(layer.cross_attention, in, memory, memory, out,
                                                 with_dropout(cross_options, drop.cross_attention));
                  });
  residual_branch(x, layer.norm3, layer.norm_first, drop.feed_forward,
                  [&](View<const Scalar, 3> in, View<Scalar, 3> out) {
                    feed_forward<Scalar>(layer.feed_forward, in, out, drop.activation);
                  });
}

// A stack of layers; after the last one of a Pre-LN stack comes one more normalisation, where given.
template <class Scalar>
void encoder(std::span<const EncoderLayer<Scalar>> layers, const LayerNorm<Scalar>* final_norm, Tensor<Scalar, 3>& x,
             const AttentionOptions& options = {}) {
  for (const EncoderLayer<Scalar>& layer : layers) encoder_layer(layer, x, options);
  if (final_norm == nullptr) return;
  const View<Scalar, 2> rows = rows_of(x.view());
  layer_norm<Scalar>(rows, {}, final_norm->weight, final_norm->bias, final_norm->epsilon, rows);
}

}  // namespace headlight::reference
