// Attention over memory of 16 bits a number: half the bytes to read, which is what decoding waits for.
#pragma once

#include "headlight/attention.h"
#include "headlight/typed_view.h"

namespace headlight {

// As attention() takes them, each of a type of its own: float32, bfloat16 or float16.
struct AttentionOperands {
  TypedView<4> query;       // [B, Lq, Hq, Dqk]
  TypedView<4> key;         // [B, Lk, Hkv, Dqk]
  TypedView<4> value;       // [B, Lk, Hkv, Dv]
  MutableTypedView<4> out;  // [B, Lq, Hq, Dv]
};

// out = softmax(scale · query · keyᵀ + bias) · value with every option, and all that attention() promises. Unless pairs
// are multiplied, as below, numbers of 16 bits are storage: query, key and value are widened, which is exact, all
// arithmetic is float32's, and out is rounded once, to the nearest number of its type, ties to even. So out has the
// bits of attention() over the widened operands, rounded; log-sum-exp, probabilities and scores have its bits. Keys and
// values are read where they lie where rows are few, as in decoding, and widened block by block where they are many.
// The scratch memory is that of attention().
//
// Where query, key and value are all bfloat16, Dqk is even and engine.features() holds avx512_bf16, products are taken
// of bfloat16 numbers, twice as many at a time. They are exact, and sums are float32's:
//   query · key is the sum over the pairs (d, d + 1), d even and ascending, of query[d + 1] · key[d + 1] and then
//   query[d] · key[d];
//   a weight exp(score − m), m the largest score of its block of keys, is added up as it is and then, after dropout,
//   rounded to bfloat16; and Σ weight · value runs over the pairs of keys (j, j + 1) in the same way.
// Numbers and sums below 2⁻¹²⁶ count as 0 in these products, so that a weight that small silences an infinite value to
// NaN. But for that an element of out errs by at most 2⁻⁸ · Σ weight · |value| / Σ weight more than float32's, and
// log-sum-exp, probabilities and scores by as little as float32's. The bits depend on the row's own inputs, the
// instruction set and its features alone: decoding equals prefill. Without avx512_bf16 in `EngineOptions::features`
// they are float32's, and so is the speed.
HEADLIGHT_API void attention(Engine& engine, const AttentionOperands& operands, const AttentionOptions& options = {});

// The same with each operand by itself, as soon as one of them is not float32. A template without parameters of its
// own: where all are float32 both functions fit equally well, and then the one that is no template is called.
template <int = 0>
void attention(Engine& engine, const TypedView<4>& query, const TypedView<4>& key, const TypedView<4>& value,
               const MutableTypedView<4>& out, const AttentionOptions& options = {}) {
  attention(engine, AttentionOperands{query, key, value, out}, options);
}

}  // namespace headlight
