#include "ops/attention/running.h"

#include "kernels/kernels.h"
#include "runtime/parallel.h"
#include "simd/integers.h"

namespace headlight::ops {

AttentionPlan plan_running_rows(const Engine& engine, const kernels::AttentionKernels& kernels, AttentionSizes sizes,
                                std::int64_t keys, const AttentionOptions& options, NumberType query) noexcept {
  AttentionTraits traits = traits_of(options, sizes, scale_of(options, sizes.head_dim));
  traits.copies_queries = traits.copies_queries || query != NumberType::float32;
  traits.by_block = true;
  // Two blocks at least, as plans distinguish one alone.
  sizes.key_length = std::max(keys, 2 * attention_key_block(sizes));
  return plan_attention(engine, kernels, sizes, traits);
}

RunningRows::RunningRows(const AttentionCall& call, bool in_place)
    : call_(call),
      in_place_(in_place && call.out.type == NumberType::float32 &&
                call.plan.padded_value_dim == call.sizes.value_dim) {
  const AttentionSizes& sizes = call.sizes;
  const std::int64_t rows = sizes.batch * sizes.key_value_heads * call.plan.rows;
  maximum_ = Tensor<float, 1>({rows});
  sums_ = Tensor<float, 2>({rows, call.kernels.lanes});
  if (!in_place_) out_ = Tensor<float, 2>({rows, call.plan.padded_value_dim});
  if (call.options.sinks.empty()) return;
  for (std::int64_t b = 0; b < sizes.batch; ++b) {
    for (std::int64_t head = 0; head < sizes.key_value_heads; ++head) {
      for (std::int64_t r = 0; r < call.plan.rows; ++r) {
        begin_with_sink(call, place_of(call, head, r).head, row(b, head, r));
      }
    }
  }
}

kernels::AttentionState RunningRows::row(std::int64_t sample, std::int64_t head, std::int64_t r) noexcept {
  const std::int64_t n = (sample * call_.sizes.key_value_heads + head) * call_.plan.rows + r;
  const RowPlace place = place_of(call_, head, r);
  float* const out = in_place_ ? static_cast<float*>(row_at(call_.out, sample, place.query, place.head))
                               : out_.data() + n * call_.plan.padded_value_dim;
  return {maximum_.data() + n, sums_.data() + n * call_.kernels.lanes, out};
}

// f(rows, worker) for every unit of rows.
template <class Function>
void RunningRows::for_each_unit(Engine& engine, const Function& f) noexcept {
  const AttentionPlan& plan = call_.plan;
  const std::int64_t heads = call_.sizes.key_value_heads;
  if (call_.sizes.batch * heads * plan.rows == 0) return;
  const std::int64_t head_units = divide_up(heads, plan.unit_heads);
  const std::int64_t row_units = divide_up(plan.rows, plan.row_block);
  runtime::parallel_for(
      engine, call_.sizes.batch * head_units * row_units, plan.workers, [&](std::int64_t task, int worker) {
        const std::int64_t head = task / row_units % head_units * plan.unit_heads;
        const std::int64_t first = task % row_units * plan.row_block;
        f(RowRange{task / row_units / head_units, head, first, std::min(first + plan.row_block, plan.rows),
                   std::min(plan.unit_heads, heads - head)},
          worker);
      });
}

void RunningRows::take(const kernels::AttentionState& to, const kernels::AttentionState& from,
                       bool is_first) const noexcept {
  if (!is_first) return call_.kernels.merge(to, from, call_.sizes.value_dim);
  *to.maximum = *from.maximum;
  std::copy_n(from.sums, call_.kernels.lanes, to.sums);
  std::copy_n(from.out, call_.plan.padded_value_dim, to.out);
}

// One block of the sequence's grid.
void RunningRows::attend_block(const RowRange& rows, const AttentionSequence& sequence, int worker,
                               KeyInterval keys) noexcept {
  RowBlock block(call_, worker, rows, sequence, {});
  const std::int64_t first_seen = std::max(keys.begin, block.first_key());
  const std::int64_t last_seen = std::min(keys.end, block.last_key());
  if (first_seen >= last_seen) return;
  const RowStates states = worker_states(call_, worker);
  block.run_partially(first_seen, last_seen, states);
  for (std::int64_t r = 0; r < rows.last - rows.first; ++r) {
    const KeyInterval& interval = block.interval(r);
    if (std::max(interval.begin, keys.begin) >= std::min(interval.end, keys.end)) continue;
    for (std::int64_t head = 0; head < rows.heads; ++head) {
      take(row(rows.sample, rows.key_value_head + head, rows.first + r),
           states.row(call_, head * states.head_stride + r),
           interval.begin >= keys.begin && call_.options.sinks.empty());
    }
  }
}

void RunningRows::attend(Engine& engine, std::int64_t from, std::int64_t to) noexcept {
  const std::int64_t size = call_.plan.key_block;
  for_each_unit(engine, [&](const RowRange& range, int worker) {
    for_each_sequence(call_, range, [&](const RowRange& rows, const AttentionSequence* sequence) {
      if (sequence == nullptr) return;
      const std::int64_t last = std::min(to - sequence->first_key, sequence->keys);
      std::int64_t key = std::max<std::int64_t>(from - sequence->first_key, 0) / size * size;
      for (; key < last; key += size) {
        const std::int64_t end = std::min(key + size, sequence->keys);
        if (end <= last && end > from - sequence->first_key) attend_block(rows, *sequence, worker, {key, end});
      }
    });
  });
}

void RunningRows::finish(Engine& engine) noexcept {
  for_each_unit(engine, [&](const RowRange& range, int) {
    for_each_sequence(call_, range, [&](const RowRange& rows, const AttentionSequence* sequence) {
      for (std::int64_t head = rows.key_value_head; head < rows.key_value_head + rows.heads; ++head) {
        for (std::int64_t r = rows.first; r < rows.last; ++r) {
          const RowPlace place = place_of(call_, head, r);
          if (sequence == nullptr) {
            finish_padding(call_, rows.sample, place);
            continue;
          }
          const KeyInterval interval = IntervalRule(call_.options, *sequence)(place.query - sequence->first_query);
          if (interval.begin >= interval.end) {
            finish_empty_row(call_, rows.sample, place);
          } else {
            finish_row(call_, rows.sample, place, row(rows.sample, head, r));
          }
        }
      }
    });
  });
}

}  // namespace headlight::ops
