// Compiled once per instruction set: keys of int8 that are scored several vectors together. A source of its own, since
// these loops want to begin with a cache line (see CMakeLists.txt).
#include "kernels/attention/sweep_int8-inl.h"

namespace headlight::HEADLIGHT_TARGET {
namespace {

constexpr int kBytesOfVector = 4 * kLanes;

constexpr int kBytesOfBlock = 16;  // within which bytes are interleaved
constexpr int kFewBytes = 4;       // products between two requests for what comes next

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

// Sixteen keys from `from` on: byte i of `turned[j]` within every sixteen is key i's. Plain C++ has no use for it.
[[maybe_unused]] HEADLIGHT_INLINE void turn_keys(const std::int8_t* from, std::int64_t key_stride,
                                                 std::int8_t (&turned)[kBytesOfBlock][kBytesOfVector]) {
  IntVec rows[kBytesOfBlock];
#pragma GCC unroll 16
  for (int j = 0; j < kBytesOfBlock; ++j) rows[j] = as_int(load(reinterpret_cast<const float*>(from + j * key_stride)));
  turn_bytes(rows);
#pragma GCC unroll 16
  for (int j = 0; j < kBytesOfBlock; ++j) store(as_float(rows[j]), reinterpret_cast<float*>(turned[j]));
}

// The keys that the sweep reads next, asked for a few lines at a time: a core waits for few, and stands still where it
// is asked for many at once. Those that come from far are wanted in the second-level cache alone. Keys in one piece
// count as one long row.
class KeysAskedFor {
 public:
  explicit KeysAskedFor(const SweepScores<StoredInt8>& tile)
      : row_(tile.next + tile.further),
        stride_(tile.key_stride),
        columns_(tile.head_dim),
        rows_(tile.next != nullptr ? kKeysTogether : 0),
        from_far_(tile.second_level_alone) {
    if (tile.key_stride != tile.head_dim || rows_ == 0) return;
    columns_ *= rows_;
    rows_ = 1;
  }

  [[nodiscard]] HEADLIGHT_INLINE bool has_more() const { return rows_ != 0; }
  HEADLIGHT_INLINE void ask_for_line() {
    from_far_ ? __builtin_prefetch(row_ + column_, 0, 2) : __builtin_prefetch(row_ + column_);
    column_ += StoredInt8::kOfLine;
    if (column_ < columns_) return;
    column_ = 0;
    row_ += stride_;
    --rows_;
  }

 private:
  const std::int8_t* row_;
  std::int64_t stride_;
  std::int64_t columns_;  // of a row
  std::int64_t column_ = 0;
  int rows_;
  bool from_far_;
};

template <int kRows>
void score_rows_together(const SweepScores<StoredInt8>& tile) noexcept {
  const std::int64_t head_dim = tile.head_dim, key_stride = tile.key_stride;
  Vec scales[kKeyVectors], sums[kRows][kKeyVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kKeyVectors; ++v) {
    scales[v] = scales_of_rows<StoredInt8>(tile.scales + v * kLanes * tile.scale_stride, tile.scale_stride, kLanes);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) sums[r][v] = zero();
  }
  // As many lines of the next keys as of these are multiplied meanwhile.
  constexpr int kLinesOfFew = larger(1, kKeysTogether * kFewBytes / StoredInt8::kOfLine);
  KeysAskedFor next(tile);
  std::int64_t d = 0;
  for (; d + kBytesOfVector <= head_dim; d += kBytesOfVector) {
    alignas(64) std::int8_t turned[kKeysTogether / kBytesOfBlock][kBytesOfBlock][kBytesOfVector];
    for (int block = 0; block < kKeysTogether / kBytesOfBlock; ++block) {
      turn_keys(tile.key + block * kBytesOfBlock * key_stride + d, key_stride, turned[block]);
    }
    for (int at = 0; at < kBytesOfVector; at += kBytesOfBlock) {
      const float* const query = tile.query.at + d + at;
      for (int few = 0; few < kBytesOfBlock; few += kFewBytes) {
#pragma GCC unroll 4
        for (int line = 0; line < kLinesOfFew; ++line) {
          if (next.has_more()) next.ask_for_line();
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
  while (next.has_more()) next.ask_for_line();
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

}  // namespace

void score_keys_together(const SweepScores<StoredInt8>& tile) noexcept {
  if constexpr (kValues.interleaves_bytes) {
    tile.rows == 1 ? score_rows_together<1>(tile) : score_rows_together<kRowsOfKeyVectors>(tile);
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
