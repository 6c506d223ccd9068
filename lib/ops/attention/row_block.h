// Consecutive query rows of one sequence, worked through the kernels a tile of rows and a key block at a time.
#pragma once

#include <cstdint>
#include <limits>

#include "ops/attention/masks.h"
#include "ops/attention/row_results.h"
#include "ops/attention/rows.h"

namespace headlight::ops {

// State of consecutive rows: [rows], [rows][lanes], [rows][padded value_dim]; those of the next head lie head_stride
// rows further on.
struct RowStates {
  float* maximum;
  float* sums;
  float* out;
  std::int64_t head_stride;

  [[nodiscard]] kernels::AttentionState row(const AttentionCall& call, std::int64_t r) const noexcept {
    return {maximum + r, sums + r * call.kernels.lanes, out + r * call.plan.padded_value_dim};
  }
};

// Those of a worker's row block.
[[nodiscard]] inline RowStates worker_states(const AttentionCall& call, int worker) noexcept {
  return {part_of(call, worker, call.plan.state_maximum), part_of(call, worker, call.plan.state_sums),
          part_of(call, worker, call.plan.state_out), call.plan.rows};
}

// For less time than the call, the range and the sequence that it is made of.
class RowBlock {
 public:
  RowBlock(const AttentionCall& call, int worker, const RowRange& range, const AttentionSequence& sequence,
           PackedHead packed) noexcept;

  // The keys that any row sees; first ≥ last where there are none.
  [[nodiscard]] std::int64_t first_key() const noexcept { return first_key_; }
  [[nodiscard]] std::int64_t last_key() const noexcept { return last_key_; }
  [[nodiscard]] const KeyInterval& interval(std::int64_t r) const noexcept {
    return intervals_[same_intervals_ ? 0 : r];
  }

  // Everything: all keys, and the rows finished.
  void run(const RowStates& states) noexcept;
  // Keys [first_key, last_key) alone; the rows' states are left in `states`.
  void run_partially(std::int64_t first_key, std::int64_t last_key, const RowStates& states) noexcept;

 private:
  template <class Function>
  void for_each_row(const Function& function) const noexcept;
  void find_intervals() noexcept;
  [[nodiscard]] bool are_words(const kernels::Operand& rows, std::int64_t row_stride,
                               std::int64_t head_stride) const noexcept;
  void prepare(const RowStates& states) noexcept;
  void prepare_modifiers() noexcept;
  void prepare_dropout() noexcept;
  void attend(std::int64_t first_key, std::int64_t last_key, const RowStates& states, bool finish) noexcept;
  // The `count` keys and values of the block that starts at key `first_key` of the sequence; packs those in
  // [first_seen, last_seen) where the plan wants it.
  [[nodiscard]] kernels::KeyValueBlock key_block(std::int64_t first_key, std::int64_t count, std::int64_t first_seen,
                                                 std::int64_t last_seen) const noexcept;
  void attend_key_block(kernels::AttentionSweep& sweep, std::int64_t first_key, const RowStates& states,
                        bool finish) noexcept;
  void begin_with_sinks(const RowStates& states) noexcept;
  void finish(const RowStates& states) const noexcept;
  void narrow_tile(std::int64_t first, std::int64_t last, std::int64_t head, const RowStates& states) const noexcept;
  void finish_tile(TileState tile, std::int64_t first, std::int64_t last, std::int64_t head,
                   const RowStates& states) const noexcept;

  const AttentionCall& call_;
  int worker_;
  const RowRange& range_;
  const AttentionSequence& sequence_;
  PackedHead packed_;
  KeyInterval* intervals_;
  std::int64_t count_;
  std::int64_t tile_rows_;  // as even as can be
  std::int64_t first_key_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_key_ = 0;
  bool same_intervals_ = false;
  // Whether one stride leads from row to row.
  bool even_rows_;
  const float* query_ = nullptr;
  std::int64_t query_stride_ = 0;
  std::int64_t query_head_stride_ = 0;
  // Where rows end: in `out`; null where they lie unevenly there; in their states where they have to be narrowed.
  float* out_ = nullptr;
  std::int64_t out_stride_ = 0;
  std::int64_t out_head_stride_ = 0;
  // Of the tile in work, in the key block in work.
  std::int32_t* begin_;
  std::int32_t* end_;
  TileState* tiles_;
};

}  // namespace headlight::ops
