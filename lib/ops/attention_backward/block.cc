#include "ops/attention_backward/block.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "ops/attention/rows.h"
#include "ops/attention/scale.h"
#include "ops/attention_backward/large_rows.h"
#include "simd/integers.h"

namespace headlight::ops {

void set_scale(BackwardCall& call) noexcept {
  constexpr auto kLargest = static_cast<double>(std::numeric_limits<float>::max());
  const double scale = softmax_scale(call.options, call.sizes.head_dim);
  call.scale = static_cast<float>(scale);
  call.modifiers =
      score_modifiers(call.options, static_cast<float>(std::clamp(scale * std::numbers::log2e, -kLargest, kLargest)));
}

BackwardBlock::BackwardBlock(const BackwardCall& call, int worker, std::int64_t sample, std::int64_t key_value_head,
                             const AttentionSequence& sequence, std::int64_t first_key, std::int64_t keys) noexcept
    : call_(call),
      worker_(worker),
      sample_(sample),
      sequence_(sequence),
      first_key_(first_key),
      rule_(call.options, sequence) {
  const BackwardPlan& plan = call.plan;
  const auto part = [&](const auto& of_worker) { return part_of(call, worker, of_worker); };
  const std::int64_t tensor_key = sequence.first_key + first_key;
  tile_.keys = keys;
  tile_.head_dim = call.sizes.head_dim;
  tile_.value_dim = call.sizes.value_dim;
  tile_.padded_head_dim = plan.padded_head_dim;
  tile_.padded_value_dim = plan.padded_value_dim;
  tile_.minus_log_sum_exp = part(plan.minus_log_sum_exp);
  tile_.key_panels = part(plan.key_panels);
  tile_.value_panels = part(plan.value_panels);
  tile_.key = part(plan.key);
  tile_.begin = part(plan.begin);
  tile_.end = part(plan.end);
  tile_.modifiers = call.modifiers;
  tile_.modifiers.first_key = tensor_key;
  if (call.options.softcap != 0) tile_.cap_derivatives = part(plan.cap_derivatives);
  tile_.scale = call.scale;
  tile_.dropout = call.options.dropout.probability == 0 ? nullptr : &call.dropout;
  tile_.sequence_key = first_key;
  tile_.weights = part(plan.weights);
  tile_.score_gradients = part(plan.score_gradients);
  tile_.stride = plan.stride;
  if (call.multiplies_pairs()) {
    tile_.key_pair_gradients = tile_.score_gradients + plan.query_block / 2 * plan.stride;
    tile_.room =
        call.multiplies_tiles() ? part(plan.room_of_tiles) : tile_.weights + plan.query_block / 2 * plan.stride;
  }

  tile_.keys_are_rows = call.takes_keys_as_rows();
  const kernels::KeyValueBlock block = call.keys.block(sample, key_value_head, tensor_key, keys);
  key_ = block.key;
  bring_keys(block.key, tile_.head_dim, part(plan.key_panels));
  bring_keys(block.value, tile_.value_dim, part(plan.value_panels));
  call.backward.products.take_keys(block.key, keys, tile_.head_dim, part(plan.key), plan.padded_head_dim);
}

void BackwardBlock::copy_words(const kernels::Operand& from, std::int64_t rows, std::int64_t dim,
                               float* to) const noexcept {
  const kernels::AttentionKernels& kernels = call_.kernels;
  kernels.copy_rows(from, 1.0f, rows, dim, to);
  const std::int64_t words = kernels::filled_up(dim / kernels.numbers_of_word, kernels.words_at_once);
  std::fill(to + rows * words, to + kernels::filled_up(rows, kernels.keys_at_once) * words, 0.0f);
}

void BackwardBlock::bring_keys(const kernels::Operand& from, std::int64_t dim, float* to) const noexcept {
  const kernels::AttentionKernels& kernels = call_.kernels;
  if (tile_.keys_are_rows) return copy_words(from, tile_.keys, dim, to);
  kernels.pack_keys(from, tile_.keys, dim, to);
  clear_behind_panels(kernels, to + tile_.keys * (dim / kernels.numbers_of_word), tile_.keys);
}

bool BackwardBlock::find_intervals(std::int64_t first_row, std::int64_t rows) noexcept {
  const auto clamped = [&](std::int64_t key) {
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(key - first_key_, 0, tile_.keys));
  };
  // Neither end of an interval goes back from row to row, so the first and the last row answer for all between.
  const KeyInterval first = rule_(first_row);
  const KeyInterval last = rule_(first_row + rows - 1);
  const std::int64_t last_key = first_key_ + tile_.keys;
  tile_.whole = std::max(first.begin, last.begin) <= first_key_ && last_key <= std::min(first.end, last.end);
  if (tile_.whole) return true;
  auto* const begin = part_of(call_, worker_, call_.plan.begin);
  auto* const end = part_of(call_, worker_, call_.plan.end);
  bool sees_any = false;
  for (std::int64_t r = 0; r < rows; ++r) {
    const KeyInterval interval = rule_(first_row + r);
    begin[r] = clamped(interval.begin);
    end[r] = clamped(interval.end);
    sees_any = sees_any || begin[r] < end[r];
  }
  return sees_any;
}

void BackwardBlock::take_modifiers(std::int64_t head, std::int64_t first_row) noexcept {
  const RowModifiers rows = row_modifiers(call_, worker_);
  for (std::int64_t r = 0; r < tile_.rows; ++r) {
    rows.set(call_.options, r, sample_, head, sequence_.first_query + first_row + r,
             sequence_.first_key + rule_.position(first_row + r));
  }
  rows.give(call_.options, 0, tile_.modifiers);
}

void BackwardBlock::bring_rows(const kernels::Operand& from, std::int64_t dim, std::int64_t padded, float* to,
                               const float*& of_scores, const float*& of_sums) noexcept {
  const kernels::AttentionKernels& kernels = call_.kernels;
  of_scores = of_sums = to;
  if (!call_.multiplies_pairs()) return call_.backward.products.take_rows(from, tile_.rows, dim, to, padded);
  const std::int64_t pairs = divide_up(kernels::filled_up(tile_.rows, kernels.keys_at_once), 2);
  if (call_.multiplies_tiles()) {
    kernels.pack_values(from, tile_.rows, dim, to, pairs * kernels.value_panel);
  } else {
    call_.backward.products.take_rows(from, tile_.rows, dim, to, padded);
  }
  float* const words = to + pairs * padded;
  if (tile_.keys_are_rows) {
    kernels.pack_keys(from, tile_.rows, dim, words);
  } else {
    copy_words(from, tile_.rows, dim, words);
  }
  of_scores = words;
}

bool BackwardBlock::all_finite(const kernels::Operand& query, const kernels::Operand& out_gradient) noexcept {
  const auto finite = [&](const kernels::Operand& rows, std::int64_t count, std::int64_t dim) {
    return call_.kernels.all_finite(rows, count, dim);
  };
  if (keys_finite_ == Finite::unknown) {
    keys_finite_ = finite(key_, tile_.keys, tile_.head_dim) ? Finite::yes : Finite::no;
  }
  return keys_finite_ == Finite::yes && finite(query, tile_.rows, tile_.head_dim) &&
         finite(out_gradient, tile_.rows, tile_.value_dim);
}

void BackwardBlock::take_log_sum_exp(std::int64_t head, std::int64_t first_row) noexcept {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  auto* const minus_log_sum_exp = part_of(call_, worker_, call_.plan.minus_log_sum_exp);
  auto* const large_maximum = part_of(call_, worker_, call_.plan.large_maximum);
  tile_.large_maximum = nullptr;
  for (std::int64_t r = 0; r < tile_.rows; ++r) {
    const float log_sum_exp = call_.operands.log_sum_exp(sample_, head, sequence_.first_query + first_row + r);
    minus_log_sum_exp[r] = -in_log2(log_sum_exp);
    if (log_sum_exp == -kInfinity) {
      minus_log_sum_exp[r] = -kInfinity;
    } else if (call_.running_sums != nullptr && is_large_row(minus_log_sum_exp[r])) {
      const kernels::RunningSum& sum = call_.running_sums_of(sample_, head)[sequence_.first_query + first_row + r];
      if (sum.sum == 0.0f) {  // nothing is added up yet, and its logarithm would be a trap
        minus_log_sum_exp[r] = -kInfinity;
        continue;
      }
      if (tile_.large_maximum == nullptr) std::fill_n(large_maximum, tile_.rows, 0.0f);
      tile_.large_maximum = large_maximum;
      large_maximum[r] = sum.maximum;
      minus_log_sum_exp[r] = -std::log2(sum.sum);
    }
  }
}

bool BackwardBlock::take_rows(std::int64_t head, std::int64_t first_row, std::int64_t rows) noexcept {
  if (!find_intervals(first_row, rows)) return false;
  const BackwardPlan& plan = call_.plan;
  const std::int64_t query = sequence_.first_query + first_row;
  tile_.rows = rows;
  tile_.delta = call_.delta(sample_, head) + query;
  tile_.first_row = {static_cast<std::uint32_t>(first_row), call_.heads(sample_, head)};
  const TypedView<4>& queries = call_.operands.query;
  const TypedView<4>& out_gradients = call_.operands.out_gradient;
  const kernels::Operand query_rows = rows_at(queries, sample_, query, head);
  const kernels::Operand gradient_rows = rows_at(out_gradients, sample_, query, head);
  bring_rows(query_rows, tile_.head_dim, plan.padded_head_dim, part_of(call_, worker_, plan.query), tile_.query,
             tile_.query_of_sums);
  bring_rows(gradient_rows, tile_.value_dim, plan.padded_value_dim, part_of(call_, worker_, plan.out_gradient),
             tile_.out_gradient, tile_.out_gradient_of_sums);
  const std::int64_t next = std::min(first_row + rows, sequence_.queries - 1) + sequence_.first_query;
  tile_.next_query = rows_at(queries, sample_, next, head);
  tile_.next_out_gradient = rows_at(out_gradients, sample_, next, head);
  tile_.next_rows = std::min(rows, sequence_.queries - first_row - rows);
  take_log_sum_exp(head, first_row);
  if (has_row_modifiers(call_.options)) take_modifiers(head, first_row);
  const bool hides = !tile_.whole || call_.options.mask;
  tile_.exactly = hides && !all_finite(query_rows, gradient_rows);
  return true;
}

}  // namespace headlight::ops
