// A few rows of several heads against one block of keys, all in one sweep over memory.
#pragma once

#include "kernels/attention/sweep_far-inl.h"
#include "kernels/attention/sweep_int8-inl.h"
#include "kernels/attention/sweep_tile-inl.h"

namespace headlight::HEADLIGHT_TARGET {

inline kernels::AttentionBlock block_of(const kernels::AttentionSweep& sweep, std::int64_t head) {
  kernels::AttentionBlock block = sweep.block;
  const std::int64_t rows = head * block.query.count;
  const std::int64_t states = head * sweep.state_head_stride;
  block.query.data += head * sweep.query_head_stride;
  block.keys.key = block.keys.key.from(head * sweep.key_head_stride, head * sweep.key_scale_head_stride);
  block.keys.value = block.keys.value.from(head * sweep.value_head_stride, head * sweep.value_scale_head_stride);
  if (block.modifiers.masks.mask != nullptr) block.modifiers.masks.mask += head * sweep.mask_head_stride;
  if (block.modifiers.masks.bias != nullptr) block.modifiers.masks.bias += head * sweep.mask_head_stride;
  if (block.modifiers.slopes != nullptr) block.modifiers.slopes += head * sweep.mask_head_stride;
  if (block.dropout.numbers != nullptr) block.dropout.places += head * sweep.mask_head_stride;
  block.scores += rows * block.scores_stride;
  block.state.maximum += states;
  block.state.sums += states * kLanes;
  block.state.out += states * block.state.out_stride;
  if (block.ends.out != nullptr) block.ends.out += head * sweep.out_head_stride;
  block.ends.sum += head * sweep.mask_head_stride;
  return block;
}

// Keys that a sweep scores of one head before it goes on to the next.
template <class Numbers>
inline constexpr int kSweptKeys = kSweepKeys;
template <>
inline constexpr int kSweptKeys<StoredInt8> = larger(kSweepKeys, kKeysTogether);

// Keys [key, key + kKeys) of a head. Heads lie side by side in [L, H, D] memory: the next one's keys come next.
template <int kKeys>
struct SweepPlace {
  std::int64_t key;
  std::int64_t head;

  [[nodiscard]] SweepPlace next(std::int64_t heads) const {
    return head + 1 == heads ? SweepPlace{key + kKeys, 0} : SweepPlace{key, head + 1};
  }
};

// Keys or values of all heads.
template <class Numbers>
struct SweepHalf {
  using Storage = typename Numbers::Storage;
  using Place = SweepPlace<kSweptKeys<Numbers>>;
  const Storage* data;
  std::int64_t stride;
  std::int64_t head_stride;

  [[nodiscard]] std::int64_t offset(const Place& place) const { return place.key * stride + place.head * head_stride; }
  [[nodiscard]] const Storage* at(std::int64_t key, std::int64_t head) const { return data + offset(Place{key, head}); }
  // Whether rows of so many columns follow one another.
  [[nodiscard]] bool in_one_piece(std::int64_t columns) const { return stride <= Numbers::kOfColumn * columns; }
};
template <class Numbers>
SweepHalf<Numbers> keys_of(const kernels::AttentionSweep& sweep) {
  return {sweep.block.keys.key.numbers<typename Numbers::Storage>(), sweep.block.keys.key.stride,
          sweep.key_head_stride};
}
template <class Numbers>
SweepHalf<Numbers> values_of(const kernels::AttentionSweep& sweep) {
  return {sweep.block.keys.value.numbers<typename Numbers::Storage>(), sweep.block.keys.value.stride,
          sweep.value_head_stride};
}

// Rows that are scored at once: a sum for each, beside a vector of numbers of each lane's key. Sixteen registers have
// no room for more. Of numbers that are widened half as many: more would need as much code again, for calls between
// those that wait for memory and those that pack their keys.
template <class Numbers>
inline constexpr int kSweptRows = kTileVectors == 4 &&
                                          sizeof(typename Numbers::Storage) * Numbers::kOfColumn == sizeof(float)
                                      ? kBlockRows
                                      : kScoreRows;

// The tile's rows from row r of a head on.
template <class Numbers>
HEADLIGHT_INLINE void place_rows(const kernels::AttentionSweep& sweep, std::int64_t head, std::int64_t r,
                                 std::int64_t at, SweepScores<Numbers>& tile) {
  constexpr int kSquareColumns = SweepScores<Numbers>::kSquareColumns;
  const kernels::AttentionBlock& block = sweep.block;
  tile.whole_columns = tile.keys == kLanes ? tile.head_dim / kSquareColumns * kSquareColumns : 0;
  tile.query.at = block.query.data + head * sweep.query_head_stride + r * block.query.stride;
  tile.scores = block.scores + (head * block.query.count + r) * block.scores_stride + at;
  tile.rows = smaller(block.query.count - r, kSweptRows<Numbers>);
}

// Scores of all rows of a head and the keys that the tile stands at; `at` is the first of these.
template <class Numbers>
HEADLIGHT_INLINE void score_rows(const kernels::AttentionSweep& sweep, std::int64_t head, std::int64_t at,
                                 SweepScores<Numbers>& tile) {
  constexpr int kMost = kSweptRows<Numbers>;
  const kernels::AttentionBlock& block = sweep.block;
  for (std::int64_t r = 0; r < block.query.count; r += kMost) {
    place_rows(sweep, head, r, at, tile);
    if (tile.whole_columns > 0) {
      tile_of<kMost, 1, SweepScores<Numbers>>(tile.rows, 1)(tile);
    } else {
      add_last_columns(tile, scales_of_rows<Numbers>(tile.scales, tile.scale_stride, tile.keys));
    }
  }
}

// The same of kKeysTogether keys and at most kRowsOfKeyVectors rows.
HEADLIGHT_INLINE void score_keys_together(const kernels::AttentionSweep& sweep, std::int64_t head, std::int64_t at,
                                          SweepScores<StoredInt8>& tile) {
  const kernels::AttentionBlock& block = sweep.block;
  tile.rows = block.query.count;
  tile.query.at = block.query.data + head * sweep.query_head_stride;
  tile.scores = block.scores + head * block.query.count * block.scores_stride + at;
  score_keys_together(tile);
}

// Keys from far memory. Rows of heads side by side are often a power of two apart: they share few sets of the first
// cache level, which has lost their lines before they are read. Those of int8 are few lines for much arithmetic, and
// come from the second level in time.
template <class Numbers>
constexpr bool asks_second_level_alone(bool in_one_piece) {
  return !in_one_piece || kHasScales<Numbers>;
}

template <class Numbers>
void sweep_scores(const kernels::AttentionSweep& sweep, const BlockRange& range) {
  const kernels::AttentionBlock& block = sweep.block;
  const auto keys = keys_of<Numbers>(sweep);
  // Of near memory only keys that follow one another are asked for. Between them lie other heads' else, and the core's
  // own prefetching does better.
  const bool in_one_piece = keys.in_one_piece(block.query.head_dim);
  const bool asks = sweep.from_far_memory || (sweep.from_memory && in_one_piece);
  SweepScores<Numbers> tile{};
  tile.second_level_alone = sweep.from_far_memory && asks_second_level_alone<Numbers>(in_one_piece);
  tile.query.stride = block.query.stride;
  tile.key_stride = keys.stride;
  tile.head_dim = block.query.head_dim;
  tile.scores_stride = block.scores_stride;
  const bool one_by_one =
      asks_one_by_one<Numbers>(sweep, in_one_piece) && block.query.head_dim >= SweepScores<Numbers>::kSquareColumns;
  using Place = typename SweepHalf<Numbers>::Place;
  constexpr std::int64_t kKeys = kSweptKeys<Numbers>;
  for (Place place{range.first / kSweepKeys * kSweepKeys, 0}; place.key < range.last; place = place.next(sweep.heads)) {
    const Place next = place.next(sweep.heads);
    tile.next = asks ? keys.data + keys.offset(next) : nullptr;
    tile.further = sweep.from_far_memory ? keys.offset(next.next(sweep.heads)) - keys.offset(next) : 0;
    const std::int64_t last = smaller(place.key + kKeys, block.keys.count);
    for (std::int64_t at = place.key; at < last; at += kLanes) {
      tile.key = keys.at(at, place.head);
      tile.keys = static_cast<int>(smaller(kLanes, last - at));
      if constexpr (kHasScales<Numbers>) {
        const kernels::Operand& key = block.keys.key;
        tile.scales = key.scales + at * key.scale_stride + place.head * sweep.key_scale_head_stride;
        tile.scale_stride = key.scale_stride;
        if constexpr (kValues.interleaves_bytes) {
          if (last - at == kKeysTogether && block.query.count <= kRowsOfKeyVectors) {
            score_keys_together(sweep, place.head, at, tile);
            break;
          }
        }
      }
      if constexpr (kAsksOneByOne<Numbers>) {
        if (one_by_one && tile.keys == kLanes) {
          place_rows(sweep, place.head, 0, at, tile);
          score_far_keys(tile);
          continue;
        }
      }
      score_rows(sweep, place.head, at, tile);
      if (asks) tile.next += kLanes * keys.stride;
    }
  }
}

// Where head h's own sum of values grows: in its state where that is empty, else beside it.
inline float* value_sums_of(const kernels::AttentionSweep& sweep, std::int64_t head) {
  const kernels::AttentionBlock& block = sweep.block;
  return block.state.first ? block.state.out + head * sweep.state_head_stride * block.state.out_stride
                           : sweep.value_sums + head * block.query.count * block.state.out_stride;
}

// out ← out · keep + share · sums for one head's rows, or their end.
inline void merge_values(const kernels::AttentionBlock& block, const RowFactors& factors, const float* sums) {
  if (block.state.first && block.ends.out == nullptr) return;
  for (std::int64_t r = 0; r < block.query.count; ++r) {
    float* out = block.state.out + r * block.state.out_stride;
    for (std::int64_t d = 0; d < block.keys.value_dim; d += kLanes) {
      Vec sum = load(sums + r * block.state.out_stride + d);
      if (!block.state.first) {
        const Vec kept = load(kept_values(block.state, r, d).at);
        sum = fma(sum, broadcast(factors.share[r]), mul(kept, broadcast(factors.keep[r])));
      }
      if (block.ends.out == nullptr) {
        store(sum, out + d);
      } else {
        store_lanes(ended(sum, row_end(block.ends.sum[r])), block.ends.out + r * block.ends.out_stride + d,
                    static_cast<int>(smaller(kLanes, block.keys.value_dim - d)));
      }
    }
  }
}

// Sums that stay in registers take all keys of a head, one head after another; though heads lie side by side, to follow
// memory is slower but for CPUs and memory that ask for it. More sums go through the keys several times: through few,
// which stay in the first cache level meanwhile. Of long rows side by side fewer than of rows in one piece, as they
// share its sets.
inline constexpr std::int64_t kValueKeys = 32;
inline constexpr std::int64_t kLongRow = 64;

template <class Numbers>
void sweep_values(const kernels::AttentionSweep& sweep, const BlockRange& range, const RowFactors* factors) {
  const kernels::AttentionBlock& block = sweep.block;
  const auto values = values_of<Numbers>(sweep);
  const std::int64_t first = range.first / kSweepKeys * kSweepKeys;
  const std::int64_t row_floats = round_up(block.keys.value_dim, kLanes);
  for (std::int64_t head = 0; head < sweep.heads; ++head) {
    float* sums = value_sums_of(sweep, head);
    for (std::int64_t r = 0; r < block.query.count; ++r) {
      for (std::int64_t d = 0; d < row_floats; d += kLanes) store(zero(), sums + r * block.state.out_stride + d);
    }
  }
  const bool sums_in_registers =
      block.query.count <= kValueRows && row_floats <= sweep_vectors(block.query.count) * kLanes;
  const bool many_keys = row_floats <= kLongRow || values.in_one_piece(block.keys.value_dim);
  const std::int64_t of_more_sums = many_keys ? kValueKeys : kSweepKeys;
  const std::int64_t at_once = sums_in_registers && !sweep.follows_memory ? block.keys.count : of_more_sums;
  const bool one_by_one =
      sums_in_registers && asks_one_by_one<Numbers>(sweep, values.in_one_piece(block.keys.value_dim));
  for (std::int64_t j = first; j < range.last; j += at_once) {
    const std::int64_t last = smaller(j + at_once, range.last);
    for (std::int64_t head = 0; head < sweep.heads; ++head) {
      const auto* next = one_by_one                ? values.at(j, head) + kFarValues
                         : head + 1 == sweep.heads ? values.at(last, 0)
                                                   : values.at(j, head + 1);
      sweep_values_of_keys<Numbers>(block, block.scores + head * block.query.count * block.scores_stride,
                                    values.at(0, head), block.keys.value.scales + head * sweep.value_scale_head_stride,
                                    j, last, value_sums_of(sweep, head), next);
    }
  }
  for (std::int64_t head = 0; head < sweep.heads; ++head) {
    merge_values(block_of(sweep, head), factors[head], value_sums_of(sweep, head));
  }
}

// find_maxima() and weigh_block() where one vector holds all that a row sees and nothing came before: the same bits, in
// two short loops over the rows. One loop, a row at a time from maximum to sum, is one long chain: it loses all of that
// again.
inline void weigh_short_block(const kernels::AttentionBlock& block) {
  const Vec nothing = broadcast(-kInfinity);
  const Vec scale = broadcast(block.modifiers.exponent_scale);
  float maximum[kRowSlots];
  float minus_maximum[kRowSlots];
  for (int r = 0; r < kRowSlots; r += kLanes) store(nothing, maximum + r);
#pragma GCC unroll 2
  for (std::int64_t r = 0; r < block.query.count; ++r) {
    float* scores = block.scores + r * block.scores_stride;
    const Vec before_end = select(mask_first(block.seen.end[r]), load(scores), nothing);
    const Vec seen = select(mask_first(block.seen.begin[r]), nothing, before_end);
    store(seen, scores);
    maximum[r] = max_of_lanes(max(seen, nothing));
  }
  for (std::int64_t r = 0; r < block.query.count; r += kLanes) {
    const Vec of_rows = scaled(load(maximum + r), scale);
    store(of_rows, maximum + r);
    store(select(equal(of_rows, nothing), zero(), neg(of_rows)), minus_maximum + r);
  }
#pragma GCC unroll 2
  for (std::int64_t r = 0; r < block.query.count; ++r) {
    float* scores = block.scores + r * block.scores_stride;
    const bool large = is_large(minus_maximum[r]);
    if (large) scale_scores(scores, {0, 1}, scale, broadcast(minus_maximum[r]));
    const Vec factor = large ? broadcast(1.0f) : scale;
    const Vec weights = exp2_nonpositive(fma(load(scores), factor, broadcast(minus_maximum[r])));
    store(weights, scores);
    block.state.maximum[r] = maximum[r];
    if (block.ends.out != nullptr) {
      block.ends.sum[r] = sum_of_lanes(weights);
    } else {
      store(weights, block.state.sums + r * kLanes);
    }
  }
}

inline BlockRange range_of_sweep(const kernels::AttentionSweep& sweep) { return range_row_by_row(sweep.block); }

// A head's scores become weights. A call: inlined, it would stand twice in every attend_sweep().
[[gnu::noinline]] inline RowFactors weigh_head(const kernels::AttentionBlock& block, const BlockRange& range) {
  RowFactors factors;
  if (block.state.first && block.keys.count <= kLanes && block.modifiers.asked == 0) {
    weigh_short_block(block);
  } else {
    BlockRows rows;
    find_maxima(block, range, nullptr, rows);
    factors = weigh_block(block, rows, false);
  }
  if (block.dropout.numbers != nullptr) drop_block(block);
  return factors;
}

inline void weigh_heads(const kernels::AttentionSweep& sweep, const BlockRange& range, RowFactors* factors) {
  for (std::int64_t head = 0; head < sweep.heads; ++head) factors[head] = weigh_head(block_of(sweep, head), range);
}

inline void attend_sweep(const kernels::AttentionSweep& sweep) noexcept {
  const BlockRange range = range_of_sweep(sweep);
  sweep_scores<StoredFloat32>(sweep, range);
  const bool exactly = wants_exact_values(sweep.block);
  if (sweep.from_memory && !exactly) {
    RowFactors factors[kernels::kMaxSweepHeads];
    weigh_heads(sweep, range, factors);
    return sweep_values<StoredFloat32>(sweep, range, factors);
  }
  for (std::int64_t head = 0; head < sweep.heads; ++head) {
    const kernels::AttentionBlock block = block_of(sweep, head);
    (exactly ? block_values_exactly<StoredFloat32> : block_values<FloatValues>)(block, weigh_head(block, range));
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
