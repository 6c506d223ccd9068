// Attention over tile registers, bfloat16 by bfloat16: the products of a block of rows and a block of keys.
//
// A word is a pair: of neighbours of a query or key, (d, d + 1) for even d; of weights and values, of the keys
// (j, j + 1) for even j on the grid of key blocks. With C ← C + (Σ of the first numbers of the pairs) + (Σ of the
// second) as tile_registers-inl.h says:
//   score     over the words of a row, sixteen at a time, from +0; the query as it is, for its scale belongs to softmax
//   values    over the keys of a block, 32 at a time counted from its first, from +0; weights rounded to bfloat16 once
//             they are summed. Keys that a row does not see weigh +0
// A row's bits depend neither on the rows that its tiles hold beside it nor on which operand is A, so all that computes
// them agrees: many rows with packed keys, few rows with keys where they lie, and one. What fills rows and keys up to
// whole iterations is zeros. A hidden value that is not finite is in the way of an iteration: see values_exactly().
//
// Packed queries are rows of words. Packed keys are panels of 32, each two halves of [words][16 keys]; packed values
// for each 16 columns [pairs of keys][16 columns]: so a tile of B is 1 KiB that lies together, and follows the one
// before.
#pragma once

#include "kernels/attention/amx_shapes.h"
#include "kernels/attention/pairs-inl.h"
#include "kernels/attention/sweep-inl.h"
#include "kernels/tile_registers-inl.h"

namespace headlight::HEADLIGHT_TARGET {

inline constexpr kernels::AttentionKernels kTileShapes = kernels::with_shapes_of_tile_registers({});
inline constexpr std::int64_t kTileRows = kTileShapes.query_rows;
inline constexpr std::int64_t kKeysOfTileBlock = kTileShapes.key_block;
inline constexpr std::int64_t kKeysAtOnce = kTileShapes.keys_at_once;
inline constexpr std::int64_t kWordsAtOnce = kTileShapes.words_at_once;
inline constexpr std::int64_t kTileFloats = kAmxRows * kAmxWords;  // of a tile, and words of one of B
inline constexpr std::int64_t kSubRows = kRowSlots;                // whose softmax is one piece: see block-inl.h
static_assert(kWordsAtOnce == kAmxWords && kKeysAtOnce == 2 * kAmxWords && kSubRows == kAmxRows);

// The first float of a panel of values of `count` keys.
HEADLIGHT_INLINE const float* tile_values(const kernels::KeyValueBlock& keys, std::int64_t column) {
  return keys.value.words() + column * (kernels::filled_up(keys.count, kKeysAtOnce) / 2);
}

// The products of `iterations` iterations, whose tiles of B follow one another, 1 KiB each.
template <bool kLower, bool kRight>
HEADLIGHT_INLINE void multiply_tiles(AmxOperands at, std::int64_t iterations, const AmxSums& sums) {
  write_memory();
  amx_begin<kLower, kRight>({nullptr, 0});
  for (std::int64_t k = 0; k < iterations; ++k) {
    amx_iteration<kLower, kRight>(at);
    at.a += kAmxWords;
    at.left += kTileFloats;
    at.right += kTileFloats;
  }
  amx_end<kLower, kRight>(sums);
  write_memory();
}

// The same of 1 … 32 rows, for which the registers are configured.
HEADLIGHT_INLINE void multiply_tiles(const AmxOperands& at, std::int64_t rows, bool two_columns,
                                     std::int64_t iterations, const AmxSums& sums) {
  if (rows > kAmxRows) {
    two_columns ? multiply_tiles<true, true>(at, iterations, sums) : multiply_tiles<true, false>(at, iterations, sums);
  } else {
    two_columns ? multiply_tiles<false, true>(at, iterations, sums)
                : multiply_tiles<false, false>(at, iterations, sums);
  }
}

// scores[r][j] of packed keys [first, last), whole panels.
inline void tile_scores(const kernels::QueryRows& query, const float* panels, std::int64_t first, std::int64_t last,
                        float* scores, std::int64_t stride) {
  const std::int64_t words = query.head_dim;
  for (std::int64_t j = first; j < last; j += kKeysAtOnce) {
    const float* const panel = panels + j * words;
    multiply_tiles({query.data, query.stride, panel, panel + kAmxWords * words, kAmxWords}, query.count, true,
                   words / kAmxWords, {scores + j, stride});
  }
}

// Rows [first, last) of a block as a block, made where it is to be: copied from elsewhere at once, it would wait for
// all stores before it.
inline void take_rows(const kernels::AttentionBlock& block, std::int64_t first, std::int64_t last,
                      kernels::AttentionBlock& rows) {
  rows = block;
  rows.query.data += first * block.query.stride;
  rows.query.count = last - first;
  rows.seen.begin += first;
  rows.seen.end += first;
  if (block.modifiers.masks.mask != nullptr) rows.modifiers.masks.mask += first;
  if (block.modifiers.masks.bias != nullptr) rows.modifiers.masks.bias += first;
  if (block.modifiers.slopes != nullptr) rows.modifiers.slopes += first;
  if (block.dropout.numbers != nullptr) rows.dropout.places += first;
  rows.scores += first * block.scores_stride;
  rows.state.maximum += first;
  rows.state.sums += first * kLanes;
  rows.state.out += first * block.state.out_stride;
  if (block.ends.out != nullptr) rows.ends.out += first * block.ends.out_stride;
  rows.ends.sum += first;
}
inline kernels::AttentionBlock rows_of_block(const kernels::AttentionBlock& block, std::int64_t first,
                                             std::int64_t last) {
  kernels::AttentionBlock rows;
  take_rows(block, first, last, rows);
  return rows;
}

// Zeros around the weights of each row in the iterations of [first, last), words that tiles read.
inline void clear_unseen_weights(const kernels::AttentionBlock& block, std::int64_t first, std::int64_t last) {
  for (std::int64_t r = 0; r < block.query.count; ++r) {
    const bool sees_any = block.seen.begin[r] < block.seen.end[r];
    const std::int64_t begin = sees_any ? block.seen.begin[r] / kKeysAtOnce * kKeysAtOnce : last;
    const std::int64_t end = sees_any ? kernels::filled_up(block.seen.end[r], kKeysAtOnce) : last;
    float* const row = block.scores + r * block.scores_stride;
    for (std::int64_t j = first; j < begin; j += kKeysAtOnce) store(zero(), row + j / 2);
    for (std::int64_t j = end; j < last; j += kKeysAtOnce) store(zero(), row + j / 2);
  }
}

// The iterations of keys that some row sees.
struct IterationRange {
  std::int64_t first;
  std::int64_t last;
};
inline IterationRange iterations_of(const BlockRange& range) {
  if (range.first >= range.last) return {0, 0};
  return {range.first / kKeysAtOnce * kKeysAtOnce, kernels::filled_up(range.last, kKeysAtOnce)};
}

// Scores of at most kSubRows rows become words of weights, in all iterations.
inline RowFactors weigh_tile_rows(const kernels::AttentionBlock& block, const BlockRange& range,
                                  const IterationRange& iterations) {
  BlockRows rows;
  find_maxima(block, range, nullptr, rows);
  RowFactors factors;
  if (block.dropout.numbers == nullptr) {
    factors = weigh_block<PairWeights>(block, rows, false);
  } else {
    factors = weigh_block(block, rows, false);
    drop_block(block);
    pair_weights(block);
  }
  clear_unseen_weights(block, iterations.first, iterations.last);
  return factors;
}

// Sums of `columns` ≤ 32 columns of at most kSubRows rows, [rows][2 · 16] floats, into the running state or to their
// end.
inline void merge_columns(const kernels::AttentionBlock& block, const RowFactors& factors, std::int64_t column,
                          std::int64_t columns, const float* sums) {
  for (std::int64_t r = 0; r < block.query.count; ++r) {
    for (std::int64_t d = 0; d < columns; d += kLanes) {
      const int count = static_cast<int>(smaller(kLanes, columns - d));
      merge_vector(block, factors, r, column + d, count, load(sums + r * 2 * kAmxWords + d));
    }
  }
}

// Whether row r sees key j.
HEADLIGHT_INLINE bool sees_key(const kernels::AttentionBlock& block, std::int64_t r, std::int64_t j) {
  if (j < block.seen.begin[r] || j >= block.seen.end[r]) return false;
  const kernels::AttentionRowMasks& masks = block.modifiers.masks;
  if (masks.mask == nullptr) return true;
  return (masks.mask[r][(block.modifiers.first_key + j) * masks.mask_key_stride] != 0) == masks.attend;
}

// Values of the keys [j, j + 32) that are seen(key), of 16 columns, as a tile of B; zeros elsewhere.
template <class Seen>
void take_value_tile(const kernels::KeyValueBlock& keys, std::int64_t j, std::int64_t column, const Seen& seen,
                     float* tile) {
  const bool in_rows = keys.value.layout == kernels::OperandLayout::rows;
  const int count = static_cast<int>(smaller(kAmxWords, keys.value_dim - column));
  for (std::int64_t pair = 0; pair < kAmxWords; ++pair) {
    const std::int64_t key = j + 2 * pair;
    const bool first = key < keys.count && seen(key), second = key + 1 < keys.count && seen(key + 1);
    Vec values[1] = {zero()};
    if (in_rows && (first || second)) {
      const std::int64_t stride = keys.value.stride;
      load_value_pairs<true>(keys.value.numbers<std::uint16_t>() + key * stride + column, stride, count, first, second,
                             values);
    } else if (!in_rows) {
      const Vec words = load(tile_values(keys, column) + (j / 2 + pair) * kAmxWords);
      values[0] = as_float(and_int(as_int(words), broadcast_int(seen_halves(first, second))));
    }
    store(values[0], tile + pair * kAmxWords);
  }
}

// The values of each row by itself, without those that it does not see: 0 · NaN is NaN.
inline void values_exactly(const kernels::AttentionBlock& block, const RowFactors& factors,
                           const IterationRange& iterations, AmxRegisters& registers) {
  alignas(64) float tile[kTileFloats], sums[2 * kAmxWords];
  registers.configure(1);
  for (std::int64_t r = 0; r < block.query.count; ++r) {
    const float* const weights = block.scores + r * block.scores_stride;
    for (std::int64_t column = 0; column < block.keys.value_dim; column += kAmxWords) {
      _tile_zero(0);
      for (std::int64_t j = iterations.first; j < iterations.last; j += kKeysAtOnce) {
        take_value_tile(
            block.keys, j, column, [&](std::int64_t key) { return sees_key(block, r, key); }, tile);
        write_memory();
        _tile_loadd(4, weights + j / 2, 4 * kAmxWords);
        _tile_loadd(6, tile, 4 * kAmxWords);
        HEADLIGHT_AMX_PRODUCT(0, 4, 6);
        write_memory();
      }
      _tile_stored(0, sums, 4 * kAmxWords);
      write_memory();
      const int count = static_cast<int>(smaller(kLanes, block.keys.value_dim - column));
      merge_vector(block, factors, r, column, count, load(sums));
    }
  }
}

// At most 32 rows and one block of packed keys and values, whatever they are.
inline void attend_tiles(const kernels::AttentionBlock& block) noexcept {
  AmxRegisters registers;
  registers.configure(block.query.count);
  const BlockRange range = range_row_by_row(block);
  const IterationRange iterations = iterations_of(range);
  tile_scores(block.query, block.keys.key.words(), iterations.first, iterations.last, block.scores,
              block.scores_stride);

  const std::int64_t upper = smaller(block.query.count, kSubRows);
  const kernels::AttentionBlock halves[] = {rows_of_block(block, 0, upper),
                                            rows_of_block(block, upper, block.query.count)};
  RowFactors factors[2];
  for (int h = 0; h < 2; ++h) {
    if (halves[h].query.count > 0) factors[h] = weigh_tile_rows(halves[h], range, iterations);
  }
  if (block.keys.values_not_finite) {
    for (int h = 0; h < 2; ++h) values_exactly(halves[h], factors[h], iterations, registers);
    return;
  }
  alignas(64) float sums[kTileRows * 2 * kAmxWords];
  for (std::int64_t column = 0; column < block.keys.value_dim; column += 2 * kAmxWords) {
    const std::int64_t columns = smaller(2 * kAmxWords, block.keys.value_dim - column);
    const float* const left = tile_values(block.keys, column) + iterations.first / 2 * kAmxWords;
    const float* const right =
        columns > kAmxWords ? tile_values(block.keys, column + kAmxWords) + iterations.first / 2 * kAmxWords : left;
    multiply_tiles({block.scores + iterations.first / 2, block.scores_stride, left, right, kAmxWords},
                   block.query.count, columns > kAmxWords, (iterations.last - iterations.first) / kKeysAtOnce,
                   {sums, 2 * kAmxWords});
    for (int h = 0; h < 2; ++h) merge_columns(halves[h], factors[h], column, columns, sums + h * 2 * kTileFloats);
  }
}

// Of `keys` ≤ 32 packed keys, for whoever shows scores or probabilities: see probabilities-inl.h.
struct TileScores {
  static constexpr int kRows = kTileRows;
  static constexpr int kKeys = kKeysAtOnce;

  static void run(const kernels::QueryRows& query, const float* panel, std::int64_t, float* scores) noexcept {
    AmxRegisters registers;
    registers.configure(query.count);
    tile_scores(query, panel, 0, kKeysAtOnce, scores, kKeys);
  }
};

// Rows of pairs as they are, or times ±1 or 0, filled up to whole iterations.
inline void copy_tile_rows(const kernels::Operand& from, float factor, std::int64_t rows, std::int64_t columns,
                           float* to) noexcept {
  const std::int64_t words = kernels::filled_up(columns / 2, kWordsAtOnce);
  for (std::int64_t r = 0; r < rows; ++r, to += words) {
    const auto* const ahead = from.numbers<std::uint16_t>() + (r + kPrefetchRows) * from.stride;
    for (std::int64_t d = 0; d < columns; d += PairsOfBFloat16::kOfLine) __builtin_prefetch(ahead + d);
    copy_pairs(from.from_row(r), factor, 1, columns, to);
    for (std::int64_t d = columns / 2; d < words; ++d) to[d] = 0.0f;
  }
}

// pack_keys(): rows [keys][head_dim] → panels of 32 keys, filled up with zeros.
inline void pack_key_tiles(const kernels::Operand& key, std::int64_t keys, std::int64_t head_dim,
                           float* panels) noexcept {
  const std::int64_t words = head_dim / 2, filled = kernels::filled_up(words, kWordsAtOnce);
  const auto* const numbers = key.numbers<std::uint16_t>();
  for (std::int64_t j = 0; j < kernels::filled_up(keys, kKeysAtOnce); j += kAmxWords, panels += filled * kAmxWords) {
    for (std::int64_t ahead = j + kPrefetchRows; ahead < j + kPrefetchRows + kLanes; ++ahead) {
      for (std::int64_t d = 0; d < words; d += kFloatsOfLine) __builtin_prefetch(numbers + ahead * key.stride + 2 * d);
    }
    for (std::int64_t d = 0; d < filled; d += kAmxWords) {
      Vec square[kLanes];
      load_turned<PairsOfBFloat16>(numbers + j * key.stride + 2 * d, key.stride, larger(keys - j, 0),
                                   static_cast<int>(larger(0, smaller(kLanes, words - d))), square);
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) store(square[i], panels + (d + i) * kAmxWords);
    }
  }
}

// pack_values(): rows [keys][value_dim] → for each 16 columns [pairs of keys][16 columns], filled up with zeros.
inline void pack_value_tiles(const kernels::Operand& value, std::int64_t keys, std::int64_t value_dim, float* panels,
                             std::int64_t panel_stride) noexcept {
  const auto* const numbers = value.numbers<std::uint16_t>();
  for (std::int64_t j = 0; j < kernels::filled_up(keys, kKeysAtOnce); j += 2) {
    const auto* const from = numbers + j * value.stride;
    for (std::int64_t d = 0; d < value_dim && j < keys; d += PairsOfBFloat16::kOfLine) {
      __builtin_prefetch(from + kPrefetchRows * value.stride + d);
      __builtin_prefetch(from + (kPrefetchRows + 1) * value.stride + d);
    }
    float* panel = panels + j / 2 * kAmxWords;
    for (std::int64_t column = 0; column < value_dim; column += kAmxWords, panel += panel_stride) {
      const int count = static_cast<int>(smaller(kLanes, value_dim - column));
      Vec pair[1];
      if (j + 1 < keys && count == kLanes) {
        load_value_pairs<false>(from + column, value.stride, count, true, true, pair);
      } else {
        load_value_pairs<true>(from + column, value.stride, count, j < keys, j + 1 < keys, pair);
      }
      store(pair[0], panel);
    }
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
