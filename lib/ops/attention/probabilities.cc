#include <algorithm>

#include "ops/attention/row_results.h"
#include "ops/attention/shown_rows.h"
#include "runtime/parallel.h"
#include "simd/integers.h"

namespace headlight::ops {
namespace {

// One row tile against one panel of keys; `r` counts from rows.first.
class Tile {
 public:
  Tile(const AttentionCall& call, int worker, const ShownRows& rows, std::int64_t head) noexcept
      : call_(call), worker_(worker), rows_(rows), head_(head) {
    tile_.query.stride = tile_.query.head_dim = call.plan.key_words;
    tile_.modifiers = call.modifiers;
    tile_.panel = part_of(call, worker, call.plan.panel);
    tile_.seen = {begin_, end_, false};
    tile_.maximum = maximum_;
    tile_.sum = sum_;
    tile_.first_head = head == 0;
    tile_.average_factor =
        head + 1 == call.sizes.query_heads ? 1.0f / static_cast<float>(call.sizes.query_heads) : 1.0f;
    if (call.options.probabilities.per_head) tile_.per_head = per_head_;
    if (call.options.probabilities.averaged) tile_.averaged = averaged_;
  }

  // `column`: where the first of the keys stands in what is written.
  void run(std::int64_t r, std::int64_t count, std::int64_t key, std::int64_t keys, std::int64_t column) noexcept {
    const Probabilities& probabilities = call_.options.probabilities;
    const KeyInterval* intervals = part_of(call_, worker_, call_.plan.intervals) + r;
    tile_.query.data = part_of(call_, worker_, call_.plan.query) + r * call_.plan.key_words;
    tile_.query.count = count;
    tile_.keys = keys;
    tile_.modifiers.first_key = key;
    row_modifiers(call_, worker_).give(call_.options, r, tile_.modifiers);
    for (std::int64_t row = 0; row < count; ++row) {
      begin_[row] = static_cast<std::int32_t>(std::clamp<std::int64_t>(intervals[row].begin - key, 0, keys));
      end_[row] = static_cast<std::int32_t>(std::clamp<std::int64_t>(intervals[row].end - key, 0, keys));
      const std::int64_t query = rows_.query(r + row);
      const std::int64_t state = saved_row(call_, rows_.sample, head_, query);
      maximum_[row] = part_of(call_, call_.plan.row_maximum)[state];
      sum_[row] = part_of(call_, call_.plan.row_sum)[state];
      const std::int64_t asked = rows_.first + r + row;
      if (probabilities.per_head) per_head_[row] = &probabilities.per_head(rows_.sample, head_, asked, column);
      if (probabilities.averaged) averaged_[row] = &probabilities.averaged(rows_.sample, asked, column);
    }
    call_.kernels.probability_tile(tile_);
  }

 private:
  const AttentionCall& call_;
  int worker_;
  ShownRows rows_;
  std::int64_t head_;
  kernels::ProbabilityTile tile_{};
  std::int32_t begin_[kMaxRowsOfTile];
  std::int32_t end_[kMaxRowsOfTile];
  float maximum_[kMaxRowsOfTile];
  float sum_[kMaxRowsOfTile];
  float* per_head_[kMaxRowsOfTile];
  float* averaged_[kMaxRowsOfTile];
};

// Rows [first, last) of a block, the keys to go through for them, and the column of key 0.
struct Run {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t first_key = 0;
  std::int64_t last_key = 0;
  std::int64_t origin = 0;
};

// The next rows behind `first` that belong to one sequence, and its keys.
Run run_of_sequence(const AttentionCall& call, const ShownRows& rows, std::int64_t first) noexcept {
  const std::int64_t number = call.sequences.of_query(rows.query(first));
  const AttentionSequence sequence = call.sequences(rows.sample, number);
  Run run{first, first + 1, sequence.first_key, sequence.first_key + sequence.keys, sequence.first_key};
  while (run.last < rows.count() && call.sequences.of_query(rows.query(run.last)) == number) ++run.last;
  return run;
}

// Nothing is seen behind the end of a row's own sequence.
void clear_behind(const Probabilities& probabilities, const ShownRows& rows, std::int64_t head,
                  const Run& run) noexcept {
  const std::int64_t keys = run.last_key - run.first_key;
  for (std::int64_t asked = rows.first + run.first; asked < rows.first + run.last; ++asked) {
    if (probabilities.per_head) {
      float* const row = &probabilities.per_head(rows.sample, head, asked, 0);
      std::fill(row + keys, row + probabilities.per_head.extent(3), 0.0f);
    }
    if (probabilities.averaged) {
      float* const row = &probabilities.averaged(rows.sample, asked, 0);
      std::fill(row + keys, row + probabilities.averaged.extent(2), 0.0f);
    }
  }
}

void write_run(const AttentionCall& call, Tile& tile, const ShownRows& rows, std::int64_t head, const Run& run,
               float* panel) noexcept {
  for (std::int64_t key = run.first_key; key < run.last_key; key += call.kernels.key_panel) {
    const std::int64_t keys = std::min<std::int64_t>(call.kernels.key_panel, run.last_key - key);
    call.kernels.pack_keys(call.keys.block(rows.sample, head / call.sizes.group, key, keys).key, keys,
                           call.sizes.head_dim, panel);
    clear_behind_panels(call.kernels, panel + keys * call.plan.key_words, keys);
    for (std::int64_t r = run.first; r < run.last; r += call.kernels.query_rows) {
      tile.run(r, std::min<std::int64_t>(call.kernels.query_rows, run.last - r), key, keys, key - run.origin);
    }
  }
}

void write_rows(const AttentionCall& call, int worker, const ShownRows& rows, std::int64_t first_key,
                std::int64_t last_key) noexcept {
  find_intervals(call, worker, rows);
  auto* panel = part_of(call, worker, call.plan.panel);
  const std::int64_t count = rows.count();
  for (std::int64_t head = 0; head < call.sizes.query_heads; ++head) {
    take_head(call, worker, rows, head);
    Tile tile(call, worker, rows, head);
    if (!call.options.probabilities.own_keys) {
      write_run(call, tile, rows, head, {0, count, first_key, last_key, 0}, panel);
      continue;
    }
    for (std::int64_t r = 0; r < count;) {
      const Run run = run_of_sequence(call, rows, r);
      write_run(call, tile, rows, head, run, panel);
      clear_behind(call.options.probabilities, rows, head, run);
      r = run.last;
    }
  }
}

}  // namespace

void write_probabilities(Engine& engine, const AttentionCall& call) noexcept {
  // Rows that have columns of their own go through their own keys only.
  const Probabilities& probabilities = call.options.probabilities;
  for_shown_rows(engine, call, probabilities.rows, probabilities.own_keys,
                 [&](const ShownRows& rows, std::int64_t first_key, std::int64_t last_key, int worker) {
                   write_rows(call, worker, rows, first_key, last_key);
                 });
}

}  // namespace headlight::ops
