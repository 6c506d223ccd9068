#include "headlight/attention.h"

#include <algorithm>

#include "headlight/activation.h"
#include "headlight/attention_backward.h"
#include "headlight/head_rows.h"
#include "headlight/normalization.h"
#include "layers/heads.h"
#include "layers/network/operations.h"
#include "layers/network/relative_bias.h"
#include "layers/network/row_space.h"
#include "layers/rows.h"
#include "layers/summed_rows.h"
#include "layers/visited_heads.h"
#include "ops/attention/check.h"
#include "ops/attention/plan.h"
#include "ops/attention_backward/row_sums.h"
#include "runtime/parallel.h"

namespace headlight::layers {

namespace {

// [N, heads · D] of all rows, as [B, L, heads, D].
MutableTypedView<4> samples_of_heads(const GraphCall& call, const MutableTypedView<2>& rows,
                                     std::int64_t head_dim) noexcept {
  return split_heads(call.samples(rows), rows.extent(1) / head_dim);
}

// The biases of all distances in a sequence of which some rows are here alone: else they are a value.
class BiasOfWhole {
 public:
  // `table` is null where there is no such bias.
  BiasOfWhole(const GraphCall& call, const AttentionSpec& spec, const MatrixParameter* table)
      : heads_(spec.heads),
        distances_(table == nullptr || call.whole_rows() == call.tokens() ? 0 : 2 * call.whole_rows() - 1),
        memory_(call.engine(),
                distances_ == 0 ? 0 : static_cast<std::size_t>(heads_ * (distances_ + 1)) * sizeof(float),
                call.name()) {
    if (distances_ > 0) fill_by_distance(spec.relative_bias, *table, by_distance());
  }

  void give(AttentionOptions& options) const noexcept {
    if (distances_ > 0) options.bias = as_bias(by_distance());
  }

 private:
  [[nodiscard]] View<float, 2> by_distance() const noexcept {
    return {reinterpret_cast<float*>(memory_.data()), {heads_, distances_}};
  }

  std::int64_t heads_;
  std::int64_t distances_;
  runtime::Scratch memory_;
};

// So many heads, from that column on; without rows there is no memory.
MutableTypedView<4> some_heads(const MutableTypedView<3>& rows, std::int64_t first, std::int64_t heads,
                               std::int64_t head_dim) noexcept {
  const MutableTypedView<3> some(rows.type,
                                 rows.data == nullptr ? nullptr : kernels::numbers_behind(rows.data, first, rows.type),
                                 {rows.extent(0), rows.extent(1), heads * head_dim}, rows.strides);
  return split_heads(some, heads);
}

}  // namespace

AttentionOptions AttentionOperation::options(const GraphCall& call) const {
  AttentionOptions made = own_.memory ? *call.given().memory_attention : call.attention_options(block_);
  if (spec_.causal) made.causal = Causal::top_left;
  if (spec_.window_before >= 0 || spec_.window_after >= 0) made.window = {spec_.window_before, spec_.window_after};
  if (spec_.scale != 0) made.scale = spec_.scale;
  if (spec_.softcap != 0) made.softcap = spec_.softcap;
  if (own_.sinks != nullptr) made.sinks = own_.sinks->all();
  if (input(1) && call.tokens() > 0 && call.whole_rows() == call.tokens()) {
    made.bias = as_bias(RelativeBiasOperation::by_distance(call.floats(input(1), call.all_rows())));
  }
  if (call.is_training()) made.dropout = call.dropout(dropout_);
  return made;
}

const TrainingAttention& AttentionOperation::attention_of(const GraphCall& call) const noexcept {
  return own_.memory ? call.attention().of_memory() : call.attention();
}

std::size_t AttentionOperation::kept_bytes(const GraphCall& call) const {
  return kept(call, options(call), nullptr).bytes;
}

AttentionOperation::Kept AttentionOperation::kept(const GraphCall& call, const AttentionOptions& options,
                                                  std::byte* memory) const {
  const auto [batch, length, memory_length] = call.shape();
  const std::int64_t heads = spec_.heads;
  const std::int64_t columns = attention_of(call).kept_columns(own_.memory ? memory_length : length, options);
  runtime::ScratchLayout layout;
  const auto of_memory = layout.add<std::byte>(own_.memory ? own_.memory->bytes(call.shape(), call.activations()) : 0);
  const auto sums = layout.add<float>(batch, heads, length);
  const auto beside = layout.add<float>(batch, heads, length, columns);
  const auto placed = [memory](const auto& part) { return memory == nullptr ? nullptr : part.in(memory); };
  return {placed(of_memory),
          {placed(sums), {batch, heads, length}},
          {placed(beside), {batch, heads, length, columns}},
          layout.bytes()};
}

void AttentionOperation::forward(const GraphCall& call, const RowRange& rows) const {
  AttentionOptions asked = options(call);
  if (call.is_training()) return forward_in_training(call, rows, asked);
  const runtime::Scratch of_memory(call.engine(), memory_bytes(call.engine(), call.shape()), call.name());
  if (own_.memory)
    own_.memory->forward(call, own_.memory->placed(call, call.at(input(0), rows).type, of_memory.data()));
  const auto [query, key, value] = projected(call, rows, of_memory.data());
  HeadAccess wanted = call.heads(block_);
  // Each head is a part of what is concatenated; others are scaled behind this.
  if (spec_.merge != Merge::concatenate) wanted.scaled_outputs = {};
  // Whoever asks for the heads has them in float32. What reads them next rounds those, to the same bits.
  const View<float, 3> first = wanted.outputs ? wanted.outputs : wanted.scaled_outputs;
  const MutableTypedView<3> out = call.samples(call.at(output(), rows));
  const MutableTypedView<3> written = first ? MutableTypedView<3>(first) : out;
  const MutableTypedView<4> heads = split_heads(written, spec_.heads);
  if (query.type == NumberType::float32 && heads.type == NumberType::float32) {
    // Float32 has an entry of its own, with a faster route for short sequences.
    attention(call.engine(), floats_of(query), floats_of(key), floats_of(value), floats_of(heads), asked);
  } else {
    attention(call.engine(), query, key, value, heads, asked);
  }
  silence(wanted.silenced, written, spec_.head_dim);
  const auto copy_to = [&](const MutableTypedView<3>& to) {
    if (!to || to.data == written.data) return;
    for_each_matrix(
        written.extent(0),
        [&](const MutableTypedView<2>& some, const MutableTypedView<2>& copy) {
          head_rows(call.engine(), by_heads(some, spec_.head_dim), by_heads(copy, spec_.head_dim), {});
        },
        written, to);
  };
  copy_to(out);
  copy_to(wanted.scaled_outputs);
}

// As the attention of the step has it; over numbers of 16 bits there is one alone.
void AttentionOperation::forward_in_training(const GraphCall& call, const RowRange& rows,
                                             AttentionOptions options) const {
  const BiasOfWhole bias(call, spec_, own_.relative_bias);
  bias.give(options);
  const Kept kept = this->kept(call, options, call.beside(*this));
  if (own_.memory) own_.memory->forward(call, own_.memory->placed(call, call.activations(), kept.of_memory));
  const auto [query, key, value] = projected(call, rows, kept.of_memory);
  const MutableTypedView<4> out = samples_of_heads(call, call.at(output(), rows), spec_.head_dim);
  options.log_sum_exp = kept.log_sum_exp;
  if (call.activations() == NumberType::float32) {
    attention_of(call).forward(call.engine(), floats_of(query), floats_of(key), floats_of(value), floats_of(out),
                               kept.beside, options);
  } else {
    attention(call.engine(), query, key, value, out, options);
  }
}

AttentionOperation::Projected AttentionOperation::projected(const GraphCall& call, const RowRange& rows,
                                                            std::byte* of_memory) const {
  const std::int64_t of_query = spec_.heads * spec_.head_dim, of_key = spec_.key_value_heads * spec_.head_dim;
  const MutableTypedView<3> all = call.samples(call.at(input(0), rows));
  const MutableTypedView<3> key_value = own_.memory ? own_.memory->placed(call, all.type, of_memory) : all;
  const std::int64_t first = own_.memory ? 0 : of_query;
  return {some_heads(all, 0, spec_.heads, spec_.head_dim),
          some_heads(key_value, first, spec_.key_value_heads, spec_.head_dim),
          some_heads(key_value, first + of_key, spec_.key_value_heads, spec_.head_dim)};
}

void AttentionOperation::backward(const GraphCall& call, const RowRange& rows) {
  const std::int64_t of_query = spec_.heads * spec_.head_dim, of_key = spec_.key_value_heads * spec_.head_dim;
  AttentionOptions asked = options(call);
  const BiasOfWhole bias(call, spec_, own_.relative_bias);
  bias.give(asked);
  const Kept kept = this->kept(call, asked, call.beside(*this));
  const auto [query, key, value] = projected(call, rows, kept.of_memory);
  const MutableTypedView<4> out = samples_of_heads(call, call.at(output(), rows), spec_.head_dim);
  const VisitedHeads visited(call.engine(), call.name(), call.samples(call.at(output(), rows)),
                             call.samples(call.typed_gradient(output(), rows)), call.visit(block_));
  visited.pass_on(call.engine());
  const MutableTypedView<4> out_gradient = split_heads(visited.handed_on(), spec_.heads);
  const auto gradient = [&](std::int64_t first, std::int64_t columns) {
    return floats_of(samples_of_heads(call, call.gradient(input(0).part(first, columns), rows), spec_.head_dim));
  };
  AttentionGradients gradients = {.query = gradient(0, of_query)};
  const std::size_t bytes = own_.memory ? own_.memory->bytes(call.shape(), NumberType::float32) : 0;
  const runtime::Scratch of_memory(call.engine(), bytes, call.name());
  View<float, 3> key_value_gradient;
  if (own_.memory) {
    key_value_gradient = floats_of(own_.memory->placed(call, NumberType::float32, of_memory.data()));
    gradients.key = floats_of(some_heads(key_value_gradient, 0, spec_.key_value_heads, spec_.head_dim));
    gradients.value = floats_of(some_heads(key_value_gradient, of_key, spec_.key_value_heads, spec_.head_dim));
  } else {
    gradients.key = gradient(of_query, of_key);
    gradients.value = gradient(of_query + of_key, of_key);
  }
  if (call.activations() == NumberType::float32) {
    attention_of(call).backward(call.engine(), floats_of(query), floats_of(key), floats_of(value), floats_of(out),
                                kept.log_sum_exp, kept.beside, floats_of(out_gradient), gradients, asked);
  } else {
    attention_backward(call.engine(), query, key, value, out, kept.log_sum_exp, out_gradient, gradients, asked);
  }
  if (own_.memory) own_.memory->backward(call, key_value_gradient);
  const ops::AttentionBackwardOperands operands = {query, key, value, out, kept.log_sum_exp, out_gradient};
  if (own_.sinks != nullptr) differentiate_sinks(call, operands, asked);
  if (input(1) && asked.bias) differentiate_bias(call, operands, asked);
}

// Each row adds to those of all heads, whoever holds its keys.
void AttentionOperation::differentiate_sinks(const GraphCall& call, const ops::AttentionBackwardOperands& operands,
                                             const AttentionOptions& options) {
  const SummedRows summed(call.engine(), attention_of(call), call.shape().length, call.name());
  const runtime::Scratch memory(call.engine(), sink_bytes(spec_) * static_cast<std::size_t>(summed.sums()),
                                call.name());
  const View<float, 2> sums(reinterpret_cast<float*>(memory.data()), {summed.sums(), spec_.heads});
  ops::differentiate_rows(call.engine(), call.name(), operands, options, {.rows = summed.rows(), .sinks = sums});
  const std::span<float> gradient = own_.sinks->all_of_gradient();
  summed.for_each(call.engine(), gradient, [&](std::int64_t sum) {
    for (std::int64_t h = 0; h < spec_.heads; ++h) gradient[static_cast<std::size_t>(h)] += sums(sum, h);
  });
}

// By distance, which takes as much memory as the bias itself, and where there are shards as much for each of those that
// are held: keys, which the others may have to send, come once for all of them.
void AttentionOperation::differentiate_bias(const GraphCall& call, const ops::AttentionBackwardOperands& operands,
                                            const AttentionOptions& options) {
  const SummedRows summed(call.engine(), attention_of(call), call.shape().length, call.name());
  const std::int64_t sums = summed.sums(), distances = 2 * call.whole_rows() - 1;
  const runtime::Scratch memory(call.engine(),
                                distance_bytes(spec_, call.whole_rows()) * static_cast<std::size_t>(sums), call.name());
  const View<float, 3> by_distance(reinterpret_cast<float*>(memory.data()), {sums, spec_.heads, distances});
  if (call.activations() == NumberType::float32) {
    const auto floats = [](const TypedView<4>& view) {
      return View<const float, 4>(static_cast<const float*>(view.data), view.shape, view.strides);
    };
    attention_of(call).differentiate_distances(call.engine(), floats(operands.query), floats(operands.key),
                                               floats(operands.value), floats(operands.out), operands.log_sum_exp,
                                               floats(operands.out_gradient), by_distance, options);
  } else {
    ops::differentiate_rows(call.engine(), call.name(), operands, options,
                            {.rows = summed.rows(), .distances = by_distance});
  }
  const View<float, 2> gradient = own_.relative_bias->matrix.gradient();
  summed.for_each(call.engine(), {gradient.data, static_cast<std::size_t>(gradient.size())}, [&](std::int64_t sum) {
    const View<const float, 2> of_sum(&by_distance(sum, 0, 0), {spec_.heads, distances});
    add_bucket_gradients(spec_.relative_bias, of_sum, *own_.relative_bias);
  });
}

AttentionShape AttentionOperation::attention_shape(const BatchShape& shape) const noexcept {
  return {.batch = shape.batch,
          .query_length = shape.length,
          .key_length = own_.memory ? shape.memory_length : shape.length,
          .query_heads = spec_.heads,
          .key_value_heads = spec_.key_value_heads,
          .head_dim = spec_.head_dim,
          .value_dim = spec_.head_dim};
}

std::size_t AttentionOperation::memory_bytes(const Engine& engine, const BatchShape& shape) const noexcept {
  return own_.memory ? own_.memory->bytes(shape, own_.memory->type(engine, spec_.head_dim)) : 0;
}

// With what copies heads that somebody asks for.
Operation::Blocks AttentionOperation::workspace(const Engine& engine, const BatchShape& shape) const {
  const std::size_t of_rows = rows_workspace_bytes(engine, output().columns);
  if (!own_.memory) {
    const ops::AttentionSizes sizes = ops::check_attention_shape(layer_, attention_shape(shape));
    return {std::max(ops::attention_bytes_up_to(engine, sizes), of_rows)};
  }
  return {memory_bytes(engine, shape), std::max({headlight::workspace_bytes(engine, attention_shape(shape)), of_rows,
                                                 own_.memory->workspace_bytes(engine, shape)})};
}

void AttentionOperation::pack_weights(Engine& engine) const {
  if (own_.memory) own_.memory->pack_weights(engine);
}

}  // namespace headlight::layers
