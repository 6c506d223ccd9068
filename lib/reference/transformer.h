// Plain twins of the transformer's layers (Vaswani et al. 2017; Pre-LN: Xiong et al. 2020). All tensors [B, L, E] and
// contiguous.
#pragma once

#include <span>

#include "reference/activation.h"
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

template <class Scalar>
struct EncoderLayer {
  MultiHeadAttention<Scalar> self_attention;
  FeedForward<Scalar> feed_forward;
  LayerNorm<Scalar> norm1;
  LayerNorm<Scalar> norm2;
  bool norm_first = false;  // Pre-LN
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
};

// y = activation(x W_inᵀ + b_in) W_outᵀ + b_out
template <class Scalar>
void feed_forward(const FeedForward<Scalar>& layer, View<const Scalar, 3> x, View<Scalar, 3> y) {
  Tensor<Scalar, 2> hidden({x.extent(0) * x.extent(1), layer.in.weight.extent(0)});
  linear<Scalar>(rows_of(x), layer.in.weight, layer.in.bias, hidden);
  for (Scalar& element : hidden) element = activate(layer.activation, element);
  linear<Scalar>(hidden, layer.out.weight, layer.out.bias, rows_of(y));
}

// The step around every part F of a layer, in place. Post-LN: x ← LN(x + F(x)); Pre-LN: x ← x + F(LN(x)).
template <class Scalar, class Part>
void residual_step(Tensor<Scalar, 3>& x, const LayerNorm<Scalar>& norm, bool norm_first, Part part) {
  Tensor<Scalar, 3> in(x.shape());
  Tensor<Scalar, 3> change(x.shape());
  const View<Scalar, 2> rows = rows_of(x.view());
  if (norm_first) {
    layer_norm<Scalar>(rows, {}, norm.weight, norm.bias, norm.epsilon, rows_of(in.view()));
    part(in.view(), change.view());
    for (std::int64_t n = 0; n < x.size(); ++n) x.data()[n] += change.data()[n];
  } else {
    part(x.view(), change.view());
    layer_norm<Scalar>(rows, rows_of(change.view()), norm.weight, norm.bias, norm.epsilon, rows);
  }
}

template <class Scalar>
void encoder_layer(const EncoderLayer<Scalar>& layer, Tensor<Scalar, 3>& x, const AttentionOptions& options = {}) {
  residual_step(x, layer.norm1, layer.norm_first, [&](View<const Scalar, 3> in, View<Scalar, 3> out) {
    multi_head_attention<Scalar>(layer.self_attention, in, in, in, out, options);
  });
  residual_step(x, layer.norm2, layer.norm_first, [&](View<const Scalar, 3> in, View<Scalar, 3> out) {
    feed_forward<Scalar>(layer.feed_forward, in, out);
  });
}

// x [B, Lx, E] looks at itself, then at memory [B, Lm, width of its keys and values].
template <class Scalar>
void decoder_layer(const DecoderLayer<Scalar>& layer, Tensor<Scalar, 3>& x, View<const Scalar, 3> memory,
                   const AttentionOptions& self_options = {}, const AttentionOptions& cross_options = {}) {
  residual_step(x, layer.norm1, layer.norm_first, [&](View<const Scalar, 3> in, View<Scalar, 3> out) {
    multi_head_attention<Scalar>(layer.self_attention, in, in, in, out, self_options);
  });
  residual_step(x, layer.norm2, layer.norm_first, [&](View<const Scalar, 3> in, View<Scalar, 3> out) {
    multi_head_attention<Scalar>(layer.cross_attention, in, memory, memory, out, cross_options);
  });
  residual_step(x, layer.norm3, layer.norm_first, [&](View<const Scalar, 3> in, View<Scalar, 3> out) {
    feed_forward<Scalar>(layer.feed_forward, in, out);
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
