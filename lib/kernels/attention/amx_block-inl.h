// attend_block() over tile registers: rows in groups of 32, keys in blocks.
//
// Tile registers and vectors work at the same time on different items, each a group of rows and a block of keys: while
// the scores of one become weights, the values of the one before it and the scores of the next one are multiplied. Two
// items' scores, 36 KiB, are all that the first cache level has room for, so keys come in blocks of 128.
#pragma once

#include "kernels/attention/amx_softmax-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// The keys of a call that some of a group's rows see, [first, last), and that all of them do.
struct GroupKeys {
  std::int64_t first;
  std::int64_t last;
  std::int64_t whole_first;
  std::int64_t whole_last;
};
inline void find_keys(const kernels::AttentionBlock& group, GroupKeys& found) {
  GroupKeys keys{group.keys.count, 0, 0, group.keys.count};
  const std::int64_t rows = group.seen.same_for_all ? 1 : group.query.count;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t begin = group.seen.begin[r], end = group.seen.end[r];
    const bool sees_any = begin < end;
    keys.first = sees_any ? smaller(keys.first, begin) : keys.first;
    keys.last = sees_any ? larger(keys.last, end) : keys.last;
    keys.whole_first = larger(keys.whole_first, begin);
    keys.whole_last = smaller(keys.whole_last, sees_any ? end : 0);
  }
  found.first = keys.first;
  found.last = keys.last;
  found.whole_first = keys.whole_first;
  found.whole_last = keys.whole_last;
}

// Where a call keeps what it works on: memory of tile_block_floats() floats.
struct CallMemory {
  float* scores[2];   // of two items, [32][kTileScoresStride]; weights where they lie
  float* queries[2];  // of two groups of rows, [32][words]
  TileSums sums;      // of values, [32][stride]

  CallMemory(float* at, std::int64_t words, std::int64_t value_dim) {
    for (float*& to : scores) {
      to = at;
      at += kTileRows * kTileScoresStride;
    }
    for (float*& to : queries) {
      to = at;
      at += kTileRows * words;
    }
    sums = {at, kernels::tile_sums_stride(value_dim)};
  }
};

// Rows that see no key of the call: as one whose keys are all hidden.
inline void attend_nothing(const kernels::AttentionBlock& group, const CallMemory& memory) {
  const kernels::RowStates& state = group.state;
  const TileItem item{&group, 0, 0, true, state.first, state.sink_only, true};
  TileFactors factors;
  for (std::int64_t r = 0; r < group.query.count; r += kLanes) {
    const int count = static_cast<int>(smaller(group.query.count - r, kLanes));
    const Vec nothing = broadcast(-kInfinity);
    const MergeWeights weights = merge_weights(state.first ? nothing : load_lanes(state.maximum + r, count), nothing);
    store_lanes(weights.maximum, state.maximum + r, count);
    store(weights.keep, factors.keep + r);
    store(weights.share, factors.share + r);
  }
  for (std::int64_t r = 0; r < group.query.count; ++r) {
    merge_row_sum(item, r, factors, zero());
    for (std::int64_t d = 0; d < group.keys.value_dim; d += kLanes) {
      store(zero(), memory.sums.at + r * memory.sums.stride + d);
    }
  }
  merge_tile_rows(item, factors, memory.sums);
}

// The items of a call that have keys, in order; attends to rows that have none on the way.
class TileItems {
 public:
  TileItems(const kernels::AttentionBlock& block, const CallMemory& memory) : block_(block), memory_(memory) {}

  // False where there are no more. An item is good until the third one after it is asked for.
  bool next(TileItem& item) {
    if (block_first_ >= keys_.last && !next_group()) return false;
    item.rows = &groups_[group_];
    item.is_first = is_first_ && item.rows->state.first;
    item.is_sink = is_first_ && item.rows->state.sink_only;
    item.first = larger(keys_.first, block_first_) / kKeysAtOnce * kKeysAtOnce;
    block_first_ += kKeysOfTileBlock;
    item.last = kernels::filled_up(smaller(keys_.last, block_first_), kKeysAtOnce);
    item.all_seen = keys_.whole_first <= item.first && item.last <= keys_.whole_last;
    item.is_last = block_first_ >= keys_.last;
    is_first_ = false;
    return true;
  }

  // The queries of the rows behind the last item's, for whoever asks for them in time; those of the last where there
  // are none.
  [[nodiscard]] const float* next_queries() const {
    return block_.query.data + smaller(row_, block_.query.count - 1) * block_.query.stride;
  }

 private:
  static constexpr int kGroups = 4;  // three items' and one more

  bool next_group() {
    while (row_ < block_.query.count) {
      const std::int64_t first = row_;
      row_ = smaller(row_ + kTileRows, block_.query.count);
      const int free = (group_ + 1) % kGroups;
      kernels::AttentionBlock& group = groups_[free];
      take_rows(block_, first, row_, group);
      find_keys(group, keys_);
      if (keys_.first < keys_.last) {
        group_ = free;
        block_first_ = keys_.first / kKeysOfTileBlock * kKeysOfTileBlock;
        is_first_ = true;
        return true;
      }
      if (group.state.first || group.state.sink_only || group.ends.out != nullptr) attend_nothing(group, memory_);
    }
    return false;
  }

  const kernels::AttentionBlock& block_;
  const CallMemory& memory_;
  kernels::AttentionBlock groups_[kGroups];
  int group_ = 0;
  bool is_first_ = true;
  GroupKeys keys_{};
  std::int64_t row_ = 0;
  std::int64_t block_first_ = 0;
};

// A group's queries side by side, zeros for rows that are not there.
inline void take_queries(const kernels::QueryRows& query, float* to) {
  for (std::int64_t r = 0; r < kTileRows; ++r, to += query.head_dim) {
    for (std::int64_t d = 0; d < query.head_dim; d += kLanes) {
      store(r < query.count ? load(query.data + r * query.stride + d) : zero(), to + d);
    }
  }
}

HEADLIGHT_INLINE ScoreIterations score_iterations(const TileItem& item, const float* queries, float* scores) {
  const std::int64_t words = item.rows->query.head_dim;
  return {queries, words, item.rows->keys.key.words() + item.first * words, item.keys(), {scores, kTileScoresStride}};
}

HEADLIGHT_INLINE ValueIterations value_iterations(const TileItem& item, const float* weights, const TileSums& sums) {
  const kernels::KeyValueBlock& keys = item.rows->keys;
  return {weights,
          kTileScoresStride,
          tile_values(keys, 0) + item.first / 2 * kAmxWords,
          kernels::filled_up(keys.count, kKeysAtOnce) / 2 * kAmxWords,
          divide_up(keys.value_dim, kAmxWords),
          item.keys(),
          sums};
}

// One item's scores become weights, beside the values of the one before and the scores of the next, whose queries are
// given. What the iterations are made of is worked out here: structures that are copied right after they were written
// make the core wait for all stores before them.
template <std::int64_t kKeys>
void run_turn(const TileItem& before, const TileItem& item, const TileItem& next, const CallMemory& memory, int side,
              const float* queries, TileFactors (&factors)[2], const float* queries_ahead) {
  float* const scores = memory.scores[side];
  const int other = side ^ 1;
  const ValueIterations values = value_iterations(before, memory.scores[other], memory.sums);
  const ScoreIterations score = score_iterations(next, queries, memory.scores[other]);
  if (!item.all_seen) hide_unseen(item, scores);
  const std::int64_t upper = smaller(item.rows->query.count, kSubRows);
  find_factors<kKeys>(item, 0, scores, factors[side]);
  WeighRows<kKeys> rows{item, scores, factors[side], queries_ahead, 0, upper, values.count()};
  values.run(rows);
  rows.rest();
  if (upper < item.rows->query.count) find_factors<kKeys>(item, upper, scores, factors[side]);
  if (values.keys > 0) merge_tile_rows(before, factors[other], memory.sums);
  rows.end = item.rows->query.count;
  rows.iterations = score.count();
  write_memory();
  score.run(rows);
  rows.rest();
}

// One without keys.
inline void clear_item(TileItem& item, const kernels::AttentionBlock* rows) {
  item.rows = rows;
  item.first = item.last = 0;
}

// Neither modifiers nor dropout, and all values of the iterations are finite.
inline void attend_in_turns(const kernels::AttentionBlock& block, const CallMemory& memory) {
  AmxRegisters registers;
  registers.configure(kTileRows);
  TileItems all(block, memory);
  TileItem items[3];
  TileFactors factors[2];
  if (!all.next(items[0])) return;
  int group = 0, side = 0;
  take_queries(items[0].rows->query, memory.queries[0]);
  write_memory();
  Nothing nothing;
  score_iterations(items[0], memory.queries[0], memory.scores[0]).run(nothing);
  TileItem *before = &items[2], *item = &items[0], *next = &items[1];
  clear_item(*before, item->rows);
  for (bool is_more = true; is_more;) {
    is_more = all.next(*next);
    if (!is_more) {
      clear_item(*next, item->rows);
    } else if (next->rows != item->rows) {
      group ^= 1;
      take_queries(next->rows->query, memory.queries[group]);
    }
    const auto turn = item->keys() == kKeysOfTileBlock ? &run_turn<kKeysOfTileBlock> : &run_turn<0>;
    turn(*before, *item, *next, memory, side, memory.queries[group], factors, all.next_queries());
    TileItem* const free = before;
    before = item;
    item = next;
    next = free;
    side ^= 1;
  }
  value_iterations(*before, memory.scores[side ^ 1], memory.sums).run(nothing);
  merge_tile_rows(*before, factors[side ^ 1], memory.sums);
}

// An item as a block of keys by itself; `begin` and `end` have room for its rows.
inline kernels::AttentionBlock block_of_item(const TileItem& item, const CallMemory& memory, std::int32_t* begin,
                                             std::int32_t* end) {
  kernels::AttentionBlock block = *item.rows;
  const std::int64_t first = item.first / kKeysOfTileBlock * kKeysOfTileBlock;
  for (std::int64_t r = 0; r < block.query.count; ++r) {
    const auto in_block = [&](std::int64_t key) {
      return static_cast<std::int32_t>(smaller(larger(key - first, 0), item.last - first));
    };
    begin[r] = in_block(block.seen.begin[r]);
    end[r] = in_block(block.seen.end[r]);
  }
  block.seen.begin = begin;
  block.seen.end = end;
  block.keys.key.data = block.keys.key.words() + first * block.query.head_dim;
  block.keys.value.data = block.keys.value.words() + first / 2 * kAmxWords;
  block.modifiers.first_key += first;
  block.dropout.first_key += first;
  block.scores = memory.scores[0];
  block.scores_stride = kTileScoresStride;
  block.state.first = item.is_first;
  block.state.sink_only = item.is_sink;
  if (!item.is_last) block.ends.out = nullptr;
  return block;
}

// attend_block().
inline void attend_blocks(const kernels::AttentionBlock& block) noexcept {
  const CallMemory memory(block.scores, block.query.head_dim, block.keys.value_dim);
  if (block.modifiers.asked == 0 && block.dropout.numbers == nullptr && !block.keys.values_not_finite)
    return attend_in_turns(block, memory);
  TileItems all(block, memory);
  TileItem item;
  std::int32_t begin[kTileRows], end[kTileRows];
  while (all.next(item)) attend_tiles(block_of_item(item, memory, begin, end));
}

}  // namespace headlight::HEADLIGHT_TARGET
