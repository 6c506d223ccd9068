// Attention that multiplies bfloat16 by bfloat16: what differs from a block, or a sweep, of floats.
//
// A word is a pair. Scores multiply pairs of neighbours of a row, (d, d + 1) for even d; values are weighed two keys at
// a time, (j, j + 1) for even j on the grid of key blocks, by weights that are rounded to bfloat16 once their sum is
// taken. A sum takes the second number of a pair first, as vdpbf16ps does, and numbers below 2⁻¹²⁶ for 0. A row that
// sees one key of a pair weighs the other by 0, and its value is 0: what is hidden may be NaN.
#pragma once

#include "kernels/attention/block-inl.h"
#include "kernels/attention/sweep_tile-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// Panels of pairs of keys' neighbours.
struct KeyPairs : TileVectors {
  static HEADLIGHT_INLINE Vec multiply_add(Vec left, Vec right, Vec sum) { return dot_bf16(left, right, sum); }
};

// Panels of values of two keys.
struct ValuePairs : TileMemory<false, false> {
  static HEADLIGHT_INLINE Vec multiply_add(Vec left, Vec right, Vec sum) { return dot_bf16(left, right, sum); }
};

struct PairValues {
  template <bool kPartial>
  using Tile = RegisterTile<TileRows, ValuePairs, MergeValues<2>>;
  static constexpr int kKeys = 2;
  static constexpr bool kPanelsOnly = true;
};

// Two keys' values side by side: the first one's in the lower halves. Widened numbers in, of which the lower halves are
// 0.
HEADLIGHT_INLINE Vec value_pair(Vec first, Vec second) {
  return as_float(add_int(and_int(shift_right<16>(as_int(first)), broadcast_int(0xffff)), as_int(second)));
}

// Weights become words where they lie: those of keys j and j + 1 at j / 2.
struct PairWeights {
  static HEADLIGHT_INLINE void put(Vec first, Vec second, float* row, std::int64_t vector) {
    store(narrow_to_bf16(first, second), row + vector / 2 * kLanes);
  }
  static HEADLIGHT_INLINE void put_one(Vec weights, float* row, std::int64_t vector) {
    const bool is_first = vector % 2 == 0;
    put(is_first ? weights : zero(), is_first ? zero() : weights, row, vector);
  }
};

// The same of floats that are weights already: those of keys that row r sees, and zeros around them to whole vectors.
inline void pair_weights(const kernels::AttentionBlock& block) {
  for (std::int64_t r = 0; r < block.query.count; ++r) {
    if (block.seen.begin[r] >= block.seen.end[r]) continue;
    float* row = block.scores + r * block.scores_stride;
    const VectorRange range = vectors_of(block.seen.begin[r], block.seen.end[r]);
    std::int64_t vector = range.begin;
    const auto weights = [&](std::int64_t at) { return load(row + at * kLanes); };
    if (vector % 2 != 0) {
      PairWeights::put_one(weights(vector), row, vector);
      ++vector;
    }
    for (; vector + 2 <= range.end; vector += 2) PairWeights::put(weights(vector), weights(vector + 1), row, vector);
    if (vector < range.end) PairWeights::put_one(weights(vector), row, vector);
  }
}

// Values of two keys where they lie, from the iteration that begins with `at`; a key that is not there, or that nobody
// may read, has zeros.
template <bool kPartial, int kVectors>
HEADLIGHT_INLINE void load_value_pairs(const std::uint16_t* at, std::int64_t stride, int lanes, bool first, bool second,
                                       Vec (&to)[kVectors]) {
  const auto values = [&](const std::uint16_t* from, bool whole) {
    return whole ? StoredBFloat16::load(from) : StoredBFloat16::load_partial(from, lanes);
  };
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    const bool whole = !kPartial || v < kVectors - 1;
    const std::uint16_t* const from = at + v * kLanes;
    to[v] = value_pair(first ? values(from, whole) : zero(), second ? values(from + stride, whole) : zero());
  }
}

// TileMemory of such pairs; `stride`: from key to key.
template <bool kPartial>
struct ValueRowPairs {
  const std::uint16_t* at;
  std::int64_t stride;
  std::intptr_t ahead;
  int lanes;

  static constexpr int kIterations = 1;

  template <int kRows, int kVectors>
  HEADLIGHT_INLINE void load(Vec (&to)[kVectors], int) {
    load_value_pairs<kPartial>(at, stride, lanes, true, true, to);
    const auto here = reinterpret_cast<std::intptr_t>(at);
    const std::int64_t bytes = stride * static_cast<std::int64_t>(sizeof(std::uint16_t));
    at += 2 * stride;
    std::intptr_t first = here + ahead;
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) first = behind_load(first, to[v]);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors * kLanes; v += PairsOfBFloat16::kOfLine) {
      const std::intptr_t next = first + v * static_cast<int>(sizeof(std::uint16_t));
      __builtin_prefetch(reinterpret_cast<const void*>(next), 0, 2);
      __builtin_prefetch(reinterpret_cast<const void*>(next + bytes), 0, 2);
    }
  }
  static HEADLIGHT_INLINE Vec multiply_add(Vec left, Vec right, Vec sum) { return dot_bf16(left, right, sum); }
};

template <>
struct SweepValues<PairsOfBFloat16> {
  template <bool kPartial>
  using Memory = ValueRowPairs<kPartial>;
  template <bool kPartial>
  using Tile = RegisterTile<TileRows, Memory<kPartial>, GoOn>;
};

// One row's iteration with one key alone.
inline void add_half_pair(float weights, const std::uint16_t* at, std::int64_t stride, bool first, bool second,
                          std::int64_t value_dim, float* sums) {
  const Vec weight = broadcast(weights);
  for (std::int64_t d = 0; d < value_dim; d += kLanes) {
    const int lanes = static_cast<int>(smaller(kLanes, value_dim - d));
    Vec pair[1];
    if (lanes == kLanes) {
      load_value_pairs<false>(at + d, stride, lanes, first, second, pair);
    } else {
      load_value_pairs<true>(at + d, stride, lanes, first, second, pair);
    }
    store(dot_bf16(weight, pair[0], load(sums + d)), sums + d);
  }
}

// sweep_values_of_keys() of pairs: keys of the block, `first` even.
template <>
inline void sweep_values_of_keys<PairsOfBFloat16>(const kernels::AttentionBlock& block, const float* weights,
                                                  const std::uint16_t* value, const float*, std::int64_t first,
                                                  std::int64_t last, float* sums, const std::uint16_t* next) {
  const std::int64_t stride = block.keys.value.stride, value_dim = block.keys.value_dim;
  const auto sum_pairs = [&](std::int64_t r, std::int64_t rows, std::int64_t from, std::int64_t to) {
    if (from >= to) return;
    const std::uint16_t* const at = value + from * stride;
    const std::intptr_t ahead =
        reinterpret_cast<std::intptr_t>(next) - reinterpret_cast<std::intptr_t>(value + first * stride);
    const typename SweepValues<PairsOfBFloat16>::template Tile<false> tile{
        {weights + r * block.scores_stride + from / 2, block.scores_stride},
        {at, stride, ahead, kLanes},
        (to - from) / 2,
        {sums + r * block.state.out_stride, block.state.out_stride}};
    sweep_value_columns<PairsOfBFloat16>(tile, rows, value_dim);
  };
  const auto sum_row = [&](std::int64_t r, std::int64_t from, std::int64_t to) {
    if (from >= to) return;
    const auto half = [&](std::int64_t pair) {
      add_half_pair(weights[r * block.scores_stride + pair / 2], value + pair * stride, stride, pair >= from,
                    pair + 1 < to, value_dim, sums + r * block.state.out_stride);
    };
    // The pair of a first key that is odd, whole pairs, and that of a last key that is even, unless it was the first.
    if (from % 2 != 0) half(from - 1);
    const std::int64_t first_whole = round_up(from, 2), end_whole = to / 2 * 2;
    sum_pairs(r, 1, first_whole, end_whole);
    if (to % 2 != 0 && end_whole >= first_whole) half(end_whole);
  };
  for_seen_keys<2>(block, first, last, sum_row, sum_pairs);
}

// block_values_exactly() of pairs, in panels or where they lie: what the mask hides is 0, too.
inline void pair_values_exactly(const kernels::AttentionBlock& block, const RowFactors& factors) {
  const kernels::AttentionRowMasks& masks = block.modifiers.masks;
  const bool in_rows = block.keys.value.layout == kernels::OperandLayout::rows;
  for (std::int64_t r = 0; r < block.query.count; ++r) {
    const std::uint8_t* mask = masks.mask[r] + block.modifiers.first_key * masks.mask_key_stride;
    const float* weights = block.scores + r * block.scores_stride;
    const auto sees = [&](std::int64_t key) {
      return key >= block.seen.begin[r] && key < block.seen.end[r] &&
             (mask[key * masks.mask_key_stride] != 0) == masks.attend;
    };
    for (std::int64_t column = 0; column < block.keys.value_dim; column += kLanes) {
      const int count = static_cast<int>(smaller(kLanes, block.keys.value_dim - column));
      Vec sum = zero();
      for (std::int64_t key = block.seen.begin[r] / 2 * 2; key < block.seen.end[r]; key += 2) {
        const bool first = sees(key), second = sees(key + 1);
        if (!first && !second) continue;
        Vec pair[1];
        if (in_rows) {
          const std::int64_t stride = block.keys.value.stride;
          load_value_pairs<true>(block.keys.value.numbers<std::uint16_t>() + key * stride + column, stride, count,
                                 first, second, pair);
        } else {
          const std::int64_t in_panel = column % kValuePanel;
          const auto panel = value_panel<StoredFloat32, 2>(block.keys, column - in_panel);
          const Vec word = load(panel.data + in_panel + key / 2 * panel.stride);
          pair[0] = as_float(and_int(as_int(word), broadcast_int(seen_halves(first, second))));
        }
        sum = dot_bf16(broadcast(weights[key / 2]), pair[0], sum);
      }
      merge_vector(block, factors, r, column, count, sum);
    }
  }
}

// pack_keys() of pairs.
inline void pack_key_pairs(const kernels::Operand& key, std::int64_t keys, std::int64_t head_dim,
                           float* panels) noexcept {
  pack_keys<PairsOfBFloat16>(key, keys, head_dim / 2, panels);
}

// Rows [keys][value_dim] → [⌈keys / 2⌉][width] words, for each value panel, panel_stride floats apart; zeros past what
// there is.
inline void pack_value_pairs(const kernels::Operand& value, std::int64_t keys, std::int64_t value_dim, float* panels,
                             std::int64_t panel_stride) noexcept {
  const std::int64_t width = smaller(kValuePanel, round_up(value_dim, kLanes));
  for (std::int64_t j = 0; j < keys; j += 2) {
    const std::uint16_t* const from = value.numbers<std::uint16_t>() + j * value.stride;
    for (std::int64_t d = 0; d < value_dim; d += PairsOfBFloat16::kOfLine) {
      __builtin_prefetch(from + kPrefetchRows * value.stride + d);
      __builtin_prefetch(from + (kPrefetchRows + 1) * value.stride + d);
    }
    float* panel = panels + j / 2 * width;
    for (std::int64_t column = 0; column < value_dim; column += kValuePanel, panel += panel_stride) {
      for (std::int64_t d = 0; d < width; d += kLanes) {
        const int count = static_cast<int>(larger(0, smaller(kLanes, value_dim - column - d)));
        Vec pair[1];
        if (count == kLanes) {
          load_value_pairs<false>(from + column + d, value.stride, count, true, j + 1 < keys, pair);
        } else if (count > 0) {
          load_value_pairs<true>(from + column + d, value.stride, count, true, j + 1 < keys, pair);
        } else {
          pair[0] = zero();
        }
        store(pair[0], panel + d);
      }
    }
  }
}

// Rows of pairs as they are, or times ±1 or 0, which is exact.
inline void copy_pairs(const kernels::Operand& from, float factor, std::int64_t rows, std::int64_t columns,
                       float* to) noexcept {
  const auto* row = from.numbers<std::uint16_t>();
  const std::int64_t words = columns / 2;
  for (std::int64_t r = 0; r < rows; ++r, row += from.stride, to += words) {
    for (std::int64_t d = 0; d < words; d += kLanes) {
      const int count = static_cast<int>(smaller(kLanes, words - d));
      const std::uint16_t* const at = row + 2 * d;
      Vec pairs = count == kLanes ? PairsOfBFloat16::load(at) : PairsOfBFloat16::load_partial(at, count);
      if (factor != 1.0f) {
        const Vec by = broadcast(factor);
        pairs = value_pair(mul(StoredBFloat16::first_of(pairs), by), mul(StoredBFloat16::second_of(pairs), by));
      }
      store_lanes(pairs, to + d, count);
    }
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
