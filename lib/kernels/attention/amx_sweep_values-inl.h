// Values of several heads where they lie, times the weights of a few rows. Values must lie by pairs of keys: a
// iteration's are interleaved on their way into a small buffer, while the tiles of the iteration before are multiplied.
#pragma once

#include "kernels/attention/amx_swept_rows-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// Columns of values that are multiplied in one go: four tiles.
inline constexpr std::int64_t kSweptColumns = 4 * kAmxWords;
static_assert(kernels::kSweptTileFloats == 2 * 4 * kTileFloats && kernels::kSweptScoreFloats == 2 * 2 * kTileFloats);
inline constexpr std::int64_t kColumnsOfPair = 2 * kAmxWords;  // of two tiles, which a vector of values holds

// Keys of an iteration, counted from its first, that are there and seen by the rows in work.
struct SeenOfIteration {
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
                                        const SeenOfIteration& seen, std::int64_t pair, float* tiles) {
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

// Weights of an iteration times its values, some columns of a head.
struct ValueIteration {
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

// Values of an iteration into tiles while the tiles of the iteration before are multiplied: take(pair) of all pairs.
template <class Take>
HEADLIGHT_INLINE void take_value_iteration(const ValueIteration& before, LinesAhead& ahead, std::int64_t lines,
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
  ValueSweep(const kernels::AttentionSweep& sweep, const IterationRange& iterations, AmxRegisters& registers)
      : sweep_(sweep),
        block_(sweep.block),
        iterations_(iterations),
        registers_(registers),
        values_(sweep, values_of<PairsOfBFloat16>(sweep), sweep.block.keys.value_dim),
        lines_of_pair_(divide_up(values_.lines_at_once() / divide_up(values_.columns, kSweptColumns), kAmxWords)) {}

  void run() {
    for (std::int64_t head = 0; head < sweep_.heads; ++head) clear_sums_of(head);
    configure_values(block_.query.count, registers_);
    for (std::int64_t j = iterations_.first; j < iterations_.last; j += kKeysAtOnce) {
      const bool all_there = j + kKeysAtOnce <= block_.keys.count;
      const SeenOfIteration seen = seen_by(0, j);
      bool same = true;
      for (std::int64_t r = 1; r < block_.query.count && !block_.seen.same_for_all; ++r) {
        const SeenOfIteration of_row = seen_by(r, j);
        same = same && of_row.begin == seen.begin && of_row.end == seen.end;
      }
      if (!same) {
        each_row_by_itself(j);
      } else if (seen.begin == seen.end) {
        continue;
      } else if (all_there && seen.begin <= 0 && seen.end >= kKeysAtOnce) {
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

  // Clamped to the iteration, so that rows that see all of it, or nothing, are alike.
  [[nodiscard]] SeenOfIteration seen_by(std::int64_t r, std::int64_t j) const {
    const std::int64_t begin = larger(block_.seen.begin[r] - j, 0);
    const std::int64_t end = smaller(block_.seen.end[r] - j, kKeysAtOnce);
    return begin < end ? SeenOfIteration{begin, end} : SeenOfIteration{0, 0};
  }

  template <bool kWhole>
  void all_rows(std::int64_t j, const SeenOfIteration& seen) {
    for (std::int64_t head = 0; head < sweep_.heads; ++head) {
      LinesAhead ahead = values_.ahead_of(j, head);
      for (std::int64_t column = 0; column < values_.columns; column += kSweptColumns) {
        take<kWhole>(j, head, column, 0, seen, ahead);
      }
    }
  }

  // Rows that see different keys of an iteration: what one of them does not see must not reach its sum.
  void each_row_by_itself(std::int64_t j) {
    before_.run_all();
    before_ = {};
    configure_values(1, registers_);
    LinesAhead nothing;
    for (std::int64_t head = 0; head < sweep_.heads; ++head) {
      for (std::int64_t r = 0; r < block_.query.count; ++r) {
        const SeenOfIteration seen = seen_by(r, j);
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
                             const SeenOfIteration& seen, LinesAhead& ahead) {
    const std::uint16_t* const from = values_.rows.at(j, head) + column;
    float* const tiles = sweep_.tile_room + in_turn_ * 4 * kTileFloats;
    const std::int64_t columns = smaller(kSweptColumns, values_.columns - column);
    const std::int64_t stride = values_.rows.stride;
    if (kWhole && columns == kSweptColumns) {
      take_value_iteration(
          before_, ahead, lines_of_pair_, [&](std::int64_t pair) __attribute__((always_inline)) {
            take_whole_pair(from, stride, pair, tiles);
          });
    } else {
      take_value_iteration(before_, ahead, lines_of_pair_,
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
  IterationRange iterations_;
  AmxRegisters& registers_;
  SweptRows values_;
  std::int64_t lines_of_pair_;
  ValueIteration before_;
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

}  // namespace headlight::HEADLIGHT_TARGET
