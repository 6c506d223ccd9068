#include "headlight/layers/multi_head_attention.h"
#include "layers/gradient_places.h"
#include "layers/multi_head_attention_buffers.h"
#include "layers/parameter_list.h"
#include "layers/product.h"
#include "layers/saved_state.h"
#include "layers/segments.h"
#include "ops/attention_check.h"
#include "ops/check.h"
#include "ops/in_place.h"

namespace headlight {

namespace {

constexpr std::string_view kName = "MultiHeadAttention";

// [B, H, Lq]
View<float, 3> log_sum_exp_at(std::byte* memory, const runtime::ScratchPart<float>& part,
                              const View<const float, 3>& query, std::int64_t heads) noexcept {
  return {memory == nullptr ? nullptr : part.in(memory), {query.extent(0), heads, query.extent(1)}};
}

// What the attention keeps beside it, [B, H, Lq, columns].
View<float, 4> kept_at(std::byte* memory, runtime::ScratchLayout& layout, const View<const float, 3>& query,
                       std::int64_t heads, std::int64_t columns) noexcept {
  const auto part = layout.add<float>(query.extent(0), heads, query.extent(1), columns);
  return {part.in(memory), {query.extent(0), heads, query.extent(1), columns}};
}

// The options of a call in training.
AttentionOptions options_of(const MultiHeadAttention::Kept& kept) {
  AttentionOptions options = kept.options;
  options.dropout = kept.dropout;
  return options;
}

void check_places(const View<const float, 3>& query, const View<const float, 3>& key, const View<const float, 3>& value,
                  const AttentionOptions& options, const View<const float, 3>& out_gradient,
                  const MultiHeadAttentionGradients& gradients) {
  ops::check_view(kName, "out_gradient", out_gradient);
  ops::check_shape(kName, "out_gradient", out_gradient.shape, query.shape, "[B, Lq, E]");
  if (gradients.residual) {
    ops::check_view(kName, "residual", gradients.residual);
    ops::check_shape(kName, "residual", gradients.residual.shape, query.shape, "[B, Lq, E]");
  }
  if (gradients.bias && !options.bias) {
    ops::fail(kName, "bias's gradient is asked for, expected none: forward() was given no bias");
  }
  const auto check_gradient = [&](std::string_view name, const auto& gradient, const auto& input) {
    if (gradient) ops::check_shape(kName, name, gradient.shape, input.shape, "the shape of its input");
    const layers::GradientPlace place(kName, name, gradient);
    place.apart_from("query", query).apart_from("key", key).apart_from("value", value);
    place.apart_from("options.bias", options.bias);
    if (options.mask) place.apart_from("options.mask", options.mask->entries);
    return place;
  };
  check_gradient("query's gradient", gradients.query, query)
      .same_as_or_apart_from("out_gradient", out_gradient)
      .same_as_or_apart_from("residual", gradients.residual);
  check_gradient("key's gradient", gradients.key, key)
      .apart_from("out_gradient", out_gradient)
      .apart_from("residual", gradients.residual)
      .apart_from("query's gradient", gradients.query);
  check_gradient("value's gradient", gradients.value, value)
      .apart_from("out_gradient", out_gradient)
      .apart_from("residual", gradients.residual)
      .apart_from("query's gradient", gradients.query)
      .apart_from("key's gradient", gradients.key);
  check_gradient("bias's gradient", gradients.bias, options.bias)
      .apart_from("out_gradient", out_gradient)
      .apart_from("residual", gradients.residual)
      .apart_from("query's gradient", gradients.query)
      .apart_from("key's gradient", gradients.key)
      .apart_from("value's gradient", gradients.value);
}

}  // namespace

std::size_t MultiHeadAttention::saved_bytes(const MultiHeadAttentionShape& shape, std::int64_t kept_columns) const {
  runtime::ScratchLayout layout = Buffers(*this, shape).layout;
  layout.add<float>(shape.batch, options_.heads, shape.query_length);
  layout.add<float>(shape.batch, options_.heads, shape.query_length, kept_columns);
  return layout.bytes();
}

void MultiHeadAttention::forward(Engine& engine, View<const float, 3> query, View<const float, 3> key,
                                 View<const float, 3> value, View<float, 3> out, SavedState& saved,
                                 const TrainingStep& step, const AttentionOptions& options,
                                 View<const float, 3> residual) const {
  check_inputs_and_out(query, key, value, out, residual);
  layers::check_training_options(kName, options);
  check_output_places(options, {}, query, key, value, out, residual);
  const ops::Extent out_extent = ops::check_view(kName, "out", out);
  ops::check_disjoint(kName, "out", out_extent, "query", ops::check_view(kName, "query", query));
  ops::check_disjoint(kName, "out", out_extent, "key", ops::check_view(kName, "key", key));
  ops::check_disjoint(kName, "out", out_extent, "value", ops::check_view(kName, "value", value));
  const MultiHeadAttentionShape shape = {query.extent(0), query.extent(1), key.extent(1), inputs_of(query, key, value)};
  const bool keeps = layers::keeps_linear(saved.checkpoint());
  const std::size_t bytes = saved_bytes(shape, saved.attention().kept_columns(shape.key_length, options));
  Kept kept = {.memory = saved.begin(keeps ? bytes : 0),
               .options = options,
               .dropout = step.dropout(options_.dropout, 0),
               .attention = &saved.attention()};
  const runtime::Scratch scratch(engine, keeps ? 0 : bytes, kName);
  if (!keeps) kept.memory = scratch.data();
  forward_from(engine, query, key, value, out, kept, residual);
  saved.commit({.layer = this,
                .made_with = layers::made_with(options_),
                .shape = {shape.batch, shape.query_length, shape.key_length},
                .step = step,
                .options = {options},
                .inputs = static_cast<int>(shape.inputs)});
}

void MultiHeadAttention::forward_from(Engine& engine, View<const float, 3> query, View<const float, 3> key,
                                      View<const float, 3> value, View<float, 3> out, const Kept& kept,
                                      View<const float, 3> residual) const {
  Buffers buffers(*this, {query.extent(0), query.extent(1), key.extent(1), inputs_of(query, key, value)});
  const auto log_sum_exp = buffers.layout.add<float>(query.extent(0), options_.heads, query.extent(1));
  project_all(engine, buffers, kept.memory, query, key, value);
  const auto [q, k, v] = buffers.split(kept.memory);
  const View<float, 3> heads = buffers.view(kept.memory, buffers.heads);
  AttentionOptions options = options_of(kept);
  options.log_sum_exp = log_sum_exp_at(kept.memory, log_sum_exp, query, options_.heads);
  const View<const float, 4> queries = layers::split_heads<const float>(q, options_.heads);
  const View<const float, 4> keys_of_heads = layers::split_heads<const float>(k, options_.key_value_heads);
  const View<const float, 4> values_of_heads = layers::split_heads<const float>(v, options_.key_value_heads);
  kept.attention->forward(
      engine, queries, keys_of_heads, values_of_heads, layers::split_heads(heads, options_.heads),
      kept_at(kept.memory, buffers.layout, query, options_.heads, kept.attention->kept_columns(key.extent(1), options)),
      options);
  const View<const float, 3> mixed = mix_heads(engine, query, heads, buffers.view(kept.memory, buffers.mixing),
                                               buffers.view(kept.memory, buffers.mixed));
  if (out) merge_heads(engine, mixed, out, residual);
}

void MultiHeadAttention::backward(Engine& engine, View<const float, 3> query, View<const float, 3> key,
                                  View<const float, 3> value, const SavedState& saved,
                                  View<const float, 3> out_gradient, const MultiHeadAttentionGradients& gradients) {
  layers::check_training(kName, projections_[0].gradient());
  layers::check_saved(kName, saved, this, layers::made_with(options_),
                      {query.extent(0), query.extent(1), key.extent(1)});
  check_inputs(query, key, value);
  check_places(query, key, value, saved.call().options[0], out_gradient, gradients);
  const SavedState::Call& call = saved.call();
  const MultiHeadAttentionShape shape = {query.extent(0), query.extent(1), key.extent(1), inputs_of(query, key, value)};
  // Inputs that are one tensor share a product and its place, so equal copies would be looked for elsewhere.
  if (call.inputs != static_cast<int>(shape.inputs)) {
    ops::fail(kName, "query, key and value are not the tensors that forward() was given, expected the same");
  }
  const std::size_t bytes = saved_bytes(shape, saved.attention().kept_columns(shape.key_length, call.options[0]));
  Kept kept = {.memory = saved.data(),
               .options = call.options[0],
               .dropout = call.step.dropout(options_.dropout, 0),
               .attention = &saved.attention()};
  if (layers::keeps_linear(saved.checkpoint())) {
    backward_from(engine, query, key, value, kept, out_gradient, gradients);
    return;
  }
  const runtime::Scratch scratch(engine, bytes, kName);
  kept.memory = scratch.data();
  kept.options = ops::without_outputs(kept.options);
  forward_from(engine, query, key, value, {}, kept, {});
  backward_from(engine, query, key, value, kept, out_gradient, gradients);
}

// The lines of forward_from(), from the last to the first.
void MultiHeadAttention::backward_from(Engine& engine, View<const float, 3> query, View<const float, 3> key,
                                       View<const float, 3> value, const Kept& kept, View<const float, 3> out_gradient,
                                       const MultiHeadAttentionGradients& gradients) {
  layers::check_training(kName, projections_[0].gradient());
  Buffers buffers(*this, {query.extent(0), query.extent(1), key.extent(1), inputs_of(query, key, value)});
  // The gradients of what lies in kept.memory; that of weights is one a query even where all share them.
  Buffers made = buffers;
  Buffers::Buffer mixing;
  if (learned_mixing_columns() > 0) mixing = made.add(query.extent(1), learned_mixing_columns());
  const runtime::Scratch scratch(engine, made.layout.bytes(), kName);
  const auto log_sum_exp = buffers.layout.add<float>(query.extent(0), options_.heads, query.extent(1));
  const View<const float, 3> heads = buffers.view(kept.memory, buffers.heads);
  const View<float, 3> heads_gradient = buffers.view(scratch.data(), buffers.heads);
  const bool mixes = options_.merge != Merge::concatenate;
  const View<const float, 3> mixed = mixes ? buffers.view(kept.memory, buffers.mixed) : heads;
  const View<float, 3> mixed_gradient = mixes ? buffers.view(scratch.data(), buffers.mixed) : heads_gradient;
  layers::for_each_matrix(
      query.extent(0),
      [&](View<const float, 2> rows, View<const float, 2> from, View<float, 2> to) {
        output_.backward(engine, rows, from, to);
      },
      mixed, out_gradient, mixed_gradient);
  View<const float, 3> query_residual = gradients.residual;
  if (mixes) {
    query_residual =
        mix_heads_backward(engine, query, {heads, buffers.view(kept.memory, buffers.mixing)}, mixed_gradient,
                           made.view(scratch.data(), mixing), heads_gradient, gradients.query, query_residual);
  }
  if (gradients.visit.visitor != nullptr) {
    gradients.visit.visitor->visit(engine, gradients.visit.layer, heads, heads_gradient);
  }

  const auto [q, k, v] = buffers.split(kept.memory);
  const auto [q_gradient, k_gradient, v_gradient] = buffers.split(scratch.data());
  const AttentionOptions options = options_of(kept);
  const AttentionGradients into = {.query = layers::split_heads(q_gradient, options_.heads),
                                   .key = layers::split_heads(k_gradient, options_.key_value_heads),
                                   .value = layers::split_heads(v_gradient, options_.key_value_heads),
                                   .bias = gradients.bias};
  const View<const float, 4> split_q = layers::split_heads<const float>(q, options_.heads);
  const View<const float, 4> split_k = layers::split_heads<const float>(k, options_.key_value_heads);
  const View<const float, 4> split_v = layers::split_heads<const float>(v, options_.key_value_heads);
  const View<const float, 4> split_gradient = layers::split_heads<const float>(heads_gradient, options_.heads);
  kept.attention->backward(
      engine, split_q, split_k, split_v, layers::split_heads(heads, options_.heads),
      log_sum_exp_at(kept.memory, log_sum_exp, query, options_.heads),
      kept_at(kept.memory, buffers.layout, query, options_.heads, kept.attention->kept_columns(key.extent(1), options)),
      split_gradient, into, options);

  const auto buffer = [&](Group group) { return View<const float, 3>(buffers.view(scratch.data(), group)); };
  const auto added = [&](const View<float, 3>& gradient) {
    return gradients.accumulate_key_and_value ? View<const float, 3>(gradient) : View<const float, 3>();
  };
  switch (buffers.inputs) {
    case SharedInputs::all:
      return project_backward(engine, kAll, query, buffer(kAll), gradients.query, query_residual);
    case SharedInputs::key_and_value:
      project_backward(engine, kQuery, query, buffer(kQuery), gradients.query, query_residual);
      return project_backward(engine, kKeyValue, key, buffer(kKeyValue), gradients.key, added(gradients.key));
    case SharedInputs::none:
      project_backward(engine, kQuery, query, buffer(kQuery), gradients.query, query_residual);
      project_backward(engine, kKey, key, buffer(kKey), gradients.key, added(gradients.key));
      return project_backward(engine, kValue, value, buffer(kValue), gradients.value, added(gradients.value));
  }
}

void MultiHeadAttention::project_backward(Engine& engine, Group group, View<const float, 3> x,
                                          View<const float, 3> projected_gradient, View<float, 3> x_gradient,
                                          View<const float, 3> residual) {
  const Place place = place_of(group);
  const std::span<float> bias_gradient = layers::some_of(projection_bias_gradient_, rows_of(group));
  layers::for_each_matrix(
      x.extent(0),
      [&](View<const float, 2> in, View<const float, 2> from, View<float, 2> to, View<const float, 2> added) {
        layers::multiply_backward(engine, in, projections_[place.matrix], place.rows, from, bias_gradient, to, added);
      },
      x, projected_gradient, x_gradient, residual);
}

}  // namespace headlight
