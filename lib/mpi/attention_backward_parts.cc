#include "mpi/attention_backward_parts.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <span>
#include <string_view>

#include "kernels/kernels.h"
#include "mpi/distance_bias.h"
#include "ops/attention/rows.h"
#include "ops/attention_backward/run.h"
#include "ops/check.h"
#include "runtime/costs.h"
#include "runtime/parallel.h"
#include "simd/integers.h"

namespace headlight::mpi {
namespace {

constexpr std::string_view kBackwardOfParts = "attention_backward";

ops::AttentionSizes part_sizes(ops::AttentionSizes sizes, std::int64_t queries, std::int64_t keys) noexcept {
  sizes.query_length = queries;
  sizes.key_length = keys;
  return sizes;
}

}  // namespace

BackwardPart::BackwardPart(const Engine& engine, const Whole& whole, std::int64_t first_query, std::int64_t queries,
                           std::int64_t keys) noexcept
    : whole_(whole),
      call_{
          .operands = operands_,
          .keys = {},
          .gradients = gradients_,
          .options = whole_.options,
          .sizes = part_sizes(whole.sizes, queries, keys),
          .sequences = {whole_.options, whole.sizes.query_length, whole.sizes.key_length, first_query},
          .kernels = whole_.kernels.attention,
          .backward = whole_.kernels.backward,
          .plan = ops::plan_attention_backward(engine, whole.kernels.attention, part_sizes(whole.sizes, queries, keys)),
          .scale = 0.0f,
          .modifiers = {},
          .dropout = ops::dropout_of(whole_.options),
          .heads = whole.heads,
          .scratch = nullptr,
          .deltas = nullptr,
          .running_sums = nullptr,
          .sums = {},
          .narrow_sums = nullptr} {
  whole_.options.bias = rows_of_bias(whole.options.bias, first_query, queries);
  ops::set_scale(call_);
}

void BackwardPart::plan_workers(const Engine& engine, std::int64_t tasks) noexcept {
  // Beside them little else is done, and pieces are of hundreds of rows or keys.
  const ops::AttentionSizes& sizes = call_.sizes;
  const double products = static_cast<double>(sizes.batch * sizes.query_heads) *
                          static_cast<double>(sizes.query_length) * static_cast<double>(sizes.key_length) *
                          static_cast<double>(2 * sizes.head_dim + sizes.value_dim);
  call_.plan.workers = runtime::workers_for(
      engine, tasks,
      products / (runtime::costs::kVectorProductsOfAttention * call_.kernels.lanes * call_.kernels.numbers_of_word));
}

QueryGradientRows::QueryGradientRows(Engine& engine, const Whole& whole, std::int64_t first_query,
                                     const ops::AttentionBackwardOperands& rows, const MutableTypedView<4>& gradient)
    : BackwardPart(engine, whole, first_query, rows.query.extent(1), whole.sizes.key_length),
      first_query_(first_query),
      gradient_(gradient),
      delta_({rows.query.extent(0), rows.query.extent(2), rows.query.extent(1)}) {
  operands_ = rows;
  if (!ops::is_narrow(gradient)) gradients_.query = gradient;
  call_.deltas = delta_.data();
  const ops::AttentionSizes& sizes = call_.sizes;
  // As few rows as leave every worker some, for each task packs its keys for itself.
  const std::int64_t heads = std::max<std::int64_t>(sizes.batch * sizes.key_value_heads, 1);
  const std::int64_t parts = divide_up(4 * std::int64_t{engine.threads()}, heads);
  rows_of_task_ = engine.threads() == 1 ? std::max<std::int64_t>(sizes.query_length, 1)
                                        : round_up(divide_up(std::max<std::int64_t>(sizes.query_length, 1), parts),
                                                   call_.plan.query_block);
  plan_workers(engine, heads * divide_up(sizes.query_length, rows_of_task_));
}

void QueryGradientRows::begin(Engine& engine) noexcept { ops::begin_rows(engine, call_); }

std::int64_t QueryGradientRows::room() const noexcept {
  return ops::is_narrow(gradient_) ? delta_.size() * call_.plan.padded_head_dim : 0;
}

void QueryGradientRows::begin_sums(float* room) noexcept {
  if (!ops::is_narrow(gradient_)) return;
  gradients_.query = gradient_;
  call_.narrow_sums = room;
  std::fill_n(room, this->room(), 0.0f);
}

void QueryGradientRows::finish(Engine& engine) noexcept {
  if (call_.narrow_sums != nullptr) ops::round_query_gradient(engine, call_);
}

void QueryGradientRows::attend(Engine& engine, const TypedView<4>& key, const TypedView<4>& value,
                               std::int64_t first_key, std::int64_t from, std::int64_t to) {
  const ops::AttentionSizes& sizes = call_.sizes;
  const std::int64_t row_tasks = divide_up(sizes.query_length, rows_of_task_);
  const runtime::Scratch scratch(engine, call_.plan.bytes(), kBackwardOfParts);
  call_.scratch = scratch.data();
  call_.keys = {key, value, first_key};
  runtime::parallel_for(engine, sizes.batch * sizes.key_value_heads * row_tasks, call_.plan.workers,
                        [&](std::int64_t task, int worker) {
                          const std::int64_t head = task / row_tasks;
                          const std::int64_t first = task % row_tasks * rows_of_task_;
                          attend_rows(head / sizes.key_value_heads, head % sizes.key_value_heads, first,
                                      std::min(first + rows_of_task_, sizes.query_length), worker, from, to);
                        });
}

// Rows [first, last) of the tensor.
void QueryGradientRows::attend_rows(std::int64_t sample, std::int64_t head, std::int64_t first, std::int64_t last,
                                    int worker, std::int64_t from, std::int64_t to) noexcept {
  for_each_block(sample, first, last, from, to,
                 [&](const ops::AttentionSequence& sequence, std::int64_t key, std::int64_t keys,
                     std::int64_t first_row, std::int64_t last_row) {
                   ops::BackwardBlock block(call_, worker, sample, head, sequence, key, keys);
                   for (std::int64_t h = head * call_.sizes.group; h < (head + 1) * call_.sizes.group; ++h) {
                     for (std::int64_t row = first_row; row < last_row; row += call_.plan.query_block) {
                       if (!block.take_rows(h, row, std::min(call_.plan.query_block, last_row - row))) continue;
                       block.tile().query_gradient = call_.query_sums(sample, h, sequence.first_query + row);
                       call_.backward.products.score_gradients(block.tile());
                       call_.backward.products.query_gradient(block.tile());
                     }
                   }
                 });
}

bool KeyGradientKeys::sums_lie_apart(const Whole& whole, const MutableTypedView<4>& gradient) noexcept {
  return gradient.type != NumberType::float32 || gradient.extent(3) % whole.kernels.attention.lanes != 0;
}

KeyGradientKeys::Sums KeyGradientKeys::sums_of(const Whole& whole, const MutableTypedView<4>& gradient) noexcept {
  const bool apart = gradient && sums_lie_apart(whole, gradient);
  return {gradient, apart ? round_up(gradient.extent(3), whole.kernels.attention.lanes) : 0};
}

std::int64_t KeyGradientKeys::Sums::size() const noexcept {
  return gradient.extent(0) * gradient.extent(1) * gradient.extent(2) * padded;
}

void KeyGradientKeys::Sums::clear(float* in) noexcept {
  if (!gradient) return;
  room = in;
  std::fill_n(room, size(), 0.0f);
  const std::size_t bytes = static_cast<std::size_t>(gradient.extent(3)) * bytes_of(gradient.type);
  for (std::int64_t b = 0; b < gradient.extent(0); ++b) {
    for (std::int64_t j = 0; j < gradient.extent(1); ++j) {
      for (std::int64_t h = 0; h < gradient.extent(2); ++h) std::memset(ops::row_at(gradient, b, j, h), 0, bytes);
    }
  }
}

kernels::Rows<float> KeyGradientKeys::Sums::from(std::int64_t sample, std::int64_t head,
                                                 std::int64_t key) const noexcept {
  if (!gradient) return {nullptr, 0};
  if (padded != 0) {
    const std::int64_t row = (sample * gradient.extent(2) + head) * gradient.extent(1) + key;
    return {room + row * padded, padded};
  }
  return {static_cast<float*>(ops::row_at(gradient, sample, key, head)),
          gradient.extent(1) > 1 ? gradient.stride(1) : gradient.extent(3)};
}

KeyGradientKeys::KeyGradientKeys(Engine& engine, const Whole& whole, std::int64_t first_key, const TypedView<4>& key,
                                 const TypedView<4>& value, const MutableTypedView<4>& key_gradient,
                                 const MutableTypedView<4>& value_gradient)
    : BackwardPart(engine, whole, 0, 0, key.extent(1)),
      first_key_(first_key),
      keys_(key.extent(1)),
      heads_(whole.heads),
      group_(whole.sizes.group),
      all_slopes_(whole.options.alibi.begin(), whole.options.alibi.end()),
      all_biases_(whole.options.bias),
      key_(sums_of(whole, key_gradient)),
      value_(sums_of(whole, value_gradient)) {
  call_.sizes.query_heads = call_.sizes.key_value_heads;
  call_.sizes.group = 1;
  call_.keys = {key, value, first_key};
  if (!all_slopes_.empty()) slopes_.resize(static_cast<std::size_t>(call_.sizes.key_value_heads));
  find_tiles();
}

std::size_t KeyGradientKeys::scratch_bytes(const Engine& engine) const noexcept {
  ops::CallPlan plan = call_.plan;
  const std::int64_t tasks = call_.sizes.batch * call_.sizes.key_value_heads * static_cast<std::int64_t>(tiles_.size());
  plan.workers = static_cast<int>(std::clamp<std::int64_t>(tasks, 1, engine.threads()));
  return plan.bytes();
}

void KeyGradientKeys::begin_sums(float* room) noexcept {
  key_.clear(room);
  value_.clear(room + key_.size());
}

void KeyGradientKeys::find_tiles() {
  const std::int64_t last = first_key_ + keys_;
  for (std::int64_t key = first_key_; key < last;) {
    const std::span<const std::int64_t> offsets = ops::packed_key_offsets(call_.options);
    const std::int64_t end =
        offsets.empty() ? last : std::min(last, *std::upper_bound(offsets.begin(), offsets.end() - 1, key));
    for (; key < end; key += call_.plan.key_block) {
      tiles_.push_back({key - first_key_, std::min(key + call_.plan.key_block, end) - first_key_});
    }
    key = end;
  }
}

void KeyGradientKeys::attend(Engine& engine, const Rows& rows, std::int64_t from, std::int64_t to) {
  operands_.query = rows.query;
  operands_.out_gradient = rows.out_gradient;
  operands_.log_sum_exp = rows.log_sum_exp;
  call_.deltas = rows.delta;
  first_query_ = rows.first_query;
  call_.sizes.query_length = rows.query.extent(1);
  call_.sequences = {call_.options, whole_.sizes.query_length, whole_.sizes.key_length, rows.first_query};
  call_.heads = {heads_.all, heads_.first + rows.group_head * heads_.stride, group_ * heads_.stride};
  for (std::size_t h = 0; h < slopes_.size(); ++h) {
    slopes_[h] = all_slopes_[h * static_cast<std::size_t>(group_) + static_cast<std::size_t>(rows.group_head)];
  }
  whole_.options.alibi = slopes_;
  whole_.options.bias = heads_of_bias(rows_of_bias(all_biases_, rows.first_query, call_.sizes.query_length),
                                      rows.group_head, call_.sizes.key_value_heads, group_);
  const std::int64_t heads = call_.sizes.key_value_heads;
  const auto tiles = static_cast<std::int64_t>(tiles_.size());
  plan_workers(engine, call_.sizes.batch * heads * tiles);
  const runtime::Scratch scratch(engine, call_.plan.bytes(), kBackwardOfParts);
  call_.scratch = scratch.data();
  runtime::parallel_for(
      engine, call_.sizes.batch * heads * tiles, call_.plan.workers, [&](std::int64_t task, int worker) {
        const std::int64_t head = task / tiles;
        attend_tile(head / heads, head % heads, tiles_[static_cast<std::size_t>(task % tiles)], worker, from, to);
      });
}

void KeyGradientKeys::attend_tile(std::int64_t sample, std::int64_t head, const ops::KeyInterval& tile, int worker,
                                  std::int64_t from, std::int64_t to) noexcept {
  const ops::AttentionSequence sequence = call_.sequences(sample, call_.sequences.of_key(first_key_ + tile.begin));
  const std::int64_t first = first_key_ + tile.begin - sequence.first_key;
  const std::int64_t last = std::min(first_key_ + tile.end - sequence.first_key, sequence.keys);
  if (first >= last) return;
  const ops::RowInterval rows = ops::IntervalRule(call_.options, sequence).rows_that_see(first, last);
  const std::int64_t size = call_.plan.query_block;
  // Rows of the sequence whose blocks end in (from, to], from and to counted in the whole call.
  const std::int64_t begins = sequence.first_query + first_query_;
  const std::int64_t last_row = std::min({to - begins, sequence.queries, rows.last});
  std::int64_t row = std::max<std::int64_t>({from - begins, 0, rows.first}) / size * size;
  if (row >= last_row) return;
  ops::BackwardBlock block(call_, worker, sample, head, sequence, first, last - first);
  kernels::BackwardTile& products = block.tile();
  products.key_gradient = key_.from(sample, head, tile.begin);
  products.value_gradient = value_.from(sample, head, tile.begin);
  for (; row < last_row; row += size) {
    const std::int64_t end = std::min(row + size, sequence.queries);
    if (end > to - begins || end <= from - begins || !block.take_rows(head, row, end - row)) continue;
    call_.backward.products.score_gradients(products);
    if (call_.backward.products.key_value_gradients != nullptr) call_.backward.products.key_value_gradients(products);
  }
}

void KeyGradientKeys::finish(Engine& engine) noexcept {
  const std::int64_t heads = call_.sizes.key_value_heads;
  const auto tiles = static_cast<std::int64_t>(tiles_.size());
  const auto give = [&](Sums& sums, std::int64_t sample, std::int64_t head, const ops::KeyInterval& tile,
                        std::int64_t count, float factor) {
    if (!sums.gradient) return;
    const kernels::Rows<float> from = sums.from(sample, head, tile.begin);
    call_.backward.rows.give_rows(from.data, from.stride, count, sums.gradient.extent(3), factor, false,
                                  sums.gradient.type, ops::row_at(sums.gradient, sample, tile.begin, head),
                                  count > 1 ? sums.gradient.stride(1) : 0);
  };
  runtime::parallel_for(engine, call_.sizes.batch * heads * tiles, engine.threads(), [&](std::int64_t task, int) {
    const std::int64_t head = task / tiles % heads, sample = task / tiles / heads;
    const ops::KeyInterval& tile = tiles_[static_cast<std::size_t>(task % tiles)];
    const ops::AttentionSequence sequence = call_.sequences(sample, call_.sequences.of_key(first_key_ + tile.begin));
    const std::int64_t count = std::min(tile.end, sequence.first_key + sequence.keys - first_key_) - tile.begin;
    if (count <= 0) return;  // padding, whose gradients are zeros
    give(key_, sample, head, tile, count, call_.scale);
    give(value_, sample, head, tile, count, 1.0f);
  });
}

BackwardBlocks backward_blocks(const Engine& engine, const kernels::AttentionKernels& kernels,
                               const ops::AttentionSizes& sizes) noexcept {
  const ops::BackwardPlan plan = ops::plan_attention_backward(engine, kernels, sizes);
  return {plan.key_block, plan.query_block};
}

}  // namespace headlight::mpi
