// Scores of a few rows against keys of int8, which memory gives four times as fast as floats. A score is a chain of
// multiply-adds, each of which waits for the last one: so several vectors of keys are scored together, and their
// numbers are turned as bytes, sixteen keys at a time, before they are widened.
#pragma once

#include "kernels/attention/sweep_tile-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// Vectors of keys that are scored together, and for how many rows at most: those of more hide each other's latency.
inline constexpr int kKeyVectors = 4;
inline constexpr int kRowsOfKeyVectors = 2;
inline constexpr int kKeysTogether = kKeyVectors * kLanes;
inline constexpr int kBytesOfVector = 4 * kLanes;

inline constexpr int kBytesOfBlock = 16;  // within which bytes are interleaved
inline constexpr int kFewBytes = 4;       // products between two looks at what to ask for

// Of every sixteen bytes of sixteen vectors: byte j of vector i becomes byte i of vector j.
HEADLIGHT_INLINE void turn_bytes(IntVec (&rows)[kBytesOfBlock]) {
#pragma GCC unroll 4
  for (int stage = 0; stage < 4; ++stage) {
    IntVec turned[kBytesOfBlock];
#pragma GCC unroll 8
    for (int i = 0; i < kBytesOfBlock / 2; ++i) {
      turned[2 * i] = interleave_lower_bytes(rows[i], rows[i + kBytesOfBlock / 2]);
      turned[2 * i + 1] = interleave_upper_bytes(rows[i], rows[i + kBytesOfBlock / 2]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kBytesOfBlock; ++i) rows[i] = turned[i];
  }
}

// Sixteen keys from `from` on: byte i of `turned[j]` within every sixteen is key i's.
HEADLIGHT_INLINE void turn_keys(const std::int8_t* from, std::int64_t key_stride,
                                std::int8_t (&turned)[kBytesOfBlock][kBytesOfVector]) {
  IntVec rows[kBytesOfBlock];
#pragma GCC unroll 16
  for (int j = 0; j < kBytesOfBlock; ++j) rows[j] = as_int(load(reinterpret_cast<const float*>(from + j * key_stride)));
  turn_bytes(rows);
#pragma GCC unroll 16
  for (int j = 0; j < kBytesOfBlock; ++j) store(as_float(rows[j]), reinterpret_cast<float*>(turned[j]));
}

// SweepScores of kKeysTogether keys.
template <int kRows>
void score_keys_together(const SweepScores<StoredInt8>& tile) noexcept {
  const std::int64_t head_dim = tile.head_dim, key_stride = tile.key_stride;
  Vec scales[kKeyVectors], sums[kRows][kKeyVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kKeyVectors; ++v) {
    scales[v] = scales_of_rows<StoredInt8>(tile.scales + v * kLanes * tile.scale_stride, tile.scale_stride, kLanes);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) sums[r][v] = zero();
  }
  const std::int8_t* next = tile.next;
  std::int64_t numbers_asked = next != nullptr ? 0 : kKeysTogether * head_dim;
  std::int64_t d = 0;
  for (; d + kBytesOfVector <= head_dim; d += kBytesOfVector) {
    alignas(64) std::int8_t turned[kKeysTogether / kBytesOfBlock][kBytesOfBlock][kBytesOfVector];
    for (int block = 0; block < kKeysTogether / kBytesOfBlock; ++block) {
      turn_keys(tile.key + block * kBytesOfBlock * key_stride + d, key_stride, turned[block]);
    }
    for (int at = 0; at < kBytesOfVector; at += kBytesOfBlock) {
      const float* const query = tile.query.at + d + at;
      for (int few = 0; few < kBytesOfBlock; few += kFewBytes) {
        // A few after another between the products: a core waits for few lines at a time, and stands still where it is
        // asked for many at once.
        const std::int64_t until = kKeysTogether * (d + at + few + kFewBytes);
        for (; numbers_asked < until; numbers_asked += head_dim, next += key_stride) {
          ask_for<StoredInt8>(next, head_dim, tile.further, tile.second_level_alone);
        }
#pragma GCC unroll 4
        for (int j = few; j < few + kFewBytes; ++j) {
#pragma GCC unroll 4
          for (int v = 0; v < kKeyVectors; ++v) {
            const std::int8_t* const bytes = turned[v * kLanes / kBytesOfBlock][j] + at + v * kLanes % kBytesOfBlock;
            const Vec numbers = mul(StoredInt8::load(bytes), scales[v]);
#pragma GCC unroll 4
            for (int r = 0; r < kRows; ++r) {
              sums[r][v] = fma(broadcast(query[r * tile.query.stride + j]), numbers, sums[r][v]);
            }
          }
        }
      }
    }
  }
  for (; numbers_asked < kKeysTogether * head_dim; numbers_asked += head_dim, next += key_stride) {
    ask_for<StoredInt8>(next, head_dim, tile.further, tile.second_level_alone);
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kKeyVectors; ++v) store(sums[r][v], tile.scores + r * tile.scores_stride + v * kLanes);
  }
  if (d == head_dim) return;
  SweepScores<StoredInt8> last = tile;
  last.whole_columns = d;
#pragma GCC unroll 4
  for (int v = 0; v < kKeyVectors; ++v) {
    add_last_columns(last, scales[v]);
    last.key += kLanes * key_stride;
    last.scores += kLanes;
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
