// What help() says of the functions of attention.
#pragma once

namespace headlight::python {

inline constexpr const char* kAttentionText =
    R"(out = softmax(scale * query @ key.T + ...) @ value, block by block: no Lq x Lk matrix is ever made.

query [B, Lq, Hq, D], key [B, Lk, Hkv, D], value [B, Lk, Hkv, Dv] -> out [B, Lq, Hq, Dv]; Hq is a multiple of Hkv.
float32, bfloat16 or float16, key and value also int8, as quantize_rows() makes them, which takes their scales; any
strides with a last one of 1; nothing is copied. The result is a torch.Tensor where query is one, else a numpy.ndarray,
of query's type.

causal        'top_left' or 'bottom_right': a row sees the keys that stand no further on than itself. top_left: row 0
              stands where key 0 does; bottom_right: the last row where the last key does.
align         the same two, for window, chunk and alibi without causal (top_left).
window        (left, right): keys at most so far before and behind; None or -1 is unbounded.
chunk         a row sees the keys of its own chunk of so many positions; 0: all.
query_lengths, key_lengths    [B]: what lies behind them is padding, which is not seen and gives zeros.
query_offsets, key_offsets    [n + 1], from 0 to Lq (Lk): n sequences one after another in one sample.
query_start, key_start        positions of the first row and the first key, one number or [B].
mask          bool or uint8, broadcast to [B, Hq, Lq, Lk]; mask_means says what True does: 'attend' or 'ignore'.
bias          float32, broadcast to [B, Hq, Lq, Lk]: added to the scores.
scale         1 / sqrt(D) unless given.
softcap       c > 0: scores become c * tanh(score / c), before bias and alibi.
alibi         slopes, float32 [Hq]: slope * distance is taken off the scores of each head.
sinks         float32 [Hq]: one more logit in the sum of each row, which adds no value.
soft_cap, slopes              other names of softcap and alibi, in Python alone.
dropout, seed of the probabilities: which ones go is a function of seed and place alone.
key_scales, value_scales      float32 [B, Lk, Hkv]: what the integers of a row of int8 are multiplied by.
out           an array to write into, which is returned.
engine        a headlight.Engine; None: headlight.default_engine().

log_sum_exp=True gives (out, log_sum_exp [B, Hq, Lq]); probabilities=True gives (out, p [B, Hq, Lq, Lk]), a list of R
rows (out, p [B, Hq, R, Lk]); both: (out, log_sum_exp, p). These are float32. Rows that see nothing are zeros, with a
log_sum_exp of -inf.

Raises ValueError for shapes and values, TypeError for types and devices, MemoryError.)";

inline constexpr const char* kBackwardText =
    R"(The gradients of a sum whose gradient by attention(query, key, value) is out_gradient, and by its log-sum-exp
lse_gradient, where that is given.

query [B, Lq, Hq, D], key [B, Lk, Hkv, D], value [B, Lk, Hkv, Dv]; out [B, Lq, Hq, Dv] and lse [B, Hq, Lq] as
attention(..., log_sum_exp=True) gave them with the same options; out_gradient [B, Lq, Hq, Dv], lse_gradient
[B, Hq, Lq]. lse and lse_gradient are float32, the others float32, bfloat16 or float16 each.
-> (by query, by key, by value), of their shapes and types, all sums in float32 and rounded once; with bias the gradient
by it behind them, of its shape, unless bias_gradient=False, and with sinks_gradient=True the one by sinks [Hq] at the
end, both float32. Raises as attention() does.)";

inline constexpr const char* kMergeText =
    R"(Attention over the keys of all parts, from attention over the keys of each.

parts: pairs (out [B, Lq, Hq, Dv], log_sum_exp [B, Hq, Lq]), as attention(..., log_sum_exp=True) gives them: out of
float32, bfloat16 or float16, log_sum_exp of float32 -> (out, log_sum_exp) of the same shapes, out of the first one's
type. The sums are float32's, in the order of the parts, and out is rounded once.)";

inline constexpr const char* kQuantizeText =
    R"(Rows as integers of 8 bits with a scale each: a cache of keys or values in a quarter of the memory.

x [B, L, H, D] of float32, bfloat16 or float16 -> (numbers [B, L, H, D] int8, scales [B, L, H] float32), with
scale = max(max |x| / 127, 2**-126) over a row and number = x / scale to the nearest integer, ties to even, so that
scale * number is within half a scale of x. A row with a number that is infinite or NaN has the scale NaN.

attention(query, numbers, values, key_scales=scales) takes them. numbers and scales may be given, to write into: the end
of a cache, of which they are views.)";

}  // namespace headlight::python
