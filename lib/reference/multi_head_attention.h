// Plain twin of a multi-head attention layer: project, attend head by head, put the heads together again.
#pragma once

#include "headlight/attention.h"
#include "headlight/tensor.h"
#include "reference/attention.h"
#include "reference/head_merge.h"
#include "reference/linear.h"

namespace headlight::reference {

// The weights of one nn.Linear: weight [Out, In], bias [Out] or not given.
template <class Scalar>
struct Linear {
  View<const Scalar, 2> weight;
  View<const Scalar, 1> bias;
};

template <class Scalar>
struct MultiHeadAttention {
  std::int64_t heads = 1;
  Linear<Scalar> query;   // weight [E, E]
  Linear<Scalar> key;     // weight [E, width of the keys]
  Linear<Scalar> value;   // weight [E, width of the values]
  Linear<Scalar> output;  // weight [E, E], or [E, D] where the merge leaves one head's width
  HeadMerge<Scalar> merge{};
};

// [B, L, E], contiguous, as the B·L rows that a layer works on one by one.
template <class T>
View<T, 2> rows_of(View<T, 3> x) {
  return {x.data, {x.extent(0) * x.extent(1), x.extent(2)}};
}

// query [B, Lq, E], key [B, Lk, Ek], value [B, Lk, Ev] → out [B, Lq, E], all contiguous:
// head_h = attention(query W_Qᵀ + b_Q, key W_Kᵀ + b_K, value W_Vᵀ + b_V) over the columns of head h; out =
// Concat(head_h) W_Oᵀ + b_O, or another merge in its place.
template <class Scalar>
void multi_head_attention(const MultiHeadAttention<Scalar>& layer, View<const Scalar, 3> query,
                          View<const Scalar, 3> key, View<const Scalar, 3> value, View<Scalar, 3> out,
                          const AttentionOptions& options = {}, const AttentionRows<Scalar>& rows = {}) {
  const std::int64_t width = layer.query.weight.extent(0);
  const auto project = [&](View<const Scalar, 3> x, const Linear<Scalar>& projection) {
    Tensor<Scalar, 4> projected({x.extent(0), x.extent(1), layer.heads, width / layer.heads});
    linear<Scalar>(rows_of(x), projection.weight, projection.bias,
                   {projected.data(), {x.extent(0) * x.extent(1), width}});
    return projected;
  };
  const Tensor<Scalar, 4> heads_query = project(query, layer.query);
  const Tensor<Scalar, 4> heads_key = project(key, layer.key);
  const Tensor<Scalar, 4> heads_value = project(value, layer.value);
  Tensor<Scalar, 4> heads(heads_query.shape());
  attention<Scalar>(heads_query, heads_key, heads_value, heads, options, rows);
  const Tensor<Scalar, 2> merged = merged_heads<Scalar>(
      layer.merge, rows_of(query), {heads.data(), {out.extent(0) * out.extent(1), width}}, layer.heads);
  linear<Scalar>(merged, layer.output.weight, layer.output.bias, rows_of(out));
}

}  // namespace headlight::reference
