// Attention: out = softmax(scale · query · keyᵀ + bias) · value, tile by tile, never with an Lq × Lk buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "headlight/dropout.h"
#include "headlight/engine.h"
#include "headlight/export.h"
#include "headlight/tensor.h"

namespace headlight {

// Query row i stands at position p = i (top_left) or p = i + Lk − Lq (bottom_right; with query_lengths and key_lengths,
// the lengths of that sample; in packed sequences, those of that sequence).
enum class Align : std::uint8_t { top_left, bottom_right };

// Causal: row i sees the keys j ≤ p. The alignment is named, never guessed.
enum class Causal : std::uint8_t { none, top_left, bottom_right };

// Row i sees the keys p − left ≤ j ≤ p + right; −1 means unbounded.
struct Window {
  std::int64_t left = -1;
  std::int64_t right = -1;
};

// What `true` says in a boolean mask. Frameworks disagree, so there is no default.
enum class MaskMeans : std::uint8_t { attend, ignore };

// One byte an entry (0 or not 0), shape broadcast against [B, Hq, Lq, Lk]: each axis equal or 1.
struct BooleanMask {
  BooleanMask(View<const std::uint8_t, 4> entries_, MaskMeans means_) : entries(entries_), means(means_) {}

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

// Several masks together mean: visible only where all allow. A row that sees nothing gives zeros and a log-sum-exp of
// −inf.
struct AttentionOptions {
  Causal causal = Causal::none;
  // Where rows stand for window and chunk; unset: as `causal` says, else top-left.
  std::optional<Align> align{};
  Window window{};
  // C > 0: row i sees only the keys of chunk ⌊p / C⌋, chunks counted from key 0. 0: no chunks.
  std::int64_t chunk = 0;
  // [B] each: rows (keys) at or past the length are padding. Padding keys are not seen; padding rows give zeros, lse
  // −inf.
  std::span<const std::int64_t> query_lengths{};
  std::span<const std::int64_t> key_lengths{};
  // [n + 1], ascending from 0 to Lq (to Lk): B = 1 and n sequences lie one after another, each seeing only itself.
  // key_offsets empty: the same as query_offsets.
  std::span<const std::int64_t> query_offsets{};
  std::span<const std::int64_t> key_offsets{};
  std::optional<BooleanMask> mask{};
  // Added to scale · query · keyᵀ; shape broadcast against [B, Hq, Lq, Lk]. −inf is a weight of 0.
  View<const float, 4> bias{};
  // Unset: 1 / sqrt(Dqk).
  std::optional<float> scale{};
  // Of the probabilities, after softmax: those kept are multiplied by 1 / (1 − probability), the others are 0. That of
  // (sample b, head h, row i, key j) is kept when the word ≥ ⌊probability · 2³²⌋, the word being number j mod 4 of
  // Philox4x32-10 with the seed as key and the counter (⌊j/4⌋, i, b·Hq + h, stream); i and j count within the sequence.
  Dropout dropout{};
  // [B, Hq, Lq], written when given: log Σ_j exp(score_ij), natural logarithm.
  // Its magnitude stays below log(2) · FLT_MAX, for scores are kept in units of log 2.
  View<float, 3> log_sum_exp{};
  Probabilities probabilities{};
};

// The sizes of a call, for reserve() and workspace_bytes().
struct AttentionShape {
  std::int64_t batch = 1;
  std::int64_t query_length = 0;
  std::int64_t key_length = 0;
  std::int64_t query_heads = 1;
  std::int64_t key_value_heads = 1;
  std::int64_t head_dim = 0;
  std::int64_t value_dim = 0;
};

// query [B, Lq, Hq, Dqk], key [B, Lk, Hkv, Dqk], value [B, Lk, Hkv, Dv] → out [B, Lq, Hq, Dv]; Hq a multiple of Hkv.
// Any strides with a last stride of 1, so [B, H, L, D] memory works as it is. out must not overlap an input.
// Time 4·B·Hq·(visible pairs)·D FLOP, memory linear in Lq and Lk. The bits depend on the build, the instruction set and
// the row's own inputs alone: not on threads, batch, other rows, or how many queries the call holds. Throws
// std::invalid_argument naming the argument, what it was and what was expected; OutOfMemory when scratch memory cannot
// be had, before anything is written. Sources: Vaswani et al. 2017; Milakov & Gimelshein 2018 (online softmax);
// Dao et al. 2022 (tiling).
HEADLIGHT_API void attention(Engine& engine, View<const float, 4> query, View<const float, 4> key,
                             View<const float, 4> value, View<float, 4> out, const AttentionOptions& options = {});

// The same by the plain route: scores written out in full with the engine's gemm and softmax, one (sample, head) at a
// time, so it needs O(Lq · Lk) scratch. The baseline for studies and benches; every option as above.
HEADLIGHT_API void attention_unfused(Engine& engine, View<const float, 4> query, View<const float, 4> key,
                                     View<const float, 4> value, View<float, 4> out,
                                     const AttentionOptions& options = {});

// Scratch bytes that attention() of that shape takes from the engine, whatever the options; and taking them now, so
// that the first call allocates nothing.
[[nodiscard]] HEADLIGHT_API std::size_t workspace_bytes(const Engine& engine, const AttentionShape& shape);
HEADLIGHT_API void reserve(Engine& engine, const AttentionShape& shape);

}  // namespace headlight
