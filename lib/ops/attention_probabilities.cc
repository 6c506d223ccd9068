#include "ops/attention_probabilities.h"

#include <algorithm>

#include "runtime/parallel.h"

namespace headlight::ops {
namespace {

constexpr int kMaxRowsOfTile = 16;
// A panel of keys is packed once for that many rows.
constexpr std::int64_t kRows = 48;

// What `call` asks for, [first, last) in the order asked.
struct RowsAsked {
  std::int64_t sample;
  std::int64_t first;
  std::int64_t last;

  [[nodiscard]] std::int64_t query(const AttentionCall& call, std::int64_t r) const noexcept {
    const auto& rows = call.options.probabilities.rows;
    return rows.empty() ? first + r : rows[static_cast<std::size_t>(first + r)];
  }
};

// One row tile against one panel of keys; `r` counts from rows.first.
class Tile {
 public:
  Tile(const AttentionCall& call, int lane, const RowsAsked& rows, std::int64_t head) noexcept
      : call_(call), lane_(lane), rows_(rows), head_(head) {
    tile_.query_stride = tile_.head_dim = call.sizes.head_dim;
    tile_.exponent_scale = call.exponent_scale;
    tile_.panel = call.lane_part<float>(lane, call.plan.lane.panel);
    set_mask_strides(call, tile_.masks);
    tile_.begin = begin_;
    tile_.end = end_;
    tile_.maximum = maximum_;
    tile_.sum = sum_;
    tile_.first_head = head == 0;
    tile_.average_factor =
        head + 1 == call.sizes.query_heads ? 1.0f / static_cast<float>(call.sizes.query_heads) : 1.0f;
    if (call.options.probabilities.per_head) tile_.per_head = per_head_;
    if (call.options.probabilities.averaged) tile_.averaged = averaged_;
  }

  void run(std::int64_t r, std::int64_t count, std::int64_t key, std::int64_t keys) noexcept {
    const Probabilities& probabilities = call_.options.probabilities;
    const KeyInterval* intervals = call_.lane_part<KeyInterval>(lane_, call_.plan.lane.intervals) + r;
    tile_.query = call_.lane_part<float>(lane_, call_.plan.lane.query) + r * call_.sizes.head_dim;
    tile_.rows = count;
    tile_.keys = keys;
    tile_.first_key = key;
    if (call_.options.mask)
      tile_.masks.mask = call_.lane_part<const std::uint8_t*>(lane_, call_.plan.lane.row_masks) + r;
    if (call_.options.bias) tile_.masks.bias = call_.lane_part<const float*>(lane_, call_.plan.lane.row_biases) + r;
    for (std::int64_t row = 0; row < count; ++row) {
      begin_[row] = static_cast<std::int32_t>(std::clamp<std::int64_t>(intervals[row].begin - key, 0, keys));
      end_[row] = static_cast<std::int32_t>(std::clamp<std::int64_t>(intervals[row].end - key, 0, keys));
      const std::int64_t query = rows_.query(call_, r + row);
      const std::int64_t state = (rows_.sample * call_.sizes.query_heads + head_) * call_.sizes.query_length + query;
      maximum_[row] = call_.part<float>(call_.plan.row_maximum)[state];
      sum_[row] = call_.part<float>(call_.plan.row_sum)[state];
      const std::int64_t asked = rows_.first + r + row;
      if (probabilities.per_head) per_head_[row] = &probabilities.per_head(rows_.sample, head_, asked, key);
      if (probabilities.averaged) averaged_[row] = &probabilities.averaged(rows_.sample, asked, key);
    }
    call_.kernels.probability_tile(tile_);
  }

 private:
  const AttentionCall& call_;
  int lane_;
  RowsAsked rows_;
  std::int64_t head_;
  kernels::ProbabilityTile tile_{};
  std::int32_t begin_[kMaxRowsOfTile];
  std::int32_t end_[kMaxRowsOfTile];
  float maximum_[kMaxRowsOfTile];
  float sum_[kMaxRowsOfTile];
  float* per_head_[kMaxRowsOfTile];
  float* averaged_[kMaxRowsOfTile];
};

// Each row's visible keys, counted in the tensor.
void find_intervals(const AttentionCall& call, int lane, const RowsAsked& rows) noexcept {
  auto* intervals = call.lane_part<KeyInterval>(lane, call.plan.lane.intervals);
  for (std::int64_t r = 0; r < rows.last - rows.first; ++r) {
    const std::int64_t query = rows.query(call, r);
    const AttentionSequence sequence = call.sequences(rows.sample, call.sequences.of_query(query));
    intervals[r] = {};
    if (query - sequence.first_query >= sequence.queries) continue;
    intervals[r] = IntervalRule(call.options, sequence)(query - sequence.first_query);
    intervals[r].begin += sequence.first_key;
    intervals[r].end += sequence.first_key;
  }
}

void write_rows(const AttentionCall& call, int lane, const RowsAsked& rows, std::int64_t first_key,
                std::int64_t last_key) noexcept {
  find_intervals(call, lane, rows);
  const std::int64_t head_dim = call.sizes.head_dim;
  auto* queries = call.lane_part<float>(lane, call.plan.lane.query);
  auto* masks = call.lane_part<const std::uint8_t*>(lane, call.plan.lane.row_masks);
  auto* biases = call.lane_part<const float*>(lane, call.plan.lane.row_biases);
  auto* panel = call.lane_part<float>(lane, call.plan.lane.panel);
  const std::int64_t count = rows.last - rows.first;
  for (std::int64_t head = 0; head < call.sizes.query_heads; ++head) {
    for (std::int64_t r = 0; r < count; ++r) {
      const std::int64_t query = rows.query(call, r);
      call.kernels.copy_row(&call.query(rows.sample, query, head, 0), head_dim, call.query_factor,
                            queries + r * head_dim);
      if (call.options.mask) masks[r] = broadcast_row(call.options.mask->entries, rows.sample, head, query);
      if (call.options.bias) biases[r] = broadcast_row(call.options.bias, rows.sample, head, query);
    }
    Tile tile(call, lane, rows, head);
    for (std::int64_t key = first_key; key < last_key; key += call.kernels.key_panel) {
      const std::int64_t keys = std::min<std::int64_t>(call.kernels.key_panel, last_key - key);
      call.kernels.pack_keys(&call.key(rows.sample, key, head / call.sizes.group, 0), call.key.stride(1), keys,
                             head_dim, panel);
      for (std::int64_t r = 0; r < count; r += call.kernels.query_rows) {
        tile.run(r, std::min<std::int64_t>(call.kernels.query_rows, count - r), key, keys);
      }
    }
  }
}

}  // namespace

void write_probabilities(Engine& engine, const AttentionCall& call) noexcept {
  const auto& asked = call.options.probabilities.rows;
  const std::int64_t rows = asked.empty() ? call.sizes.query_length : static_cast<std::int64_t>(asked.size());
  // A lane's scratch holds what row_block rows need.
  const std::int64_t step = std::min(kRows, call.plan.row_block);
  const std::int64_t row_blocks = (rows + step - 1) / step;
  const std::int64_t units = call.sizes.batch * row_blocks * call.plan.key_blocks;
  runtime::parallel_for(engine, units, call.plan.lanes, [&](std::int64_t task, int lane) {
    const std::int64_t first_key = task % call.plan.key_blocks * call.plan.key_block;
    const std::int64_t row_block = task / call.plan.key_blocks;
    const std::int64_t first = row_block % row_blocks * step;
    write_rows(call, lane, {row_block / row_blocks, first, std::min(first + step, rows)}, first_key,
               std::min(first_key + call.plan.key_block, call.sizes.key_length));
  });
}

}  // namespace headlight::ops
