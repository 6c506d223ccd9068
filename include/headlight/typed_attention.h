// Attention over memory of 16 or 8 bits a number: half or a quarter of the bytes to read, which is what decoding waits
// for.
#pragma once

#include "headlight/attention.h"
#include "headlight/typed_view.h"

namespace headlight {

// As attention() takes them, each of a type of its own: float32, bfloat16 or float16; key and value also int8, integers
// times a scale for each row and head (quantize_rows()):
//   key[b, j, h, d] = key_scales[b, j, h] · (the integer at that place), rounded to float32; values likewise.
struct AttentionOperands {
  TypedView<4> query;       // [B, Lq, Hq, Dqk]
  TypedView<4> key;         // [B, Lk, Hkv, Dqk]
  TypedView<4> value;       // [B, Lk, Hkv, Dv]
  MutableTypedView<4> out;  // [B, Lq, Hq, Dv]
  // [B, Lk, Hkv] with any strides, where key or value is int8, and not given elsewhere. A scale that is NaN makes its
  // row NaN; an infinite one makes it infinite, and NaN where the integer is 0.
  View<const float, 3> key_scales = {};
  View<const float, 3> value_scales = {};
};

// out = softmax(scale · query · keyᵀ + bias) · value with every option, and all that attention() promises. Unless pairs
// are multiplied, as below, numbers of 16 or 8 bits are storage: query, key and value are widened, which is exact, or
// take their scales, all arithmetic is float32's, and out is rounded once, to the nearest number of its type, ties to
// even. So out has the bits of attention() over the widened operands, rounded; log-sum-exp, probabilities and scores
// have its bits. Keys and values are read where they lie where rows are few, as in decoding, and widened block by block
// where they are many. The scratch memory is that of attention().
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

// Rows of x [B, L, H, D], of float32, bfloat16 or float16, as int8, symmetric, with a scale for each row and head, for
// a cache of keys or values that is a quarter as large:
//   scales[b, l, h]     = max(max_d |x[b, l, h, d]| / 127, 2⁻¹²⁶)
//   numbers[b, l, h, d] = x[b, l, h, d] · (1 / scales[b, l, h]) to the nearest integer, ties to even
// so that |scale · number − x| is at most half a scale, to within rounding. A row with a number that is infinite or NaN
// has the scale NaN and the integers 0. numbers [B, L, H, D] with a last stride of 1, scales [B, L, H] with any
// strides: rows appended to a cache are views of its end. Neither may overlap anything else. Throws
// std::invalid_argument as attention() does. Borrows no memory, and gives the same bits on any number of threads.
HEADLIGHT_API void quantize_rows(Engine& engine, const TypedView<4>& x, const View<std::int8_t, 4>& numbers,
                                 const View<float, 3>& scales);

}  // namespace headlight
