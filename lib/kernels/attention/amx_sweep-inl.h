// A few rows of several heads over tile registers, against keys and values read once and where they lie: the bits of
// attend_tiles().
//
// Scores are products with the keys as rows of A, in place, and the queries as columns of B; so no key is turned over.
// Values must lie by pairs of keys: a step's are interleaved on their way into a small buffer. Memory is the limit, so
// the tiles of each step run between the loads of the next one: a core that stops loading for a hundred cycles has
// nothing on its way from memory after them.
#pragma once

#include "kernels/attention/amx-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// Far enough for what comes from memory, where keys or values follow one another.
inline constexpr std::int64_t kBytesAhead = 8 << 10;

// Cache lines of some rows in the order in which they lie, asked for a few at a time, in the second level alone: in the
// first, rows a power of two apart would have a few sets to share.
struct LinesAhead {
  const char* row = nullptr;  // null: nothing is asked for
  std::int64_t stride = 0;    // bytes
  std::int64_t row_bytes = 0;
  std::int64_t at = 0;

  HEADLIGHT_INLINE void ask(std::int64_t lines) {
    if (row == nullptr) return;
    for (; lines > 0; --lines) {
      __builtin_prefetch(row + at, 0, 2);
      at += kBytesOfLine;
      if (at < row_bytes) continue;
      at = 0;
      row += stride;
    }
  }

  static constexpr std::int64_t kBytesOfLine = kFloatsOfLine * static_cast<std::int64_t>(sizeof(float));
};

// Keys or values of all heads, a step of each head after another.
struct SweptRows {
  SweepHalf<PairsOfBFloat16> rows;
  std::int64_t heads;
  std::int64_t columns;
  bool asks;

  SweptRows(const kernels::AttentionSweep& sweep, const SweepHalf<PairsOfBFloat16>& half, std::int64_t columns_)
      : rows(half),
        heads(sweep.heads),
        columns(columns_),
        asks(sweep.from_far_memory || (sweep.from_memory && in_one_piece())) {}

  [[nodiscard]] bool in_one_piece() const { return rows.stride <= columns; }
  [[nodiscard]] std::int64_t lines_of_step() const {
    return kKeysOfStep * divide_up(columns, static_cast<std::int64_t>(PairsOfBFloat16::kOfLine));
  }
  // What to ask for beside keys [j, j + kKeysOfStep): the same keys of the next head, where those lie between its own.
  [[nodiscard]] LinesAhead ahead_of(std::int64_t j, std::int64_t head) const {
    if (!asks) return {};
    constexpr std::int64_t kBytes = sizeof(std::uint16_t);
    if (in_one_piece()) {
      const auto* const here = reinterpret_cast<const char*>(rows.at(j, head));
      return {here + kBytesAhead, 0, kKeysOfStep * rows.stride * kBytes};
    }
    const auto* const next = head + 1 < heads ? rows.at(j, head + 1) : rows.at(j + kKeysOfStep, 0);
    return {reinterpret_cast<const char*>(next), rows.stride * kBytes, columns * kBytes};
  }
};

// Sixteen words of at most sixteen keys, zeros where there are none.
inline void take_key_tile(const std::uint16_t* from, std::int64_t stride, std::int64_t keys, std::int64_t words,
                          float* tile) {
  const int count = static_cast<int>(smaller(words, kAmxWords));
  for (std::int64_t j = 0; j < kAmxRows; ++j) {
    Vec numbers = zero();
    if (j < keys) {
      const std::uint16_t* const at = from + j * stride;
      numbers = count == kAmxWords ? PairsOfBFloat16::load(at) : PairsOfBFloat16::load_partial(at, count);
    }
    store(numbers, tile + j * kAmxWords);
  }
}

// Rows of queries as columns: to[word][row]. What is stored behind a row of `to` belongs to the next ones.
inline void turn_queries(const kernels::QueryRows& query, float* to) {
  for (std::int64_t d = 0; d < query.head_dim; d += kAmxWords) {
    Vec square[kLanes];
    load_turned(query.data + d, query.stride, query.count, kLanes, square);
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i, to += query.count) store(square[i], to);
  }
}

// A step's keys against all rows of one head.
struct KeyStep {
  const std::uint16_t* keys;
  std::int64_t stride;
  std::int64_t count;  // of keys, at most kKeysOfStep
  std::int64_t words;  // of a key
  const float* queries;
  std::int64_t rows;
  std::int64_t filled_words;
  bool is_exact = false;  // the registers hold so many keys, and words where those are less than a step
};

// Words [d, d + 16) of sixteen keys from the step's key `first` on, as a tile of A: in place, or where some are not
// there, in a copy.
struct KeyTile {
  const void* at;
  std::int64_t bytes;
};
HEADLIGHT_INLINE KeyTile key_tile(const KeyStep& step, std::int64_t first, std::int64_t d, float* copy) {
  const std::uint16_t* const at = step.keys + first * step.stride + 2 * d;
  const bool whole_keys = step.is_exact || step.count - first >= kAmxRows;
  const bool whole_words = d + kAmxWords <= step.words || (step.is_exact && step.words < kAmxWords);
  if (whole_keys && whole_words) return {at, 2 * step.stride};
  take_key_tile(at, step.stride, step.count - first, step.words - d, copy);
  return {copy, 4 * kAmxWords};
}

// C ← keys · queries, the first sixteen keys in tile 0 and the others, if there are any, in 1.
HEADLIGHT_INLINE void multiply_key_step(const KeyStep& step, LinesAhead& ahead, std::int64_t lines) {
  alignas(64) float copies[2][kTileFloats];
  _tile_zero(0);
  if (step.count > kAmxRows) _tile_zero(1);
  for (std::int64_t d = 0; d < step.filled_words; d += kAmxWords) {
    ahead.ask(lines / 2);
    const KeyTile upper = key_tile(step, 0, d, copies[0]);
    write_memory();
    _tile_loadd(6, step.queries + d * step.rows, 4 * step.rows);
    _tile_loadd(4, upper.at, upper.bytes);
    HEADLIGHT_AMX_PRODUCT(0, 4, 6);
    if (step.count <= kAmxRows) continue;
    ahead.ask(lines / 2);
    const KeyTile lower = key_tile(step, kAmxRows, d, copies[1]);
    write_memory();
    _tile_loadd(5, lower.at, lower.bytes);
    HEADLIGHT_AMX_PRODUCT(1, 5, 6);
  }
  write_memory();
}

// Sums of a step, [keys][rows], that are to become rows of scores once the next step is under way.
struct TurnedScores {
  const float* sums = nullptr;
  std::int64_t keys = 0;  // 0: none yet
  std::int64_t rows = 0;
  float* scores = nullptr;
  std::int64_t stride = 0;

  HEADLIGHT_INLINE void finish() const {
    for (std::int64_t first = 0; first < keys; first += kAmxRows) {
      const float* const from = sums + first * kAmxWords;
      float* const to = scores + first;
      if (rows <= 4) {
        turn_square<4>(from, kAmxWords, kLanes, static_cast<int>(rows), to, stride);
      } else {
        turn_square<kLanes>(from, kAmxWords, kLanes, static_cast<int>(rows), to, stride);
      }
    }
  }
};

// Scores of all heads' rows with the keys of the steps.
[[gnu::noinline]] inline void score_key_steps(const kernels::AttentionSweep& sweep, const StepRange& steps,
                                              AmxRegisters& registers) {
  const kernels::AttentionBlock& block = sweep.block;
  const std::int64_t rows = block.query.count, words = block.query.head_dim;
  const auto narrow = static_cast<std::uint8_t>(rows);
  registers.configure({{16, narrow}, {16, narrow}, {}, {}, {16, 16}, {16, 16}, {16, narrow}, {}});
  float* const sums = sweep.tile_room;
  float* const columns = sums + kernels::kSweptScoreFloats;
  if (rows > 1) {
    for (std::int64_t head = 0; head < sweep.heads; ++head) {
      turn_queries(block_of(sweep, head).query, columns + head * rows * words);
    }
    write_memory();
  }
  const SweptRows keys(sweep, keys_of<PairsOfBFloat16>(sweep), block.keys.head_dim);
  const std::int64_t lines = divide_up(keys.lines_of_step(), words / kAmxWords);
  TurnedScores last;
  int in_turn = 0;
  for (std::int64_t j = steps.first; j < steps.last; j += kKeysOfStep) {
    for (std::int64_t head = 0; head < sweep.heads; ++head) {
      const float* const queries =
          rows > 1 ? columns + head * rows * words : block.query.data + head * sweep.query_head_stride;
      LinesAhead ahead = keys.ahead_of(j, head);
      const std::int64_t count = smaller(kKeysOfStep, block.keys.count - j);
      multiply_key_step({keys.rows.at(j, head), keys.rows.stride, count, block.keys.head_dim / 2, queries, rows, words},
                        ahead, lines);
      float* const scores = block.scores + head * rows * block.scores_stride + j;
      if (rows == 1) {
        _tile_stored(0, scores, sizeof(float));
        if (count > kAmxRows) _tile_stored(1, scores + kAmxRows, sizeof(float));
        continue;
      }
      last.finish();
      float* const to = sums + in_turn * 2 * kTileFloats;
      write_memory();
      _tile_stored(0, to, 4 * kAmxWords);
      if (count > kAmxRows) _tile_stored(1, to + kTileFloats, 4 * kAmxWords);
      write_memory();
      last = {to, count, rows, scores, block.scores_stride};
      in_turn = 1 - in_turn;
    }
  }
  last.finish();
  write_memory();
}

// Columns of values that are multiplied in one go: four tiles.
inline constexpr std::int64_t kSweptColumns = 4 * kAmxWords;
static_assert(kernels::kSweptTileFloats == 2 * 4 * kTileFloats && kernels::kSweptScoreFloats == 2 * 2 * kTileFloats);
inline constexpr std::int64_t kColumnsOfPair = 2 * kAmxWords;  // of two tiles, which a vector of values holds

// Keys of a step, counted from its first, that are there and seen by the rows in work.
struct SeenOfStep {
  std::int64_t begin;
  std::int64_t end;
  [[nodiscard]] bool has(std::int64_t key) const { return begin <= key && key < end; }
};

// Values of a pair of keys into row `pair` of the tiles of their columns: of 32 columns as the interleaving leaves
// them (order_columns()), of fewer in order.
HEADLIGHT_INLINE void interleave_pair(const std::uint16_t* first, const std::uint16_t* second, float* to) {
  const Vec upper = first != nullptr ? PairsOfBFloat16::load(first) : zero();
  const Vec lower = second != nullptr ? PairsOfBFloat16::load(second) : zero();
  store(interleave_lower_numbers(upper, lower), to);
  store(interleave_upper_numbers(upper, lower), to + kTileFloats);
}
// Of all keys and kSweptColumns columns.
HEADLIGHT_INLINE void take_whole_pair(const std::uint16_t* from, std::int64_t stride, std::int64_t pair, float* tiles) {
  const std::uint16_t* const at = from + 2 * pair * stride;
#pragma GCC unroll 2
  for (std::int64_t column = 0; column < kSweptColumns; column += kColumnsOfPair) {
    interleave_pair(at + column, at + stride + column, tiles + pair * kAmxWords + column / kAmxWords * kTileFloats);
  }
}
// Of any. A call: inlined, it would be most of the sweep's code.
[[gnu::noinline]] inline void take_pair(const std::uint16_t* from, std::int64_t stride, std::int64_t columns,
                                        const SeenOfStep& seen, std::int64_t pair, float* tiles) {
  const bool first = seen.has(2 * pair), second = seen.has(2 * pair + 1);
  const std::uint16_t* const at = from + 2 * pair * stride;
  float* to = tiles + pair * kAmxWords;
  std::int64_t column = 0;
  for (; column + kColumnsOfPair <= columns; column += kColumnsOfPair, to += 2 * kTileFloats) {
    interleave_pair(first ? at + column : nullptr, second ? at + stride + column : nullptr, to);
  }
  for (; column < columns; column += kAmxWords, to += kTileFloats) {
    Vec values[1];
    load_value_pairs<true>(at + column, stride, static_cast<int>(smaller(kAmxWords, columns - column)), first, second,
                           values);
    store(values[0], to);
  }
}

// Weights of a step times its values, some columns of a head.
struct ValueStep {
  const float* weights = nullptr;  // null: none yet
  std::int64_t weights_stride = 0;
  const float* tiles = nullptr;
  std::int64_t columns = 0;
  float* sums = nullptr;
  std::int64_t sums_stride = 0;

  // One tile of the columns, if there are so many; the first one loads the weights.
  template <int kTile>
  HEADLIGHT_INLINE void run() const {
    if (weights == nullptr || columns <= kTile * kAmxWords) return;
    const float* const values = tiles + kTile * kTileFloats;
    float* const to = sums + kTile * kAmxWords;
    const std::int64_t bytes = 4 * sums_stride;
    write_memory();
    if constexpr (kTile == 0) {
      _tile_loadd(4, weights, 4 * weights_stride);
      _tile_loadd(0, to, bytes);
      _tile_loadd(6, values, 4 * kAmxWords);
      HEADLIGHT_AMX_PRODUCT(0, 4, 6);
      _tile_stored(0, to, bytes);
    } else if constexpr (kTile == 1) {
      _tile_loadd(1, to, bytes);
      _tile_loadd(7, values, 4 * kAmxWords);
      HEADLIGHT_AMX_PRODUCT(1, 4, 7);
      _tile_stored(1, to, bytes);
    } else if constexpr (kTile == 2) {
      _tile_loadd(2, to, bytes);
      _tile_loadd(6, values, 4 * kAmxWords);
      HEADLIGHT_AMX_PRODUCT(2, 4, 6);
      _tile_stored(2, to, bytes);
    } else {
      _tile_loadd(3, to, bytes);
      _tile_loadd(7, values, 4 * kAmxWords);
      HEADLIGHT_AMX_PRODUCT(3, 4, 7);
      _tile_stored(3, to, bytes);
    }
    write_memory();
  }
  HEADLIGHT_INLINE void run_all() const {
    run<0>();
    run<1>();
    run<2>();
    run<3>();
  }
};

// Values of a step into tiles while the tiles of the step before are multiplied: take(pair) of all pairs.
template <class Take>
HEADLIGHT_INLINE void take_value_step(const ValueStep& before, LinesAhead& ahead, std::int64_t lines,
                                      const Take& take) {
  const auto take_four = [&](std::int64_t pair) __attribute__((always_inline)) {
#pragma GCC unroll 4
    for (std::int64_t end = pair + 4; pair < end; ++pair) {
      ahead.ask(lines);
      take(pair);
    }
  };
  take_four(0);
  before.run<0>();
  take_four(4);
  before.run<1>();
  take_four(8);
  before.run<2>();
  take_four(12);
  before.run<3>();
}

// The registers for values of so many rows of weights.
inline void configure_values(std::int64_t rows, AmxRegisters& registers) {
  const auto narrow = static_cast<std::uint8_t>(rows);
  registers.configure({{narrow, 16}, {narrow, 16}, {narrow, 16}, {narrow, 16}, {narrow, 16}, {}, {16, 16}, {16, 16}});
}

// One sweep over the values of all heads.
class ValueSweep {
 public:
  ValueSweep(const kernels::AttentionSweep& sweep, const StepRange& steps, AmxRegisters& registers)
      : sweep_(sweep),
        block_(sweep.block),
        steps_(steps),
        registers_(registers),
        values_(sweep, values_of<PairsOfBFloat16>(sweep), sweep.block.keys.value_dim),
        lines_of_pair_(divide_up(values_.lines_of_step() / divide_up(values_.columns, kSweptColumns), kAmxWords)) {}

  void run() {
    for (std::int64_t head = 0; head < sweep_.heads; ++head) clear_sums_of(head);
    configure_values(block_.query.count, registers_);
    for (std::int64_t j = steps_.first; j < steps_.last; j += kKeysOfStep) {
      const bool all_there = j + kKeysOfStep <= block_.keys.count;
      const SeenOfStep seen = seen_by(0, j);
      bool same = true;
      for (std::int64_t r = 1; r < block_.query.count && !block_.seen.same_for_all; ++r) {
        const SeenOfStep of_row = seen_by(r, j);
        same = same && of_row.begin == seen.begin && of_row.end == seen.end;
      }
      if (!same) {
        each_row_by_itself(j);
      } else if (seen.begin == seen.end) {
        continue;
      } else if (all_there && seen.begin <= 0 && seen.end >= kKeysOfStep) {
        all_rows<true>(j, seen);
      } else {
        all_rows<false>(j, seen);
      }
    }
    before_.run_all();
  }

 private:
  void clear_sums_of(std::int64_t head) const {
    float* const sums = value_sums_of(sweep_, head);
    const std::int64_t floats = round_up(block_.keys.value_dim, kLanes);
    for (std::int64_t r = 0; r < block_.query.count; ++r) {
      for (std::int64_t d = 0; d < floats; d += kLanes) store(zero(), sums + r * block_.state.out_stride + d);
    }
  }

  // Clamped to the step, so that rows that see all of it, or nothing, are alike.
  [[nodiscard]] SeenOfStep seen_by(std::int64_t r, std::int64_t j) const {
    const std::int64_t begin = larger(block_.seen.begin[r] - j, 0);
    const std::int64_t end = smaller(block_.seen.end[r] - j, kKeysOfStep);
    return begin < end ? SeenOfStep{begin, end} : SeenOfStep{0, 0};
  }

  template <bool kWhole>
  void all_rows(std::int64_t j, const SeenOfStep& seen) {
    for (std::int64_t head = 0; head < sweep_.heads; ++head) {
      LinesAhead ahead = values_.ahead_of(j, head);
      for (std::int64_t column = 0; column < values_.columns; column += kSweptColumns) {
        take<kWhole>(j, head, column, 0, seen, ahead);
      }
    }
  }

  // Rows that see different keys of a step: what one of them does not see must not reach its sum.
  void each_row_by_itself(std::int64_t j) {
    before_.run_all();
    before_ = {};
    configure_values(1, registers_);
    LinesAhead nothing;
    for (std::int64_t head = 0; head < sweep_.heads; ++head) {
      for (std::int64_t r = 0; r < block_.query.count; ++r) {
        const SeenOfStep seen = seen_by(r, j);
        if (seen.begin == seen.end) continue;
        for (std::int64_t column = 0; column < values_.columns; column += kSweptColumns) {
          take<false>(j, head, column, r, seen, nothing);
        }
      }
    }
    before_.run_all();
    before_ = {};
    configure_values(block_.query.count, registers_);
  }

  // The columns from `column` on, for row r and those behind it that the registers are configured for.
  template <bool kWhole>
  HEADLIGHT_INLINE void take(std::int64_t j, std::int64_t head, std::int64_t column, std::int64_t r,
                             const SeenOfStep& seen, LinesAhead& ahead) {
    const std::uint16_t* const from = values_.rows.at(j, head) + column;
    float* const tiles = sweep_.tile_room + in_turn_ * 4 * kTileFloats;
    const std::int64_t columns = smaller(kSweptColumns, values_.columns - column);
    const std::int64_t stride = values_.rows.stride;
    if (kWhole && columns == kSweptColumns) {
      take_value_step(
          before_, ahead, lines_of_pair_, [&](std::int64_t pair) __attribute__((always_inline)) {
            take_whole_pair(from, stride, pair, tiles);
          });
    } else {
      take_value_step(before_, ahead, lines_of_pair_,
                      [&](std::int64_t pair) { take_pair(from, stride, columns, seen, pair, tiles); });
    }
    before_ = {block_.scores + (head * block_.query.count + r) * block_.scores_stride + j / 2,
               block_.scores_stride,
               tiles,
               columns,
               value_sums_of(sweep_, head) + r * block_.state.out_stride + column,
               block_.state.out_stride};
    in_turn_ = 1 - in_turn_;
  }

  const kernels::AttentionSweep& sweep_;
  const kernels::AttentionBlock& block_;
  StepRange steps_;
  AmxRegisters& registers_;
  SweptRows values_;
  std::int64_t lines_of_pair_;
  ValueStep before_;
  int in_turn_ = 0;
};

// Interleaved columns back in their order.
inline void order_columns(const kernels::AttentionBlock& block, float* sums) {
  for (std::int64_t r = 0; r < block.query.count; ++r, sums += block.state.out_stride) {
    for (std::int64_t d = 0; d + kColumnsOfPair <= block.keys.value_dim; d += kColumnsOfPair) {
      Vec lower = load(sums + d), upper = load(sums + d + kAmxWords);
      order_interleaved(lower, upper);
      store(lower, sums + d);
      store(upper, sums + d + kAmxWords);
    }
  }
}

// attend_sweep().
inline void sweep_tiles(const kernels::AttentionSweep& sweep) noexcept {
  AmxRegisters registers;
  const BlockRange range = range_of_sweep(sweep);
  const StepRange steps = steps_of(range);
  score_key_steps(sweep, steps, registers);
  RowFactors factors[kernels::kMaxSweepHeads];
  for (std::int64_t head = 0; head < sweep.heads; ++head) {
    factors[head] = weigh_tile_rows(block_of(sweep, head), range, steps);
  }
  if (sweep.block.keys.values_not_finite) {
    for (std::int64_t head = 0; head < sweep.heads; ++head) {
      values_exactly(block_of(sweep, head), factors[head], steps, registers);
    }
    return;
  }
  ValueSweep(sweep, steps, registers).run();
  for (std::int64_t head = 0; head < sweep.heads; ++head) {
    const kernels::AttentionBlock block = block_of(sweep, head);
    float* const sums = value_sums_of(sweep, head);
    order_columns(block, sums);
    merge_values(block, factors[head], sums);
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
