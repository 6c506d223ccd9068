// Scores of one or two rows against keys in one piece that come from memory, where reading alone takes time: the loop
// of SweepScores with requests for lines put one by one between its products. A core has room for few requests; of many
// at once it drops some, and waits for their lines when it comes to them.
#pragma once

#include "kernels/attention/sweep_tile-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// float32 with AVX-512. AVX2 and narrower numbers, whose keys cost more instructions a byte, gained nothing
// (docs/history/decoding.md).
template <class Numbers>
inline constexpr bool kAsksOneByOne = kLanes >= 16 && sizeof(typename Numbers::Storage) == sizeof(float);
template <class Numbers>
bool asks_one_by_one(const kernels::AttentionSweep& sweep, bool in_one_piece) {
  return kAsksOneByOne<Numbers> && sweep.from_far_memory && in_one_piece && sweep.heads == 1 &&
         sweep.block.query.count <= kWideRows;
}

// Floats from a row of values that is read to the one that is asked for meanwhile, where keys are asked for so.
inline constexpr std::int64_t kFarValues = 1 << 10;

// Asks for what lies behind kLines lines from `line` on, not before `sum` is there. Gives the line behind them.
template <int kLines>
HEADLIGHT_INLINE std::intptr_t ask_far(std::intptr_t line, Vec sum) {
  line = behind_load(line, sum);
#pragma GCC unroll 2
  for (int i = 0; i < kLines; ++i, line += kBytesOfLine) {
    const auto* at = reinterpret_cast<const std::uint8_t*>(line);
    __builtin_prefetch(at + (2 << 10));
    // The second level is asked three times, in case it dropped what it was asked for.
    __builtin_prefetch(at + (12 << 10), 0, 2);
    __builtin_prefetch(at + (10 << 10), 0, 2);
    __builtin_prefetch(at + (8 << 10), 0, 2);
  }
  return line;
}

template <class Numbers, int kRows>
void score_far_keys(const SweepScores<Numbers>& tile) noexcept {
  constexpr int kColumns = SweepScores<Numbers>::kSquareColumns;
  Vec sums[kRows];
#pragma GCC unroll 2
  for (int r = 0; r < kRows; ++r) sums[r] = zero();
  KeyRows<Numbers> rows(tile);
  // As many lines are asked for as are multiplied meanwhile.
  constexpr std::int64_t kColumnBytes = kLanes * Numbers::kOfColumn * sizeof(typename Numbers::Storage);
  constexpr int kLinesTogether = 2;
  constexpr int kAsks = static_cast<int>(kColumns * kColumnBytes / (kLinesTogether * kBytesOfLine));
  auto line = reinterpret_cast<std::intptr_t>(tile.key);
  std::int64_t d = 0;
  for (; d + kColumns <= tile.head_dim; d += kColumns) {
    Vec words[kLanes];
    rows.load(words);
    transpose(words);
    add_words<Numbers>(
        tile.query, d, words, zero(), sums, [&](int i) __attribute__((always_inline)) {
          if ((i + 1) * kAsks / kLanes > i * kAsks / kLanes) line = ask_far<kLinesTogether>(line, sums[0]);
        });
  }
#pragma GCC unroll 2
  for (int r = 0; r < kRows; ++r) store(sums[r], tile.scores + r * tile.scores_stride);
  const auto end = reinterpret_cast<std::intptr_t>(tile.key) + tile.head_dim * kColumnBytes;
  while (line < end) line = ask_far<1>(line, sums[0]);
  if (d < tile.head_dim) add_last_columns(tile, zero());
}

// Of the rows that the tile stands at. As many whole keys as a vector has lanes, and columns for a square.
template <class Numbers>
HEADLIGHT_INLINE void score_far_keys(const SweepScores<Numbers>& tile) {
  tile.rows == 1 ? score_far_keys<Numbers, 1>(tile) : score_far_keys<Numbers, kWideRows>(tile);
}

}  // namespace headlight::HEADLIGHT_TARGET
