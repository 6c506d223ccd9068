// One tile of rows against one block of keys: scores, weights, values, and the merge into the running state.
#pragma once

#include "kernels/attention_dropout-inl.h"
#include "kernels/attention_kernels.h"
#include "kernels/attention_masks-inl.h"
#include "kernels/attention_pack-inl.h"
#include "kernels/attention_scores-inl.h"
#include "kernels/attention_softmax-inl.h"
#include "kernels/attention_state-inl.h"
#include "kernels/attention_values-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// Some row sees the keys [first, last); all of them see every key of [whole_first, whole_last), which are whole panels.
struct BlockRange {
  std::int64_t first;
  std::int64_t last;
  std::int64_t whole_first;
  std::int64_t whole_last;
};

inline BlockRange range_of(const kernels::AttentionBlock& block) {
  BlockRange range{block.keys, 0, 0, block.keys};
  const std::int64_t rows = block.same_keys ? 1 : block.rows;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t begin = block.begin[r];
    const std::int64_t end = block.end[r];
    range.whole_first = larger(range.whole_first, begin);
    range.whole_last = smaller(range.whole_last, begin < end ? end : 0);
    range.first = begin < end ? smaller(range.first, begin) : range.first;
    range.last = begin < end ? larger(range.last, end) : range.last;
  }
  range.whole_first = round_up(range.whole_first, kKeyPanel);
  range.whole_last = range.whole_last / kKeyPanel * kKeyPanel;
  if (has_masks(block.masks) || range.whole_first > range.whole_last)
    range.whole_first = range.whole_last = range.first;
  return range;
}

// The maxima of rows without scores, [kBlockRows][kLanes].
HEADLIGHT_INLINE void clear_maxima(float* maxima) {
  for (int r = 0; r < kBlockRows; ++r) store(broadcast(-kInfinity), maxima + r * kLanes);
}

// Scores of all panels in the range; maxima [rows][kLanes] follows those of whole panels.
inline void block_scores(const kernels::AttentionBlock& block, const BlockRange& range, float* maxima) {
  float ignored[kBlockRows * kLanes];
  clear_maxima(ignored);
  for (std::int64_t j = range.first / kKeyPanel * kKeyPanel; j < range.last; j += kKeyPanel) {
    const bool whole = range.whole_first <= j && j < range.whole_last;
    const std::int64_t skipped = j < range.first ? (range.first - j) / kLanes : 0;
    const std::int64_t vectors = divide_up(smaller(kKeyPanel, range.last - j), kLanes);
    const std::int64_t from = skipped * kLanes;
    const ScorePanel panel{block.query,
                           block.query_stride,
                           block.key_panels + j * block.head_dim + from,
                           smaller(kKeyPanel, block.keys - j),
                           block.head_dim,
                           block.scores + j + from,
                           block.scores_stride,
                           whole ? maxima : ignored};
    score_panel(panel, block.rows, vectors - skipped);
  }
}

// The rows' scores, ready to be weighed: where they lie, and the largest one (−inf where there are none).
struct BlockRows {
  VectorRange vectors[kRowSlots];
  float maximum[kRowSlots];
};

inline void find_maxima(const kernels::AttentionBlock& block, const BlockRange& range, const float* maxima,
                        BlockRows& rows) {
  for (int r = 0; r < kRowSlots; ++r) rows.maximum[r] = -kInfinity;
  for (std::int64_t r = 0; r < block.rows; ++r) {
    rows.vectors[r] = {};
    if (block.begin[r] >= block.end[r]) continue;
    float* scores = block.scores + r * block.scores_stride;
    if (has_masks(block.masks)) {
      rows.vectors[r] = vectors_of(block.begin[r], block.end[r]);
      rows.maximum[r] = max_of_lanes(
          apply_masks(block.masks, r, block.first_key, block.begin[r], block.end[r], block.exponent_scale, scores));
      continue;
    }
    const VectorRange vectors = hide_edges(scores, block.begin[r], block.end[r]);
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

// What the values are weighed by, one number for each row.
struct RowFactors {
  float keep[kRowSlots];
  float share[kRowSlots];
};

// Columns [column, column + columns) of one value panel. `partial`: one vector, which ends where the values do.
inline void panel_values(const kernels::AttentionBlock& block, const RowFactors& factors, std::int64_t column,
                         std::int64_t columns, bool partial) {
  const std::int64_t vectors = divide_up(columns, kLanes);
  const bool all_rows = block.rows == kBlockRows && vectors == kNarrowVectors && !partial;
  const std::int64_t groups = all_rows ? 1 : divide_up(block.rows, kValueRows);
  const std::int64_t group_rows = divide_up(block.rows, groups);
  ValueTile tile{};
  tile.weights_stride = block.scores_stride;
  tile.value = block.value + column / kValuePanel * block.value_panel_stride + column % kValuePanel;
  tile.value_stride = block.value_stride;
  tile.out_stride = block.out_stride;
  tile.final_out_stride = block.final_out_stride;
  tile.same_keys = block.same_keys;
  tile.first = block.first;
  tile.last_lanes = static_cast<int>(columns - (vectors - 1) * kLanes);
  for (std::int64_t r = 0; r < block.rows; r += group_rows) {
    tile.weights = block.scores + r * block.scores_stride;
    tile.begin = block.begin + r;
    tile.end = block.end + r;
    tile.out = block.out + r * block.out_stride + column;
    tile.keep = factors.keep + r;
    tile.share = factors.share + r;
    if (block.final_out != nullptr) tile.final_out = block.final_out + r * block.final_out_stride + column;
    tile.final_sum = block.final_sum + r;
    const std::int64_t rows = smaller(group_rows, block.rows - r);
    const auto run =
        all_rows ? ValueTile::run<kBlockRows, kNarrowVectors, false> : value_tile_of<ValueTile>(rows, vectors, partial);
    run(tile);
  }
}

inline void block_values(const kernels::AttentionBlock& block, const RowFactors& factors) {
  const std::int64_t whole = block.values_padded ? block.value_dim : block.value_dim / kLanes * kLanes;
  for (std::int64_t column = 0; column < whole; column += kValuePanel) {
    panel_values(block, factors, column, smaller(kValuePanel, whole - column), false);
  }
  if (whole < block.value_dim) panel_values(block, factors, whole, block.value_dim - whole, true);
}

inline void block_values_exactly(const kernels::AttentionBlock& block, const RowFactors& factors) {
  const kernels::AttentionRowMasks& masks = block.masks;
  for (std::int64_t r = 0; r < block.rows; ++r) {
    const std::uint8_t* mask = masks.mask[r] + block.first_key * masks.mask_key_stride;
    for (std::int64_t column = 0; column < block.value_dim; column += kLanes) {
      const float* value = block.value + column / kValuePanel * block.value_panel_stride + column % kValuePanel;
      const int count = static_cast<int>(smaller(kLanes, block.value_dim - column));
      Vec sum = exact_values(block.scores + r * block.scores_stride, value, block.value_stride, count, block.begin[r],
                             block.end[r], mask, masks.mask_key_stride, masks.attend);
      float* out = block.out + r * block.out_stride + column;
      if (!block.first) sum = fma(sum, broadcast(factors.share[r]), mul(load(out), broadcast(factors.keep[r])));
      if (block.final_out == nullptr) {
        store(sum, out);
      } else {
        store_lanes(ended(sum, row_end(block.final_sum[r])), block.final_out + r * block.final_out_stride + column,
                    count);
      }
    }
  }
}

// What will be wanted soon and no hardware prefetcher follows: the queries of the rows after these, likely to be next,
// whose first use would wait for all of them ((32, 100, 8 × 64) 6 % faster), and the lines of `out`, which a write that
// finds them in no cache reads first. Asked for row by row between the weights of other rows, since a core that waits
// for many lines at once stands still (12 × 128 rows, D = 64 and 128, 2 % faster than all before the block's scores).
// Inline, or g++ finds a function without effects and leaves its calls out.
HEADLIGHT_INLINE void prefetch_rows(const kernels::AttentionBlock& block, std::int64_t r) {
  const float* query = block.query + (r + block.rows) * block.query_stride;
  for (std::int64_t d = 0; d < block.head_dim; d += kFloatsOfLine) __builtin_prefetch(query + d);
  if (block.final_out == nullptr) return;
  const float* out = block.final_out + r * block.final_out_stride;
  for (std::int64_t d = 0; d < block.value_dim; d += kFloatsOfLine) __builtin_prefetch(out + d, 1);
}

// Between two blocks of keys the states of many other rows passed through the first cache level.
HEADLIGHT_INLINE void prefetch_state(const kernels::AttentionBlock& block) {
  for (std::int64_t d = 0; d < block.rows * block.out_stride; d += kFloatsOfLine) __builtin_prefetch(block.out + d);
}

// Scores become weights; the running maximum and sums take in the block's. Returns how its values must be weighed.
// `ahead`: what follows is asked for on the way.
inline RowFactors weigh_block(const kernels::AttentionBlock& block, const BlockRows& rows, bool ahead) {
  const Vec scale = broadcast(scale_after_masks(block.masks, block.exponent_scale));
  float running[kRowSlots];
  for (int r = 0; r < kRowSlots; ++r) running[r] = block.first || r >= block.rows ? -kInfinity : block.maximum[r];
  float minus_maximum[kRowSlots];
  RowFactors factors;
  for (int r = 0; r < kRowSlots; r += kLanes) {
    const Vec of_block = scaled(load(rows.maximum + r), scale);
    const MergeWeights weights = merge_weights(load(running + r), of_block);
    store(select(equal(of_block, broadcast(-kInfinity)), zero(), neg(of_block)), minus_maximum + r);
    store(weights.maximum, running + r);
    store(weights.keep, factors.keep + r);
    store(weights.share, factors.share + r);
  }
  for (std::int64_t r = 0; r < block.rows; ++r) {
    if (ahead) prefetch_rows(block, r);
    float* scores = block.scores + r * block.scores_stride;
    const bool large = is_large(minus_maximum[r]);
    if (large) scale_scores(scores, rows.vectors[r], scale);
    Vec sum = weigh(scores, rows.vectors[r], large ? broadcast(1.0f) : scale, broadcast(minus_maximum[r]));
    float* sums = block.sums + r * kLanes;
    if (!block.first) sum = fma(sum, broadcast(factors.share[r]), mul(load(sums), broadcast(factors.keep[r])));
    if (block.final_out != nullptr) {
      block.final_sum[r] = sum_of_lanes(sum);
    } else {
      store(sum, sums);
    }
    block.maximum[r] = running[r];
  }
  return factors;
}

inline void drop_block(const kernels::AttentionBlock& block) {
  for (std::int64_t r = 0; r < block.rows; ++r) {
    drop_weights(*block.dropout, block.dropout_places[r], block.sequence_key, block.begin[r], block.end[r],
                 block.scores + r * block.scores_stride);
  }
}

inline void attend_block(const kernels::AttentionBlock& block) {
  if (!block.first) prefetch_state(block);
  float maxima[kBlockRows * kLanes];
  clear_maxima(maxima);
  const BlockRange range = range_of(block);
  block_scores(block, range, maxima);
  BlockRows rows;
  find_maxima(block, range, maxima, rows);
  const RowFactors factors = weigh_block(block, rows, true);
  if (block.dropout != nullptr) drop_block(block);
  if (block.values_not_finite && block.masks.mask != nullptr) {
    block_values_exactly(block, factors);
  } else {
    block_values(block, factors);
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
