// Keys or values of several heads where they lie, and the cache lines of them that are asked for ahead.
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

// Keys or values of all heads, an iteration of each head after another.
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
  [[nodiscard]] std::int64_t lines_at_once() const {
    return kKeysAtOnce * divide_up(columns, static_cast<std::int64_t>(PairsOfBFloat16::kOfLine));
  }
  // What to ask for beside keys [j, j + kKeysAtOnce): the same keys of the next head, where those lie between its own.
  [[nodiscard]] LinesAhead ahead_of(std::int64_t j, std::int64_t head) const {
    if (!asks) return {};
    constexpr std::int64_t kBytes = sizeof(std::uint16_t);
    if (in_one_piece()) {
      const auto* const here = reinterpret_cast<const char*>(rows.at(j, head));
      return {here + kBytesAhead, 0, kKeysAtOnce * rows.stride * kBytes};
    }
    const auto* const next = head + 1 < heads ? rows.at(j, head + 1) : rows.at(j + kKeysAtOnce, 0);
    return {reinterpret_cast<const char*>(next), rows.stride * kBytes, columns * kBytes};
  }
};

}  // namespace headlight::HEADLIGHT_TARGET
