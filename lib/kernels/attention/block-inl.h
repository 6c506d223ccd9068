// One tile of rows against one block of keys: scores, weights, values, and the merge into the running state.
#pragma once

#include "kernels/attention/dropout-inl.h"
#include "kernels/attention/kernels.h"
#include "kernels/attention/pack-inl.h"
#include "kernels/attention/score_modifiers-inl.h"
#include "kernels/attention/scores-inl.h"
#include "kernels/attention/softmax-inl.h"
#include "kernels/attention/state-inl.h"
#include "kernels/attention/values-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// Some row sees the keys [first, last); all of them see every key of [whole_first, whole_last), which are whole panels.
struct BlockRange {
  std::int64_t first;
  std::int64_t last;
  std::int64_t whole_first;
  std::int64_t whole_last;
  bool modified_together;  // of all rows, before their edges are hidden; else each row's with its edges
};

inline BlockRange range_of(const kernels::AttentionBlock& block) {
  BlockRange range{block.keys.count, 0, 0, block.keys.count, can_modify_together(block.modifiers)};
  const std::int64_t rows = block.seen.same_for_all ? 1 : block.query.count;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t begin = block.seen.begin[r];
    const std::int64_t end = block.seen.end[r];
    range.whole_first = larger(range.whole_first, begin);
    range.whole_last = smaller(range.whole_last, begin < end ? end : 0);
    range.first = begin < end ? smaller(range.first, begin) : range.first;
    range.last = begin < end ? larger(range.last, end) : range.last;
  }
  range.whole_first = round_up(range.whole_first, kKeyPanel);
  range.whole_last = range.whole_last / kKeyPanel * kKeyPanel;
  if ((block.modifiers.asked != 0 && !range.modified_together) || range.whole_first > range.whole_last)
    range.whole_first = range.whole_last = range.first;
  return range;
}

// The same where maxima and modifiers are each row's own.
inline BlockRange range_row_by_row(const kernels::AttentionBlock& block) {
  BlockRange range = range_of(block);
  range.whole_first = range.whole_last = range.first;
  range.modified_together = false;
  return range;
}

// The maxima of rows without scores, [kBlockRows][kLanes].
HEADLIGHT_INLINE void clear_maxima(float* maxima) {
  for (int r = 0; r < kBlockRows; ++r) store(broadcast(-kInfinity), maxima + r * kLanes);
}

// All rows' products become their scores: of the keys before the whole panels, in them, and behind. Maxima as below.
inline void modify_range(const kernels::AttentionBlock& block, const BlockRange& range, float* maxima) {
  ScoreRows rows{block.scores, block.scores_stride, block.query.count, range.first / kLanes * kLanes, range.first,
                 nullptr};
  const auto modify_until = [&](std::int64_t end, float* into) {
    rows.end = end;
    rows.maxima = into;
    if (rows.begin < end) modify_together(block.modifiers, rows);
    rows.begin = end;
  };
  if (range.whole_first < range.whole_last) {
    modify_until(range.whole_first, nullptr);
    modify_until(range.whole_last, maxima);
  }
  modify_until(round_up(range.last, kLanes), nullptr);
}

// Scores of all panels in the range; maxima [rows][kLanes] follows those of whole panels.
template <class Keys>
void block_scores(const kernels::AttentionBlock& block, const BlockRange& range, float* maxima) {
  for (std::int64_t j = range.first / kKeyPanel * kKeyPanel; j < range.last; j += kKeyPanel) {
    const bool whole = range.whole_first <= j && j < range.whole_last;
    const std::int64_t skipped = j < range.first ? (range.first - j) / kLanes : 0;
    const std::int64_t vectors = divide_up(smaller(kKeyPanel, range.last - j), kLanes);
    const std::int64_t from = skipped * kLanes;
    const ScoreTile<Keys> tile{
        {block.query.data, block.query.stride},
        {block.keys.key.floats() + j * block.query.head_dim + from, smaller(kKeyPanel, block.keys.count - j)},
        block.query.head_dim,
        {block.scores + j + from, block.scores_stride, whole && !range.modified_together ? maxima : nullptr}};
    score_panel<Keys>(tile, block.query.count, vectors - skipped);
  }
  if (range.modified_together) modify_range(block, range, maxima);
}

// The rows' scores, ready to be weighed: where they lie, and the largest one (−inf where there are none).
struct BlockRows {
  VectorRange vectors[kRowSlots];
  float maximum[kRowSlots];
};

inline void find_maxima(const kernels::AttentionBlock& block, const BlockRange& range, const float* maxima,
                        BlockRows& rows) {
  for (int r = 0; r < kRowSlots; ++r) rows.maximum[r] = -kInfinity;
  for (std::int64_t r = 0; r < block.query.count; ++r) {
    rows.vectors[r] = {};
    if (block.seen.begin[r] >= block.seen.end[r]) continue;
    float* scores = block.scores + r * block.scores_stride;
    if (block.modifiers.asked != 0 && !range.modified_together) {
      rows.vectors[r] = vectors_of(block.seen.begin[r], block.seen.end[r]);
      rows.maximum[r] = apply_modifiers(block.modifiers, r, block.seen.begin[r], block.seen.end[r], scores);
      continue;
    }
    const VectorRange vectors = hide_edges(scores, block.seen.begin[r], block.seen.end[r]);
    Vec maximum = broadcast(-kInfinity);
    if (range.whole_first < range.whole_last) {
      maximum = load(maxima + r * kLanes);
      maximum = maximum_with(maximum, scores, {vectors.begin, range.whole_first / kLanes});
      maximum = maximum_with(maximum, scores, {range.whole_last / kLanes, vectors.end});
    } else {
      maximum = maximum_with(maximum, scores, vectors);
    }
    rows.vectors[r] = vectors;
    rows.maximum[r] = max_of_lanes(maximum);
  }
}

// The panel of values that begins with `column`: those of iteration j, one key or two, at j · stride.
template <class Numbers>
struct ValuePanel {
  const typename Numbers::Storage* data;
  std::int64_t stride;
};
template <class Numbers, int kKeys = 1>
HEADLIGHT_INLINE ValuePanel<Numbers> value_panel(const kernels::KeyValueBlock& keys, std::int64_t column) {
  const auto* const data = keys.value.numbers<typename Numbers::Storage>();
  if (keys.value.layout == kernels::OperandLayout::rows) return {data + column, keys.value.stride};
  return {data + column * divide_up(keys.count, kKeys), smaller(kValuePanel, round_up(keys.value_dim, kLanes))};
}

// The keys that all of the rows r … r + rows − 1 see, in whole iterations of kKeys, or where there are none an empty
// range behind all that any of them sees.
struct CommonKeys {
  std::int64_t from;
  std::int64_t to;
  bool same_for_all;
};
template <int kKeys>
HEADLIGHT_INLINE CommonKeys common_keys(const kernels::AttentionBlock& block, std::int64_t r, std::int64_t rows) {
  const kernels::SeenKeys& seen = block.seen;
  CommonKeys keys{seen.begin[r], seen.end[r], seen.same_for_all};
  // The last iteration of an odd number of keys is whole: what stands for the next key are zeros, and so is its weight.
  if (kKeys > 1 && keys.same_for_all && keys.to == block.keys.count) keys.to = round_up(keys.to, kKeys);
  if (seen.same_for_all && (kKeys == 1 || (keys.from % kKeys == 0 && keys.to % kKeys == 0))) return keys;
  keys.same_for_all = false;
  std::int64_t last = keys.to;
  for (std::int64_t row = r + 1; row < r + rows; ++row) {
    keys.from = larger(keys.from, seen.begin[row]);
    keys.to = smaller(keys.to, seen.end[row]);
    last = larger(last, seen.end[row]);
  }
  if constexpr (kKeys > 1) {
    keys.from = round_up(keys.from, kKeys);
    keys.to = keys.to / kKeys * kKeys;
    last = round_up(last, kKeys);
  }
  if (keys.from >= keys.to) keys.from = keys.to = last;
  return keys;
}

// Columns [column, column + columns) of one value panel. kPartial: one vector, which ends where the values do.
template <class Values, bool kPartial>
void panel_values(const kernels::AttentionBlock& block, const RowFactors& factors, std::int64_t column,
                  std::int64_t columns) {
  using Tile = typename Values::template Tile<kPartial>;
  constexpr int kKeys = Values::kKeys;
  const std::int64_t vectors = divide_up(columns, kLanes);
  const int last_lanes = static_cast<int>(columns - (vectors - 1) * kLanes);
  const bool all_rows = !kPartial && kNarrowVectors > 1 && block.query.count == kBlockRows && vectors == kNarrowVectors;
  const std::int64_t group_rows = all_rows ? kBlockRows : rows_of_group<kValueRows>(block.query.count);
  const auto value = value_panel<StoredFloat32, kKeys>(block.keys, column);
  for (std::int64_t r = 0; r < block.query.count; r += group_rows) {
    const std::int64_t rows = smaller(group_rows, block.query.count - r);
    const CommonKeys keys = common_keys<kKeys>(block, r, rows);
    const float* const at = value.data + keys.from / kKeys * value.stride;
    const Tile tile{
        .a = {block.scores + r * block.scores_stride + keys.from / kKeys, block.scores_stride},
        .b = {at, value.stride, 0, last_lanes},
        .depth = (keys.to - keys.from) / kKeys,
        .finish = {
            .seen_begin = block.seen.begin + r,
            .seen_end = block.seen.end + r,
            .from = keys.from,
            .to = keys.to,
            .same_keys = keys.same_for_all,
            .first = block.state.first,
            .kept = kept_values(block.state, r, column),
            .out = block.state.out + r * block.state.out_stride + column,
            .out_stride = block.state.out_stride,
            .keep = factors.keep + r,
            .share = factors.share + r,
            .final_out = block.ends.out == nullptr ? nullptr : block.ends.out + r * block.ends.out_stride + column,
            .final_out_stride = block.ends.out_stride,
            .final_sum = block.ends.sum + r,
            .final_lanes = last_lanes}};
    const auto run = all_rows ? &Tile::template run<kBlockRows, kNarrowVectors>
                              : value_tile_of<Values::template Tile, kPartial>(rows, vectors * kLanes);
    run(tile);
  }
}

template <class Values>
void block_values(const kernels::AttentionBlock& block, const RowFactors& factors) {
  const std::int64_t whole = block.keys.value.layout == kernels::OperandLayout::panels
                                 ? block.keys.value_dim
                                 : block.keys.value_dim / kLanes * kLanes;
  for (std::int64_t column = 0; column < whole; column += kValuePanel) {
    panel_values<Values, false>(block, factors, column, smaller(kValuePanel, whole - column));
  }
  if constexpr (!Values::kPanelsOnly && kLanes > 1) {
    if (whole < block.keys.value_dim) panel_values<Values, true>(block, factors, whole, block.keys.value_dim - whole);
  }
}

// `count` sums of row r of the block, from `column` on, into the running state or to their end.
inline void merge_vector(const kernels::AttentionBlock& block, const RowFactors& factors, std::int64_t r,
                         std::int64_t column, int count, Vec sum) {
  if (!block.state.first) {
    const Vec kept = load(kept_values(block.state, r, column).at);
    sum = fma(sum, broadcast(factors.share[r]), mul(kept, broadcast(factors.keep[r])));
  }
  if (block.ends.out == nullptr) {
    store(sum, block.state.out + r * block.state.out_stride + column);
  } else {
    store_lanes(ended(sum, row_end(block.ends.sum[r])), block.ends.out + r * block.ends.out_stride + column, count);
  }
}

template <class Numbers>
void block_values_exactly(const kernels::AttentionBlock& block, const RowFactors& factors) {
  const kernels::AttentionRowMasks& masks = block.modifiers.masks;
  for (std::int64_t r = 0; r < block.query.count; ++r) {
    const std::uint8_t* mask = masks.mask[r] + block.modifiers.first_key * masks.mask_key_stride;
    for (std::int64_t column = 0; column < block.keys.value_dim; column += kLanes) {
      const std::int64_t in_panel = column % kValuePanel;
      const auto value = value_panel<Numbers>(block.keys, column - in_panel);
      const int count = static_cast<int>(smaller(kLanes, block.keys.value_dim - column));
      const Vec sum =
          exact_values<Numbers>(block.scores + r * block.scores_stride, value.data + in_panel, value.stride,
                                block.keys.value.scales, block.keys.value.scale_stride, count, block.seen.begin[r],
                                block.seen.end[r], mask, masks.mask_key_stride, masks.attend);
      merge_vector(block, factors, r, column, count, sum);
    }
  }
}

// What will be wanted soon and no hardware prefetcher follows: the queries of the rows after these, likely to be next,
// whose first use would wait for all of them, and the lines of `out`, which a write that finds them in no cache reads
// first. Asked for row by row between the weights of other rows, since a core that waits for many lines at once stands
// still. Inline, or g++ finds a function without effects and leaves its calls out.
HEADLIGHT_INLINE void prefetch_rows(const kernels::AttentionBlock& block, std::int64_t r) {
  const float* query = block.query.data + (r + block.query.count) * block.query.stride;
  for (std::int64_t d = 0; d < block.query.head_dim; d += kFloatsOfLine) __builtin_prefetch(query + d);
  if (block.ends.out == nullptr) return;
  const float* out = block.ends.out + r * block.ends.out_stride;
  for (std::int64_t d = 0; d < block.keys.value_dim; d += kFloatsOfLine) __builtin_prefetch(out + d, 1);
}

// Between two blocks of keys the states of many other rows passed through the first cache level.
HEADLIGHT_INLINE void prefetch_state(const kernels::AttentionBlock& block) {
  for (std::int64_t d = 0; d < block.query.count * block.state.out_stride; d += kFloatsOfLine)
    __builtin_prefetch(block.state.out + d);
}

// Scores become weights; the running maximum and sums take in the block's. Returns how its values must be weighed.
// `ahead`: what follows is asked for on the way.
template <class Weights = FloatWeights>
inline RowFactors weigh_block(const kernels::AttentionBlock& block, const BlockRows& rows, bool ahead) {
  const Vec scale = broadcast(block.modifiers.exponent_scale);
  const bool low = block.modifiers.may_be_low;
  const Vec of_sink = select(mask_first(1), broadcast(1.0f), zero());
  float running[kRowSlots];
  for (int r = 0; r < kRowSlots; r += kLanes) store(broadcast(-kInfinity), running + r);
  if (!block.state.first) {
#pragma GCC unroll 1
    for (std::int64_t r = 0; r < block.query.count; ++r) running[r] = block.state.maximum[r];
  }
  float minus_maximum[kRowSlots];
  RowFactors factors;
  for (std::int64_t r = 0; r < block.query.count; r += kLanes) {
    const Vec of_block = scaled(load(rows.maximum + r), scale);
    const MergeWeights weights = merge_weights(load(running + r), of_block);
    store(select(equal(of_block, broadcast(-kInfinity)), zero(), neg(of_block)), minus_maximum + r);
    store(weights.maximum, running + r);
    store(weights.keep, factors.keep + r);
    store(weights.share, factors.share + r);
  }
  for (std::int64_t r = 0; r < block.query.count; ++r) {
    if (ahead) prefetch_rows(block, r);
    float* scores = block.scores + r * block.scores_stride;
    const bool large = is_large(minus_maximum[r]);
    const Vec minus = broadcast(minus_maximum[r]);
    if (large) scale_scores(scores, rows.vectors[r], scale, minus);
    Vec sum;
    if (low && !large) {
      sum = weigh_low<Weights>(scores, rows.vectors[r], scale, minus);
    } else {
      sum = weigh<Weights>(scores, rows.vectors[r], large ? broadcast(1.0f) : scale, minus);
    }
    float* sums = block.state.sums + r * kLanes;
    if (!block.state.first) {
      const Vec kept = block.state.sink_only ? of_sink : load(sums);
      sum = fma(sum, broadcast(factors.share[r]), mul(kept, broadcast(factors.keep[r])));
    }
    if (block.ends.out != nullptr) {
      block.ends.sum[r] = sum_of_lanes(sum);
    } else {
      store(sum, sums);
    }
    block.state.maximum[r] = running[r];
  }
  return factors;
}

inline void drop_block(const kernels::AttentionBlock& block) {
  for (std::int64_t r = 0; r < block.query.count; ++r) {
    drop_weights(*block.dropout.numbers, block.dropout.places[r], block.dropout.first_key, block.seen.begin[r],
                 block.seen.end[r], block.scores + r * block.scores_stride);
  }
}

// The weights of a block, and how its values must be weighed; `rows`: where each row's lie. With dropout they are
// floats, whatever they are to become.
template <class Keys, class Weights = FloatWeights>
HEADLIGHT_INLINE RowFactors weigh_keys(const kernels::AttentionBlock& block, BlockRows& rows) {
  if (!block.state.first && !block.state.sink_only) prefetch_state(block);
  float maxima[kBlockRows * kLanes];
  clear_maxima(maxima);
  const BlockRange range = range_of(block);
  block_scores<Keys>(block, range, maxima);
  find_maxima(block, range, maxima, rows);
  if (block.dropout.numbers == nullptr) return weigh_block<Weights>(block, rows, true);
  const RowFactors factors = weigh_block(block, rows, true);
  drop_block(block);
  return factors;
}

// Whether hidden values must be left out one by one.
inline bool wants_exact_values(const kernels::AttentionBlock& block) {
  return block.keys.values_not_finite && block.modifiers.masks.mask != nullptr;
}

inline void attend_block(const kernels::AttentionBlock& block) noexcept {
  BlockRows rows;
  const RowFactors factors = weigh_keys<TileVectors>(block, rows);
  if (wants_exact_values(block)) {
    block_values_exactly<StoredFloat32>(block, factors);
  } else {
    block_values<FloatValues>(block, factors);
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
