#include "ops/attention_backward/large_rows.h"

#include <algorithm>
#include <limits>

#include "ops/attention_backward/tiles.h"
#include "runtime/parallel.h"
#include "simd/integers.h"

namespace headlight::ops {
namespace {

// From the first large row to behind the last one of [rows.first, rows.last).
Range large_rows_of(const BackwardCall& call, std::int64_t sample, std::int64_t head, Range rows) noexcept {
  const auto is_large = [&](std::int64_t query) {
    return is_of_large_row(call.operands.log_sum_exp(sample, head, query));
  };
  while (rows.first < rows.last && !is_large(rows.first)) ++rows.first;
  while (rows.first < rows.last && !is_large(rows.last - 1)) --rows.last;
  return rows;
}

void sum_rows(const BackwardCall& call, int worker, std::int64_t sample, std::int64_t head,
              const Range& rows) noexcept {
  kernels::RunningSum* const sums = call.running_sums_of(sample, head);
  kernels::RunningSum first{-std::numeric_limits<float>::infinity(), 0.0f};
  if (!call.options.sinks.empty()) first = {in_log2(call.options.sinks[static_cast<std::size_t>(head)]), 1.0f};
  std::fill(sums + rows.first, sums + rows.last, first);
  for (std::int64_t s = call.sequences.of_query(rows.first); s < call.sequences.count(); ++s) {
    const AttentionSequence sequence = call.sequences(sample, s);
    if (sequence.first_query >= rows.last) return;
    for_each_tile(call, worker, sample, head, sequence, within(rows, sequence.first_query, sequence.queries),
                  {0, sequence.keys}, [&](kernels::BackwardTile& tile, std::int64_t first_row, std::int64_t) {
                    tile.running_sums = sums + first_row;
                    call.backward.products.float_score_gradients(tile);
                  });
  }
}

}  // namespace

bool has_large_rows(const View<const float, 3>& log_sum_exp) noexcept {
  for (std::int64_t b = 0; b < log_sum_exp.extent(0); ++b) {
    for (std::int64_t h = 0; h < log_sum_exp.extent(1); ++h) {
      for (std::int64_t i = 0; i < log_sum_exp.extent(2); ++i) {
        if (is_of_large_row(log_sum_exp(b, h, i))) return true;
      }
    }
  }
  return false;
}

void sum_large_rows(Engine& engine, const BackwardCall& call) noexcept {
  const AttentionSizes& sizes = call.sizes;
  const std::int64_t block = call.plan.query_block;
  const std::int64_t blocks = divide_up(sizes.query_length, block);
  const std::int64_t units = sizes.batch * sizes.query_heads * blocks;
  runtime::parallel_for(engine, units, call.plan.workers, [&](std::int64_t unit, int worker) {
    const std::int64_t head = unit / blocks % sizes.query_heads;
    const std::int64_t sample = unit / blocks / sizes.query_heads;
    const std::int64_t row = unit % blocks * block;
    const Range rows = large_rows_of(call, sample, head, {row, std::min(row + block, sizes.query_length)});
    if (rows.first < rows.last) sum_rows(call, worker, sample, head, rows);
  });
}

}  // namespace headlight::ops
