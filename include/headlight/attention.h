// Attention: out = softmax(scale · query · keyᵀ + …) · value, block by block, never with an Lq × Lk buffer.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "headlight/dropout.h"
#include "headlight/engine.h"
#include "headlight/export.h"
#include "headlight/typed_view.h"

namespace headlight {

// Where the first query row (the first key) of a sequence stands: one number for all of them, or one for each sample,
// or for each of the packed sequences. From 0 to 2⁶⁰. Without a number it is not given.
struct Start {
  Start() = default;  // not given
  // One number for all, or one for each.
  Start(std::int64_t all) : of_all(all) {}  // NOLINT(runtime/explicit)
  template <std::convertible_to<std::span<const std::int64_t>> Numbers>
  Start(const Numbers& each) : of_each(each) {}  // NOLINT(runtime/explicit)

  // Whether it is given.
  [[nodiscard]] explicit operator bool() const noexcept { return of_all.has_value() || !of_each.empty(); }

  // What was given, one or the other.
  std::optional<std::int64_t> of_all{};
  std::span<const std::int64_t> of_each{};
};

// Names where query row 0 stands: where key 0 does (top_left), or so that the last row stands where the last key does
// (bottom_right): Lk − Lq further on, or before it where that is negative. With query_lengths and key_lengths those are
// the lengths of the sample, in packed sequences those of the sequence.
enum class Align : std::uint8_t { top_left, bottom_right };

// Causal: row i sees the keys that stand no further on than itself. The alignment is named, never guessed.
enum class Causal : std::uint8_t { none, top_left, bottom_right };

// A row at position p sees the keys at positions p − left to p + right; −1 means unbounded.
struct Window {
  // How many keys before p, and how many behind it.
  std::int64_t left = -1;
  std::int64_t right = -1;
};

// What `true` says in a boolean mask. Frameworks disagree, so there is no default.
enum class MaskMeans : std::uint8_t { attend, ignore };

// One byte an entry (0 or not 0), shape broadcast against [B, Hq, Lq, Lk]: each axis equal or 1.
struct BooleanMask {
  // Both are needed.
  BooleanMask(View<const std::uint8_t, 4> entries_, MaskMeans means_) : entries(entries_), means(means_) {}

  // The bytes, and what one that is not 0 says.
  View<const std::uint8_t, 4> entries;
  MaskMeans means;
};

// Which softmax rows to write out. They are those of the forward pass before dropout; memory grows only with what is
// asked.
struct Probabilities {
  // [B, Hq, R, Lk], or
  View<float, 4> per_head{};
  // [B, R, Lk], the mean over the Hq heads. Give one, the other, or both.
  View<float, 3> averaged{};
  // The R query rows wanted, in this order; empty: all of them (R = Lq).
  std::span<const std::int64_t> rows{};
  // For packed sequences: column j is key j of the row's own sequence, 0 behind its end, and Lk above is the length of
  // the longest one. So memory grows with the sequences and not with the square of all of them.
  bool own_keys = false;
};

// How far on its way a score is: raw, scale · query · key; capped, behind the soft cap; masked, with bias and slopes,
// and −inf where the row does not see the key. The first two are those of hidden pairs, too.
enum class ScoreStage : std::uint8_t { raw, capped, masked };

// Row i of a sequence stands at position query_start + i, its key j at key_start + j: causal, windows, chunks and
// slopes speak of positions alone. What a score goes through, each where it is asked for:
//   scale · query · key → soft cap → + bias − slope · distance → −inf where a mask hides it.
// Several masks together mean: visible only where all allow. A row that sees nothing gives zeros and a log-sum-exp of
// −inf, or of its sink.
struct AttentionOptions {
  Causal causal = Causal::none;  // which keys a row sees, by position
  // Where rows stand for window, chunk and slopes; unset: as `causal` says, else top-left.
  std::optional<Align> align{};
  // Not given: 0.
  Start key_start{};
  // Not given: what `causal` and `align` name. Given, it stands for all of them: causal then only says that there is an
  // end.
  Start query_start{};
  Window window{};
  // C > 0: a row at position p sees only the keys of chunk ⌊p / C⌋, chunks counted from position 0. 0: no chunks.
  std::int64_t chunk = 0;
  // [B] each: rows (keys) at or past the length are padding. Padding keys are not seen; padding rows give zeros, and a
  // log_sum_exp of −inf.
  std::span<const std::int64_t> query_lengths{};
  std::span<const std::int64_t> key_lengths{};
  // [n + 1], ascending from 0 to Lq (to Lk): B = 1 and n sequences lie one after another, each seeing only itself.
  // key_offsets empty: the same as query_offsets.
  std::span<const std::int64_t> query_offsets{};
  std::span<const std::int64_t> key_offsets{};
  std::optional<BooleanMask> mask{};
  // Added to the scores; shape broadcast against [B, Hq, Lq, Lk]. −inf is a weight of 0. Strides may be negative, of
  // all axes but the last: a table of distances [Hq, Lq + Lk − 1] is a bias(h, i, j) = table(h, j − i + Lq − 1) of
  // strides (0, Lq + Lk − 1, −1, 1) from table(0, Lq − 1) on.
  View<const float, 4> bias{};
  // Unset: 1 / sqrt(Dqk).
  std::optional<float> scale{};
  // c > 0, a normal number: scores become c · tanh(score / c), before bias and slopes. 0: none. (Gemma 2, 2024)
  float softcap = 0;
  // [Hq]: slope_h · |p − position of the key| is taken from the scores of head h. Empty: none. (ALiBi, Press et al.
  // 2021)
  std::span<const float> alibi{};
  // [Hq]: one more logit for each row of head h, which takes its share of the sum and adds no value; the log-sum-exp
  // counts it. −inf is none. Empty: none. (Xiao et al. 2023, gpt-oss 2025)
  std::span<const float> sinks{};
  // Of the probabilities, after softmax: those kept are multiplied by 1 / (1 − probability), the others are 0. That of
  // (sample b, head h, row i, key j) is kept when the word ≥ ⌊probability · 2³²⌋, the word being number j mod 4 of
  // Philox4x32-10 with the seed as key and the counter (⌊j/4⌋, i, b·Hq + h, stream); i and j count within the sequence.
  Dropout dropout{};
  // [B, Hq, Lq], written when given: log Σ_j exp(score_ij), natural logarithm.
  // Its magnitude stays below log(2) · FLT_MAX, for scores are kept in units of log 2.
  View<float, 3> log_sum_exp{};
  Probabilities probabilities{};
  // [B, Hq, Lq, Lk], written when given: the scores at that stage.
  View<float, 4> scores{};
  ScoreStage scores_at = ScoreStage::masked;
  // [B, Lk, Hkv] with any strides, where key or value is int8, and not given elsewhere (quantize_rows()). A scale that
  // is NaN makes its row NaN; an infinite one makes it infinite, and NaN where the integer is 0.
  View<const float, 3> key_scales{};
  View<const float, 3> value_scales{};
  // [B, Hq, Lq], of attention_backward() alone: where its sum depends on log_sum_exp too, the gradient by that.
  View<const float, 3> log_sum_exp_gradient{};
};

// The sizes of a call, for reserve() and workspace_bytes().
struct AttentionShape {
  // B, Lq, Lk, Hq, Hkv, Dqk and Dv.
  std::int64_t batch = 1;
  std::int64_t query_length = 0;
  std::int64_t key_length = 0;
  std::int64_t query_heads = 1;
  std::int64_t key_value_heads = 1;
  std::int64_t head_dim = 0;
  std::int64_t value_dim = 0;
};

// out = softmax(scale · query · keyᵀ + …) · value; query [B, Lq, Hq, Dqk], key [B, Lk, Hkv, Dqk], value [B, Lk, Hkv,
// Dv] → out [B, Lq, Hq, Dv]; Hq a multiple of Hkv. Any strides with a last stride of 1, so [B, H, L, D] memory works as
// it is. out must not overlap an input.
//
// Each is of a type of its own: float32, bfloat16 or float16; key and value also int8, integers times a scale for each
// row and head, in a cache that is a quarter as large:
//   key[b, j, h, d] = key_scales[b, j, h] · (the integer at that place), rounded to float32; values likewise.
//   attention(engine, query, key, value, out);
//   attention(engine, query, numbers, value, out, {.causal = Causal::bottom_right, .key_scales = scales});
//
// Time 4·B·Hq·(visible pairs)·D FLOP, memory linear in Lq and Lk. The bits depend on the build, the instruction set
// with its features and the row's own inputs alone: not on threads, batch, other rows, or how many queries the call
// holds; but of a NaN, its sign and payload may. Throws std::invalid_argument naming the argument, what it was and what
// was expected; OutOfMemory when scratch memory cannot be had, before anything is written. Sources: Vaswani et al.
// 2017; Milakov & Gimelshein 2018 (online softmax); Dao et al. 2022 (tiling).
//
// Unless pairs are multiplied, as below, numbers of 16 or 8 bits are storage: query, key and value are widened, which
// is exact, or take their scales, all arithmetic is float32's, and out is rounded once, to the nearest number of its
// type, ties to even. So out has the bits of the same call over the widened operands, rounded; log-sum-exp,
// probabilities and scores have its bits. Keys and values are read where they lie where rows are few, as in decoding,
// and widened block by block where they are many.
//
// Where query, key and value are all bfloat16, Dqk is even and engine.features() holds avx512_bf16 or amx_bf16,
// products are taken of bfloat16 numbers, many at a time. They are exact, and sums are float32's:
//   query · key is the sum over the pairs (d, d + 1), d even and ascending, of query[d + 1] · key[d + 1] and then
//   query[d] · key[d];
//   a weight exp(score − m), m the largest score of its block of keys, is added up as it is and then, after dropout,
//   rounded to bfloat16; and Σ weight · value runs over the pairs of keys (j, j + 1) in the same way;
//   with amx_bf16 the first and the second numbers of the pairs in each 32 (of d, or of the keys of a block) are summed
//   apart, each from +0, then together, and so added to the sum before.
// Numbers and sums below 2⁻¹²⁶ count as 0 in these products, so that a weight that small silences an infinite value to
// NaN. But for that an element of out errs by at most 2⁻⁸ · Σ weight · |value| / Σ weight more than float32's, and
// log-sum-exp, probabilities and scores by as little as float32's. Decoding equals prefill there, too. Without
// either in engine.features() the bits are float32's, and so is the speed.
//
// One function in two forms, so that a program that only ever calls the first links no kernels of the other types. The
// second is a template, without parameters of its own, for where all are float32 both fit equally well, and then the
// one that is no template is called.
HEADLIGHT_API void attention(Engine& engine, View<const float, 4> query, View<const float, 4> key,
                             View<const float, 4> value, View<float, 4> out, const AttentionOptions& options = {});
HEADLIGHT_API void attention_of_types(Engine& engine, const TypedView<4>& query, const TypedView<4>& key,
                                      const TypedView<4>& value, const MutableTypedView<4>& out,
                                      const AttentionOptions& options);
template <int = 0>
void attention(Engine& engine, const TypedView<4>& query, const TypedView<4>& key, const TypedView<4>& value,
               const MutableTypedView<4>& out, const AttentionOptions& options = {}) {
  attention_of_types(engine, query, key, value, out, options);
}

// Rows of x [B, L, H, D], of float32, bfloat16 or float16, as int8, symmetric, with a scale for each row and head, for
// a cache of keys or values:
//   scales[b, l, h]     = max(max_d |x[b, l, h, d]| / 127, 2⁻¹²⁶)
//   numbers[b, l, h, d] = x[b, l, h, d] · (1 / scales[b, l, h]) to the nearest integer, ties to even
// so that |scale · number − x| is at most half a scale, to within rounding. A row with a number that is infinite or NaN
// has the scale NaN and the integers 0. numbers [B, L, H, D] with a last stride of 1, scales [B, L, H] with any
// strides: rows appended to a cache are views of its end. Neither may overlap anything else. Throws
// std::invalid_argument as attention() does. Borrows no memory, and gives the same bits on any number of threads.
HEADLIGHT_API void quantize_rows(Engine& engine, const TypedView<4>& x, const View<std::int8_t, 4>& numbers,
                                 const View<float, 3>& scales);

// Scratch bytes that attention() of that shape takes from the engine, whatever the options and types; and taking them
// now, so that the first call allocates nothing.
[[nodiscard]] HEADLIGHT_API std::size_t workspace_bytes(const Engine& engine, const AttentionShape& shape);
HEADLIGHT_API void reserve(Engine& engine, const AttentionShape& shape);

}  // namespace headlight
