// Tiles of a sweep: a few rows against keys and values read once and where they lie: decoding, where memory is the
// limit, and short sequences, where a copy would cost as much as the products. Every sum runs in the order of
// scores-inl.h and values-inl.h, so the bits are those of attend_block().
#pragma once

#include "kernels/attention/block-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// Keys that a sweep scores of one head before it goes on to the next: heads lie side by side in [L, H, D] memory, and
// so the sweep follows it.
inline constexpr std::int64_t kSweepKeys = 16;

// Keys that are read soon are asked for; where they come from far, those `further` on too, for the second-level cache:
// the first one waits for few lines at a time, so asking for the first alone is slower. Which keys are asked for in the
// second alone: asks_second_level_alone().
template <class Numbers>
HEADLIGHT_INLINE void ask_for(const typename Numbers::Storage* row, std::int64_t count, std::int64_t further,
                              bool second_level_alone) {
  if (further != 0) {
    for (std::int64_t at = 0; at < count; at += Numbers::kOfLine) __builtin_prefetch(row + further + at, 0, 2);
  }
  if (second_level_alone) return;
  for (std::int64_t at = 0; at < count; at += Numbers::kOfLine) __builtin_prefetch(row + at);
}

// Scores of a few rows and at most kLanes keys, one vector, turned in registers. No RegisterTile: what an iteration
// needs lies in the square of as many iterations, of which the last may be smaller.
template <class Numbers>
struct SweepScores {
  using Storage = typename Numbers::Storage;
  std::int64_t rows;
  TileRows query;
  const Storage* key;
  std::int64_t key_stride;
  int keys;
  std::int64_t head_dim;
  std::int64_t whole_columns;  // those of squares of kLanes keys and as many columns: none of fewer keys
  float* scores;
  std::int64_t scores_stride;
  const float* scales;  // of the keys, where they have any
  std::int64_t scale_stride;
  const Storage* next;   // keys that the sweep reads next; null: they need not be asked for
  std::int64_t further;  // from there to the keys after those, where they come from far; else 0
  bool second_level_alone;

  static constexpr int kSquareColumns = Numbers::kOfWord * kLanes;  // columns of a square, or of two that lie in one

  template <int kRows, int kVectors>
  static void run(const SweepScores& tile) noexcept;
};

// A square of whole words, each of one number or two: twice as many numbers for as many shuffles.
template <class Numbers>
HEADLIGHT_INLINE Vec load_words(const typename Numbers::Storage* from) {
  if constexpr (Numbers::kOfWord == 1) {
    return Numbers::load(from);
  } else {
    return load(reinterpret_cast<const float*>(from));
  }
}
// The squares of a tile's rows, one after another, by pointers that go on by themselves; not load_turned(), which is
// slower on AVX2.
template <class Numbers>
struct KeyRows {
  static constexpr int kPointers = divide_up(kLanes, kRowsOfPointer);
  const typename Numbers::Storage* rows[kPointers];
  std::int64_t stride;

  explicit HEADLIGHT_INLINE KeyRows(const SweepScores<Numbers>& tile) : stride(tile.key_stride) {
#pragma GCC unroll 6
    for (int p = 0; p < kPointers; ++p) rows[p] = tile.key + kRowsOfPointer * p * stride;
  }
  HEADLIGHT_INLINE void load(Vec (&words)[kLanes]) {
#pragma GCC unroll 16
    for (int j = 0; j < kLanes; ++j) {
      words[j] = load_words<Numbers>(rows[j / kRowsOfPointer] + j % kRowsOfPointer * stride);
    }
#pragma GCC unroll 6
    for (int p = 0; p < kPointers; ++p) rows[p] += Numbers::kOfColumn * SweepScores<Numbers>::kSquareColumns;
  }
};

// behind_word(i) comes behind the products of word i.
template <class Numbers, int kRows, class Behind>
HEADLIGHT_INLINE void add_words(const TileRows& query, std::int64_t d, const Vec (&words)[kLanes], Vec scales,
                                Vec (&sums)[kRows], const Behind& behind_word) {
  if constexpr (Numbers::kOfWord == 1) {
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) {
      const Vec numbers = scaled_by<Numbers>(words[i], scales);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        sums[r] = add_product<Numbers>(broadcast(query.at[r * query.stride + d + i]), numbers, sums[r]);
      }
      behind_word(i);
    }
  } else {
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) {
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const float* const numbers = query.at + r * query.stride + d + 2 * i;
        sums[r] = fma(broadcast(numbers[0]), Numbers::first_of(words[i]), sums[r]);
        sums[r] = fma(broadcast(numbers[1]), Numbers::second_of(words[i]), sums[r]);
      }
      behind_word(i);
    }
  }
}

// The scores go on with the columns behind the whole ones. One function for all numbers of rows: squares whose size the
// compiler does not know would be half of each tile's code. The sums of two rows stay in registers.
template <class Numbers>
[[gnu::noinline]] void add_last_columns(const SweepScores<Numbers>& tile, Vec scales) noexcept {
  const std::int64_t second = tile.rows > 1 ? 1 : 0;
  const float* const queries[] = {tile.query.at, tile.query.at + second * tile.query.stride};
  float* const scores[] = {tile.scores, tile.scores + second * tile.scores_stride};
  const bool goes_on = tile.whole_columns > 0;
  Vec sums[] = {goes_on ? load(scores[0]) : zero(), goes_on ? load(scores[1]) : zero()};
  for (std::int64_t r = 2; !goes_on && r < tile.rows; ++r) store(zero(), tile.scores + r * tile.scores_stride);
  for (std::int64_t d = tile.whole_columns; d < tile.head_dim; d += kLanes) {
    const int dims = static_cast<int>(smaller(kLanes, tile.head_dim - d));
    Vec square[kLanes];
    load_turned<Numbers>(tile.key + Numbers::kOfColumn * d, tile.key_stride, tile.keys, dims, square);
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) {
      if (i >= dims) continue;
      square[i] = scaled_by<Numbers>(square[i], scales);
#pragma GCC unroll 2
      for (int r = 0; r < 2; ++r) sums[r] = add_product<Numbers>(broadcast(queries[r][d + i]), square[i], sums[r]);
    }
    for (std::int64_t r = 2; r < tile.rows; ++r) {
      const float* const query = tile.query.at + r * tile.query.stride + d;
      float* const to = tile.scores + r * tile.scores_stride;
      Vec sum = load(to);
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) {
        if (i < dims) sum = add_product<Numbers>(broadcast(query[i]), square[i], sum);
      }
      store(sum, to);
    }
  }
  store(sums[0], scores[0]);
  store(sums[1], scores[1]);
}

template <class Numbers>
template <int kRows, int kVectors>
void SweepScores<Numbers>::run(const SweepScores& tile) noexcept {
  static_assert(kVectors == 1);
  const TileRows query = tile.query;
  const std::int64_t head_dim = tile.head_dim;
  const Vec scales = scales_of_rows<Numbers>(tile.scales, tile.scale_stride, kLanes);
  Vec sums[kRows];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) sums[r] = zero();
  // Each iteration visits kLanes rows of memory; the next ones are asked for row by row, evenly spread over the
  // iterations. A core waits for few lines at a time: floats, whose rows have the most lines, are asked for in two
  // places of each iteration where it is long. Pointers that go on by themselves, and not load_turned(), which is
  // slower on AVX2.
  const Storage* next = tile.next;
  const std::int64_t further = tile.further;
  // Not of 16 bits that are widened: one thing more to keep in registers, and heads apart became slower.
  constexpr bool kWidened = sizeof(Storage) == 2 && Numbers::kOfColumn == 1;
  const bool second_level_alone = !kWidened && tile.second_level_alone;
  const std::int64_t key_stride = tile.key_stride;
  std::int64_t numbers_asked = next != nullptr ? 0 : kLanes * head_dim;
  KeyRows<Numbers> rows(tile);
  constexpr int kPlaces = sizeof(Storage) == sizeof(float) && kRows > 2 ? 2 : 1;
  const auto ask_until = [&](std::int64_t column) {
    for (; numbers_asked < kLanes * column; numbers_asked += head_dim) {
      ask_for<Numbers>(next, Numbers::kOfColumn * head_dim, further, second_level_alone);
      next += key_stride;
    }
  };
  for (std::int64_t d = 0; d + kSquareColumns <= head_dim; d += kSquareColumns) {
    Vec words[kLanes];
    rows.load(words);
    ask_until(d + kSquareColumns / kPlaces);
    transpose(words);
    if constexpr (kPlaces == 2) ask_until(d + kSquareColumns);
    add_words<Numbers>(query, d, words, scales, sums, [](int) {});
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) store(sums[r], tile.scores + r * tile.scores_stride);
  if (tile.whole_columns < head_dim) add_last_columns(tile, scales);
}

// Sums that go on where they were left.
struct GoOn {
  float* sums;
  std::int64_t stride;

  template <class A, class B, int kRows, int kVectors>
  HEADLIGHT_INLINE void start(const A&, const B&, Vec (&to)[kRows][kVectors]) const {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) to[r][v] = load(sums + r * stride + v * kLanes);
    }
  }
  template <class A, class B, int kRows, int kVectors>
  HEADLIGHT_INLINE void end(const A&, const B&, const Vec (&from)[kRows][kVectors]) const {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) store(from[r][v], sums + r * stride + v * kLanes);
    }
  }
};

// TileMemory of rows with scales.
template <bool kPartial, class Numbers>
struct ScaledMemory : TileMemory<kPartial, true, Numbers> {
  const float* scales;
  std::int64_t scale_stride;

  template <int kRows, int kVectors>
  HEADLIGHT_INLINE void load(Vec (&to)[kVectors], int iteration) {
    TileMemory<kPartial, true, Numbers>::template load<kRows>(to, iteration);
    const Vec scale = broadcast(*scales);
    scales += scale_stride;
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) to[v] = mul(to[v], scale);
  }
};

// sums[r] += Σ_j weights[r][j] · value[j], each row and column a chain over ascending keys.
template <class Numbers>
struct SweepValues {
  template <bool kPartial>
  using Memory = TileMemory<kPartial, true, Numbers>;
  template <bool kPartial>
  using Tile = RegisterTile<TileRows, Memory<kPartial>, GoOn>;
};
template <>
struct SweepValues<StoredInt8> {
  template <bool kPartial>
  using Memory = ScaledMemory<kPartial, StoredInt8>;
  template <bool kPartial>
  using Tile = RegisterTile<TileRows, Memory<kPartial>, GoOn>;
};

// Columns that end after `lanes`.
template <class To, class From>
HEADLIGHT_INLINE To ended_after(const From& b, int lanes) {
  if constexpr (requires { b.scales; }) {
    return {{b.at, b.stride, b.ahead, lanes}, b.scales, b.scale_stride};
  } else {
    return {b.at, b.stride, b.ahead, lanes};
  }
}

// One or two rows have room for twice the columns, so that a row of memory of up to 128 floats is read in one go.
inline constexpr int kWideRows = 2;
inline constexpr int kWideVectors = kLanes == 1 ? kValueVectors : 2 * kValueVectors;
constexpr std::int64_t sweep_vectors(std::int64_t rows) { return rows <= kWideRows ? kWideVectors : kValueVectors; }

// Whether values may end within a vector: of numbers that are widened such are packed, for they are rare.
template <class Numbers>
inline constexpr bool kSweepsParts = kLanes > 1 &&
                                     (sizeof(typename Numbers::Storage) == sizeof(float) || Numbers::kOfColumn > 1);

// Columns in panels of whole vectors, a partial vector by itself.
template <class Numbers>
void sweep_value_columns(typename SweepValues<Numbers>::template Tile<false> tile, std::int64_t rows,
                         std::int64_t value_dim) {
  using Tile = typename SweepValues<Numbers>::template Tile<false>;
  const std::int64_t most = sweep_vectors(rows);
  for (std::int64_t vectors = value_dim / kLanes; vectors > 0; vectors -= most) {
    const std::int64_t columns = smaller(vectors, most) * kLanes;
    (rows <= kWideRows ? tile_of<kWideRows, kWideVectors, Tile>(rows, columns / kLanes)
                       : value_tile_of<SweepValues<Numbers>::template Tile, false>(rows, columns))(tile);
    tile.b.at += columns;
    tile.finish.sums += columns;
  }
  if constexpr (kSweepsParts<Numbers>) {
    const int lanes = static_cast<int>(value_dim % kLanes);
    if (lanes == 0) return;
    value_tile_of<SweepValues<Numbers>::template Tile, true>(
        rows, lanes)({tile.a, ended_after<typename SweepValues<Numbers>::template Memory<true>>(tile.b, lanes),
                      tile.depth, tile.finish});
  }
}

// Of the keys [first, last), tile of rows by tile: together(r, rows, from, to) for those that all of its rows see, in
// whole iterations of kKeys, and alone(r, from, to) for what row r sees before and after them, in ascending order of
// keys.
template <int kKeys, class Alone, class Together>
HEADLIGHT_INLINE void for_seen_keys(const kernels::AttentionBlock& block, std::int64_t first, std::int64_t last,
                                    const Alone& alone, const Together& together) {
  const std::int64_t group_rows = rows_of_group<kValueRows>(block.query.count);
  for (std::int64_t group = 0; group < block.query.count; group += group_rows) {
    const std::int64_t end = smaller(group + group_rows, block.query.count);
    std::int64_t all_first = first;
    std::int64_t all_last = last;
    for (std::int64_t r = group; r < end; ++r) {
      all_first = larger(all_first, block.seen.begin[r]);
      all_last = smaller(all_last, block.seen.end[r]);
    }
    if constexpr (kKeys > 1) {
      all_first = round_up(all_first, kKeys);
      all_last = all_last / kKeys * kKeys;
    }
    if (all_first >= all_last) all_first = all_last = last;
    for (std::int64_t r = group; r < end; ++r) {
      alone(r, larger(first, block.seen.begin[r]), smaller(block.seen.end[r], all_first));
    }
    together(group, end - group, all_first, all_last);
    for (std::int64_t r = group; r < end; ++r) alone(r, all_last, smaller(block.seen.end[r], last));
  }
}

// The values of keys [first, last) of one head; the scales are those of its keys.
template <class Numbers>
HEADLIGHT_INLINE void sweep_values_of_keys(const kernels::AttentionBlock& block, const float* weights,
                                           const typename Numbers::Storage* value, const float* scales,
                                           std::int64_t first, std::int64_t last, float* sums,
                                           const typename Numbers::Storage* next) {
  const auto sum = [&](std::int64_t r, std::int64_t rows, std::int64_t from, std::int64_t to) {
    if (from >= to) return;
    const auto* const at = value + from * block.keys.value.stride;
    const std::intptr_t ahead = reinterpret_cast<std::intptr_t>(next) - reinterpret_cast<std::intptr_t>(at);
    const auto memory = [&]() -> typename SweepValues<Numbers>::template Memory<false> {
      const kernels::Operand& values = block.keys.value;
      const bool in_one_piece = values.stride <= block.keys.value_dim;
      if constexpr (kHasScales<Numbers>) {
        return {
            {at, values.stride, ahead, kLanes, in_one_piece}, scales + from * values.scale_stride, values.scale_stride};
      } else {
        return {at, values.stride, ahead, kLanes, in_one_piece};
      }
    };
    const typename SweepValues<Numbers>::template Tile<false> tile{
        {weights + r * block.scores_stride + from, block.scores_stride},
        memory(),
        to - from,
        {sums + r * block.state.out_stride, block.state.out_stride}};
    sweep_value_columns<Numbers>(tile, rows, block.keys.value_dim);
  };
  for_seen_keys<1>(
      block, first, last, [&](std::int64_t r, std::int64_t from, std::int64_t to) { sum(r, 1, from, to); }, sum);
}

}  // namespace headlight::HEADLIGHT_TARGET
