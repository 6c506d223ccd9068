// Scores of a few rows of several heads, against keys where they lie: products with the keys as rows of A, in place,
// and the queries as columns of B; so no key is turned over.
#pragma once

#include "kernels/attention/amx_swept_rows-inl.h"

namespace headlight::HEADLIGHT_TARGET {

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

// An iteration's keys against all rows of one head.
struct KeyIteration {
  const std::uint16_t* keys;
  std::int64_t stride;
  std::int64_t count;  // of keys, at most kKeysAtOnce
  std::int64_t words;  // of a key
  const float* queries;
  std::int64_t rows;
  std::int64_t filled_words;
  bool is_exact = false;  // the registers hold so many keys, and words where those are less than an iteration
};

// Words [d, d + 16) of sixteen keys from the iteration's key `first` on, as a tile of A: in place, or where some are
// not there, in a copy.
struct KeyTile {
  const void* at;
  std::int64_t bytes;
};
HEADLIGHT_INLINE KeyTile key_tile(const KeyIteration& iteration, std::int64_t first, std::int64_t d, float* copy) {
  const std::uint16_t* const at = iteration.keys + first * iteration.stride + 2 * d;
  const bool whole_keys = iteration.is_exact || iteration.count - first >= kAmxRows;
  const bool whole_words = d + kAmxWords <= iteration.words || (iteration.is_exact && iteration.words < kAmxWords);
  if (whole_keys && whole_words) return {at, 2 * iteration.stride};
  take_key_tile(at, iteration.stride, iteration.count - first, iteration.words - d, copy);
  return {copy, 4 * kAmxWords};
}

// C ← keys · queries, the first sixteen keys in tile 0 and the others, if there are any, in 1.
HEADLIGHT_INLINE void multiply_key_iteration(const KeyIteration& iteration, LinesAhead& ahead, std::int64_t lines) {
  alignas(64) float copies[2][kTileFloats];
  _tile_zero(0);
  if (iteration.count > kAmxRows) _tile_zero(1);
  for (std::int64_t d = 0; d < iteration.filled_words; d += kAmxWords) {
    ahead.ask(lines / 2);
    const KeyTile upper = key_tile(iteration, 0, d, copies[0]);
    write_memory();
    _tile_loadd(6, iteration.queries + d * iteration.rows, 4 * iteration.rows);
    _tile_loadd(4, upper.at, upper.bytes);
    HEADLIGHT_AMX_PRODUCT(0, 4, 6);
    if (iteration.count <= kAmxRows) continue;
    ahead.ask(lines / 2);
    const KeyTile lower = key_tile(iteration, kAmxRows, d, copies[1]);
    write_memory();
    _tile_loadd(5, lower.at, lower.bytes);
    HEADLIGHT_AMX_PRODUCT(1, 5, 6);
  }
  write_memory();
}

// Sums of an iteration, [keys][rows], that are to become rows of scores once the next iteration is under way.
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

// Scores of all heads' rows with the keys of the iterations.
[[gnu::noinline]] inline void score_key_iterations(const kernels::AttentionSweep& sweep,
                                                   const IterationRange& iterations, AmxRegisters& registers) {
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
  const std::int64_t lines = divide_up(keys.lines_at_once(), words / kAmxWords);
  TurnedScores last;
  int in_turn = 0;
  for (std::int64_t j = iterations.first; j < iterations.last; j += kKeysAtOnce) {
    for (std::int64_t head = 0; head < sweep.heads; ++head) {
      const float* const queries =
          rows > 1 ? columns + head * rows * words : block.query.data + head * sweep.query_head_stride;
      LinesAhead ahead = keys.ahead_of(j, head);
      const std::int64_t count = smaller(kKeysAtOnce, block.keys.count - j);
      multiply_key_iteration(
          {keys.rows.at(j, head), keys.rows.stride, count, block.keys.head_dim / 2, queries, rows, words}, ahead,
          lines);
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

}  // namespace headlight::HEADLIGHT_TARGET
