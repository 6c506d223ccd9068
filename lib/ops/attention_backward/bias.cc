#include "ops/attention_backward/bias.h"

#include <algorithm>

#include "ops/attention_backward/tiles.h"
#include "runtime/parallel.h"
#include "simd/integers.h"

namespace headlight::ops {
namespace {

// Indices of an axis that go into entry `entry` of a broadcast axis, or of blocks of `block` of a full one.
Range part_of(bool full, std::int64_t entry, std::int64_t block, std::int64_t extent) noexcept {
  if (!full) return {0, extent};
  return {entry * block, std::min((entry + 1) * block, extent)};
}

std::int64_t parts(bool full, std::int64_t block, std::int64_t extent) noexcept {
  return full ? divide_up(extent, block) : 1;
}

// The entries of one unit, and where their sums grow: one for each row and key, or for all of them together.
struct BiasSums {
  Range samples, heads, rows, keys;
  float* sums;
  std::int64_t row_stride;  // 0: one row of sums for all rows
  std::int64_t key_stride;

  void add(const kernels::BackwardTile& tile, std::int64_t first_row, std::int64_t first_key) const noexcept {
    for (std::int64_t r = 0; r < tile.rows; ++r) {
      const float* const gradients = tile.score_gradients + r * tile.stride;
      float* const to = sums + (first_row - rows.first + r) * row_stride;
      for (std::int64_t j = std::max<std::int64_t>(keys.first - first_key, 0); j < tile.keys; ++j) {
        to[(first_key - keys.first + j) * key_stride] += gradients[j];
      }
    }
  }
};

// Those that lie within the unit's rows and keys.
void add_head(const BackwardCall& call, int worker, const BiasSums& unit, std::int64_t sample, std::int64_t head,
              const AttentionSequence& sequence) noexcept {
  for_each_tile(call, worker, sample, head, sequence, within(unit.rows, sequence.first_query, sequence.queries),
                within(unit.keys, sequence.first_key, sequence.keys),
                [&](const kernels::BackwardTile& tile, std::int64_t first_row, std::int64_t first_key) {
                  call.backward.products.float_score_gradients(tile);
                  unit.add(tile, first_row, first_key);
                });
}

void give_sums(const BackwardCall& call, const BiasSums& unit, std::int64_t sample, std::int64_t head, bool full_rows,
               bool full_keys) noexcept {
  const TypedAttentionGradients& gradients = call.gradients;
  const Range rows = full_rows ? unit.rows : Range{0, 1};
  const Range keys = full_keys ? unit.keys : Range{0, 1};
  for (std::int64_t i = rows.first; i < rows.last; ++i) {
    const float* const sums = unit.sums + (i - rows.first) * unit.row_stride;
    float* const to = &gradients.bias(sample, head, i, keys.first);
    for (std::int64_t j = 0; j < keys.last - keys.first; ++j) to[j] = gradients.accumulate ? to[j] + sums[j] : sums[j];
  }
}

}  // namespace

void differentiate_bias(Engine& engine, const BackwardCall& call) noexcept {
  const AttentionSizes& sizes = call.sizes;
  const BackwardPlan& plan = call.plan;
  const auto& shape = call.gradients.bias.shape;
  // An axis of one entry may be full as well: it is the same either way.
  const bool full_rows = shape[2] != 1;
  const bool full_keys = shape[3] != 1;
  const std::int64_t row_parts = parts(full_rows, plan.query_block, sizes.query_length);
  const std::int64_t key_parts = parts(full_keys, plan.key_block, sizes.key_length);
  const std::int64_t units = shape[0] * shape[1] * row_parts * key_parts;
  runtime::parallel_for(engine, units, plan.workers, [&](std::int64_t task, int worker) {
    const std::int64_t key_part = task % key_parts;
    const std::int64_t row_part = task / key_parts % row_parts;
    const std::int64_t head = task / key_parts / row_parts % shape[1];
    const std::int64_t sample = task / key_parts / row_parts / shape[1];
    const BiasSums unit{part_of(shape[0] != 1, sample, 1, sizes.batch),
                        part_of(shape[1] != 1, head, 1, sizes.query_heads),
                        part_of(full_rows, row_part, plan.query_block, sizes.query_length),
                        part_of(full_keys, key_part, plan.key_block, sizes.key_length),
                        part_of(call, worker, plan.bias_sums),
                        full_rows ? plan.key_block : 0,
                        full_keys ? 1 : 0};
    std::fill_n(unit.sums, plan.query_block * plan.key_block, 0.0f);
    for (std::int64_t b = unit.samples.first; b < unit.samples.last; ++b) {
      for (std::int64_t h = unit.heads.first; h < unit.heads.last; ++h) {
        for (std::int64_t s = 0; s < call.sequences.count(); ++s) {
          add_head(call, worker, unit, b, h, call.sequences(b, s));
        }
      }
    }
    give_sums(call, unit, sample, head, full_rows, full_keys);
  });
}

void add_to_distances(const kernels::BackwardTile& tile, std::int64_t first, float* sums) noexcept {
  for (std::int64_t r = 0; r < tile.rows; ++r) {
    const float* const gradients = tile.score_gradients + r * tile.stride;
    float* const to = sums + first - r;
    for (std::int64_t j = 0; j < tile.keys; ++j) to[j] += gradients[j];
  }
}

void differentiate_distances(Engine& engine, const BackwardCall& call) noexcept {
  const AttentionSizes& sizes = call.sizes;
  const View<float, 3>& distances = call.sums.distances;
  const std::int64_t units = distances.extent(0) * sizes.query_heads;
  runtime::parallel_for(engine, units, call.plan.workers, [&](std::int64_t unit, int worker) {
    const std::int64_t sum = unit / sizes.query_heads, head = unit % sizes.query_heads;
    float* const sums = &distances(sum, head, 0);
    std::fill_n(sums, distances.extent(2), 0.0f);
    const auto add = [&](const kernels::BackwardTile& tile, std::int64_t first_row, std::int64_t first_key) {
      call.backward.products.float_score_gradients(tile);
      add_to_distances(tile, first_key - first_row + sizes.query_length - 1, sums);
    };
    for (std::int64_t b = 0; b < sizes.batch; ++b) {
      for (const RowsOfSum& rows : call.sums.rows) {
        if (rows.sum != sum) continue;
        for (std::int64_t s = 0; s < call.sequences.count(); ++s) {
          const AttentionSequence sequence = call.sequences(b, s);
          const Range of_sequence =
              within({rows.first, rows.first + rows.count}, sequence.first_query, sequence.queries);
          for_each_tile(call, worker, b, head, sequence, of_sequence, {0, sequence.keys}, add);
        }
      }
    }
  });
}

}  // namespace headlight::ops
