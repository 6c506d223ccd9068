// attend_short() over tile registers: at most sixteen rows of one head, everything read where it lies.
//
// Keys as rows of A leave the scores as weigh_columns() takes them, a query to a lane. For the fewest products tiles
// cost more than they do: there the same sums are added in vectors.
#pragma once

#include "kernels/attention/amx_sweep-inl.h"
#include "kernels/attention/short-inl.h"
#include "kernels/attention/typed_rows-inl.h"

namespace headlight::HEADLIGHT_TARGET {

inline constexpr int kShortTileRows = kTileShapes.short_rows;
inline constexpr int kShortTileKeys = kTileShapes.short_keys;
static_assert(kShortTileRows == kLanes && kShortTileKeys % kKeysAtOnce == 0);

// The first number of each word by itself, and the second.
HEADLIGHT_INLINE Vec first_numbers_of(Vec words) { return as_float(and_int(as_int(words), broadcast_int(0xffff))); }
HEADLIGHT_INLINE Vec second_numbers_of(Vec words) {
  return as_float(and_int(as_int(words), broadcast_int(kUpperHalf)));
}

// What a tile register adds, below 2⁻¹²⁶ put to 0.
HEADLIGHT_INLINE Vec without_subnormal(Vec v) { return select(less(abs(v), broadcast(0x1p-126f)), zero(), v); }

// Sixteen words of a row by sixteen words of the columns as a tile register adds them to a sum: the first numbers'
// products in one chain, the second ones' in another.
struct TileChains {
  Vec first = zero();
  Vec second = zero();

  HEADLIGHT_INLINE void add(Vec left, Vec right) {
    first = dot_bf16(first_numbers_of(left), first_numbers_of(right), first);
    second = dot_bf16(second_numbers_of(left), second_numbers_of(right), second);
  }
  [[nodiscard]] HEADLIGHT_INLINE Vec added_to(Vec sum) const {
    return without_subnormal(
        headlight::HEADLIGHT_TARGET::add(sum, without_subnormal(headlight::HEADLIGHT_TARGET::add(first, second))));
  }
};

HEADLIGHT_INLINE Vec broadcast_word(const std::uint16_t* from) {
  float word;
  __builtin_memcpy(&word, from, sizeof(word));
  return broadcast(word);
}

// scores[key][row] of kKeys keys from `first` on and queries as columns [words][16]. A chain waits for each of its
// iterations, so several keys' run at once.
template <int kKeys>
HEADLIGHT_INLINE void scores_in_vectors(const kernels::AttentionShort& head, std::int64_t first, const float* columns,
                                        float* scores) {
  const kernels::Operand& key = head.keys.key;
  const auto* const rows = key.numbers<std::uint16_t>() + first * key.stride;
  Vec sums[kKeys];
#pragma GCC unroll 4
  for (int k = 0; k < kKeys; ++k) sums[k] = zero();
  for (std::int64_t begin = 0; begin < head.query.head_dim; begin += kAmxWords) {
    const std::int64_t end = smaller(begin + kAmxWords, head.query.head_dim);
    TileChains chains[kKeys];
    for (std::int64_t w = begin; w < end; ++w) {
      const Vec query = load(columns + w * kLanes);
#pragma GCC unroll 4
      for (int k = 0; k < kKeys; ++k) chains[k].add(broadcast_word(rows + k * key.stride + 2 * w), query);
    }
#pragma GCC unroll 4
    for (int k = 0; k < kKeys; ++k) sums[k] = chains[k].added_to(sums[k]);
  }
#pragma GCC unroll 4
  for (int k = 0; k < kKeys; ++k) store(sums[k], scores + (first + k) * kLanes);
}

inline void short_scores_in_vectors(const kernels::AttentionShort& head, const float* columns, float* scores) {
  std::int64_t j = 0;
  for (; j + 4 <= head.keys.count; j += 4) scores_in_vectors<4>(head, j, columns, scores);
  for (; j < head.keys.count; ++j) scores_in_vectors<1>(head, j, columns, scores);
}

// The registers for a head's scores and values: sums of keys in 0 and 1, from A in 4 and 5 and B in 6; sums of values
// in 2, from A in 3 and B in 7. Up to an iteration of keys they are as large as what there is, and nothing has to be
// copied.
inline void configure_short(const kernels::AttentionShort& head, AmxRegisters& registers) {
  const auto size = [](std::int64_t n) { return static_cast<std::uint8_t>(smaller(n, kAmxRows)); };
  const bool one_iteration = head.keys.count <= kKeysAtOnce;
  const std::uint8_t upper = size(head.keys.count),
                     lower = one_iteration ? size(larger(head.keys.count - kAmxRows, 0)) : 16;
  const std::uint8_t pairs = one_iteration ? size(divide_up(head.keys.count, std::int64_t{2})) : 16;
  const std::uint8_t rows = size(head.query.count), words = size(head.query.head_dim);
  const AmxRegisters::Shape none;
  registers.configure({{upper, 16},
                       lower == 0 ? none : AmxRegisters::Shape{lower, 16},
                       {rows, 16},
                       {rows, pairs},
                       {upper, words},
                       lower == 0 ? none : AmxRegisters::Shape{lower, words},
                       {words, 16},
                       {pairs, 16}});
}

inline void short_scores_in_tiles(const kernels::AttentionShort& head, const float* columns, float* scores) {
  const kernels::Operand& key = head.keys.key;
  const bool one_iteration = head.keys.count <= kKeysAtOnce;
  for (std::int64_t j = 0; j < head.keys.count; j += kKeysAtOnce) {
    const std::int64_t count = smaller(kKeysAtOnce, head.keys.count - j);
    LinesAhead nothing;
    multiply_key_iteration({key.numbers<std::uint16_t>() + j * key.stride, key.stride, count, head.query.head_dim,
                            columns, kLanes, kernels::filled_up(head.query.head_dim, kWordsAtOnce), one_iteration},
                           nothing, 0);
    _tile_stored(0, scores + j * kLanes, 4 * kAmxWords);
    if (count > kAmxRows) _tile_stored(1, scores + (j + kAmxRows) * kLanes, 4 * kAmxWords);
  }
  write_memory();
}

// Queries as columns [words][16], filled up with zeros to whole iterations.
inline void turn_short_queries(const kernels::QueryRows& query, float* to) {
  for (std::int64_t d = 0; d < query.head_dim; d += kLanes) {
    const int count = static_cast<int>(smaller(kLanes, query.head_dim - d));
    if (count > 4) {
      turn_square<kLanes>(query.data + d, query.stride, query.count, count, to + d * kLanes, kLanes);
    } else {
      turn_square<4>(query.data + d, query.stride, query.count, count, to + d * kLanes, kLanes);
    }
  }
  for (std::int64_t d = query.head_dim; d < kernels::filled_up(query.head_dim, kWordsAtOnce); ++d) {
    store(zero(), to + d * kLanes);
  }
}

// Weights [keys][16] become words [⌈keys / 2⌉][16] of two keys', rounded, where they lay.
inline void pair_short_weights(float* weights, std::int64_t keys) {
  for (std::int64_t j = 0; j < keys; j += 2) {
    const Vec second = j + 1 < keys ? load(weights + (j + 1) * kLanes) : zero();
    store(pair_to_bf16(load(weights + j * kLanes), second), weights + j / 2 * kLanes);
  }
}

// The end of a row: its sum of values, or zeros where it sees nothing.
HEADLIGHT_INLINE void end_short_row(const kernels::AttentionShort& head, std::int64_t r, std::int64_t column, Vec sum) {
  const int count = static_cast<int>(smaller(kLanes, head.keys.value_dim - column));
  store_lanes(ended(sum, row_end(head.sum[r])), head.out + r * head.out_stride + column, count);
}

// At most sixteen pairs of keys, whose words are one iteration.
inline void short_values_in_vectors(const kernels::AttentionShort& head, const float* words) {
  const kernels::Operand& value = head.keys.value;
  const std::int64_t pairs = divide_up(head.keys.count, std::int64_t{2});
  for (std::int64_t column = 0; column < head.keys.value_dim; column += kLanes) {
    const int count = static_cast<int>(smaller(kLanes, head.keys.value_dim - column));
    Vec values[kAmxWords][1];
    for (std::int64_t p = 0; p < pairs; ++p) {
      load_value_pairs<true>(value.numbers<std::uint16_t>() + 2 * p * value.stride + column, value.stride, count, true,
                             2 * p + 1 < head.keys.count, values[p]);
    }
    for (std::int64_t r = 0; r < head.query.count; ++r) {
      TileChains chains;
      for (std::int64_t p = 0; p < pairs; ++p) {
        Vec of_row = values[p][0];
        if (!head.all_seen) {
          const auto sees = [&](std::int64_t j) { return head.seen.begin[r] <= j && j < head.seen.end[r]; };
          of_row = as_float(and_int(as_int(of_row), broadcast_int(seen_halves(sees(2 * p), sees(2 * p + 1)))));
        }
        chains.add(broadcast(words[p * kLanes + r]), of_row);
      }
      end_short_row(head, r, column, chains.added_to(zero()));
    }
  }
}

// Values of an iteration's pairs of keys into tiles.
HEADLIGHT_INLINE void take_short_values(const std::uint16_t* from, std::int64_t stride, std::int64_t columns,
                                        std::int64_t pairs, const SeenOfIteration& seen, float* tiles) {
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    if (columns == kColumnsOfPair && seen.has(2 * pair) && seen.has(2 * pair + 1)) {
      const std::uint16_t* const at = from + 2 * pair * stride;
      interleave_pair(at, at + stride, tiles + pair * kAmxWords);
    } else {
      take_pair(from, stride, columns, seen, pair, tiles);
    }
  }
}

// Weights times values of rows [first, last), which see the keys `seen`; rows of weights are [16][16 words] for each
// iteration.
inline void short_values_in_tiles(const kernels::AttentionShort& head, const float* weights, std::int64_t first,
                                  std::int64_t last, const SeenOfIteration& seen) {
  const kernels::Operand& value = head.keys.value;
  alignas(64) float tiles[2 * kTileFloats], sums[kAmxRows * kColumnsOfPair];
  for (std::int64_t column = 0; column < head.keys.value_dim; column += kColumnsOfPair) {
    const std::int64_t columns = smaller(kColumnsOfPair, head.keys.value_dim - column);
    for (std::int64_t j = 0; j < head.keys.count; j += kKeysAtOnce) {
      const std::int64_t pairs =
          head.keys.count <= kKeysAtOnce ? divide_up(head.keys.count, std::int64_t{2}) : kAmxRows;
      const SeenOfIteration of_iteration{larger(seen.begin - j, 0), smaller(seen.end - j, kKeysAtOnce)};
      const std::uint16_t* const from = value.numbers<std::uint16_t>() + j * value.stride + column;
      if (columns == kColumnsOfPair) {
        take_short_values(from, value.stride, kColumnsOfPair, pairs, of_iteration, tiles);
      } else {
        take_short_values(from, value.stride, columns, pairs, of_iteration, tiles);
      }
      write_memory();
      _tile_loadd(3, weights + j / kKeysAtOnce * kTileFloats, 4 * kAmxWords);
      for (std::int64_t tile = 0; tile * kAmxWords < columns; ++tile) {
        float* const to = sums + tile * kAmxWords;
        if (j == 0) {
          _tile_zero(2);
        } else {
          _tile_loadd(2, to, 4 * kColumnsOfPair);
        }
        _tile_loadd(7, tiles + tile * kTileFloats, 4 * kAmxWords);
        HEADLIGHT_AMX_PRODUCT(2, 3, 7);
        _tile_stored(2, to, 4 * kColumnsOfPair);
      }
      write_memory();
    }
    for (std::int64_t r = first; r < last; ++r) {
      float* const row = sums + r * kColumnsOfPair;
      for (std::int64_t d = 0; d < columns; d += kColumnsOfPair) {
        Vec lower = load(row + d), upper = load(row + d + kAmxWords);
        if (d + kColumnsOfPair <= columns) order_interleaved(lower, upper);
        end_short_row(head, r, column + d, lower);
        if (d + kAmxWords < columns) end_short_row(head, r, column + d + kAmxWords, upper);
      }
    }
  }
}

// Words of weights as rows, in that room, and all rows at once; one by one where what a row does not see may be NaN or
// infinite.
inline void short_values_in_tiles(const kernels::AttentionShort& head, const float* words, float* weights) {
  for (std::int64_t j = 0; j < head.keys.count; j += kKeysAtOnce) {
    const std::int64_t pairs = divide_up(smaller(kKeysAtOnce, head.keys.count - j), std::int64_t{2});
    turn_square<kLanes>(words + j / 2 * kLanes, kLanes, pairs, kLanes, weights + j / 2 * kLanes, kLanes);
  }
  if (head.all_seen || all_typed_finite(head.keys.value, head.keys.count, head.keys.value_dim)) {
    return short_values_in_tiles(head, weights, 0, head.query.count, {0, head.keys.count});
  }
  for (std::int64_t r = 0; r < head.query.count; ++r) {
    short_values_in_tiles(head, weights, r, r + 1, {head.seen.begin[r], head.seen.end[r]});
  }
}

// Products up to so many take less in vectors.
inline constexpr std::int64_t kFewProducts = 64;

inline void attend_short_tiles(const kernels::AttentionShort& head) noexcept {
  alignas(64) float scores[kShortTileKeys * kLanes];
  AmxRegisters registers;
  const std::int64_t keys = head.keys.count;
  const bool few = keys <= kKeysAtOnce && keys * head.query.head_dim <= kFewProducts &&
                   keys * head.query.count * divide_up(head.keys.value_dim, std::int64_t{kLanes}) <= kFewProducts;
  turn_short_queries(head.query, head.columns);
  if (few) {
    short_scores_in_vectors(head, head.columns, scores);
  } else {
    configure_short(head, registers);
    short_scores_in_tiles(head, head.columns, scores);
  }
  if (!head.all_seen) hide_columns<kLanes>(head, 0, scores);
  weigh_columns<1>(head, scores, head.maximum, head.sum);
  pair_short_weights(scores, keys);
  few ? short_values_in_vectors(head, scores)
      : short_values_in_tiles(head, scores, scores + kShortTileKeys / 2 * kLanes);
}

}  // namespace headlight::HEADLIGHT_TARGET
