#include <array>

#include "headlight/attention_backward.h"
#include "headlight/layers/multi_head_attention.h"
#include "layers/gradient_places.h"
#include "layers/layer_names.h"
#include "layers/multi_head_attention_buffers.h"
#include "layers/parameter_list.h"
#include "layers/product.h"
#include "layers/row_visitor.h"
#include "layers/saved_state.h"
#include "layers/segments.h"
#include "layers/visited_heads.h"
#include "ops/attention/check.h"
#include "ops/check.h"
#include "ops/rows/in_place.h"

namespace headlight {

namespace {

void check_places(const View<const float, 3>& query, const View<const float, 3>& key, const View<const float, 3>& value,
                  const AttentionOptions& options, const View<const float, 3>& out_gradient,
                  const MultiHeadAttentionGradients& gradients) {
  ops::check_view(layers::kMultiHeadAttentionName, "out_gradient", out_gradient);
  ops::check_shape(layers::kMultiHeadAttentionName, "out_gradient", out_gradient.shape, query.shape, "[B, Lq, E]");
  if (gradients.residual) {
    ops::check_view(layers::kMultiHeadAttentionName, "residual", gradients.residual);
    ops::check_shape(layers::kMultiHeadAttentionName, "residual", gradients.residual.shape, query.shape, "[B, Lq, E]");
  }
  if (gradients.bias && !options.bias) {
    ops::fail(layers::kMultiHeadAttentionName,
              "bias's gradient is asked for, expected none: forward() was given no bias");
  }
  const auto check_gradient = [&](std::string_view name, const auto& gradient, const auto& input) {
    if (gradient)
      ops::check_shape(layers::kMultiHeadAttentionName, name, gradient.shape, input.shape, "the shape of its input");
    const layers::GradientPlace place(layers::kMultiHeadAttentionName, name, gradient);
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

// What forward_from() kept of the attention, in the order in which it is placed.
struct MultiHeadAttention::KeptHeads {
  KeptHeads(const MultiHeadAttention& layer, const MultiHeadAttentionShape& shape, const Kept& given)
      : kept(given),
        options(given.options),
        buffers(layer, shape, Buffers::in_training(layer, given.activations)),
        heads(buffers.typed(given.memory, buffers.heads)) {
    options.dropout = given.dropout;
    const std::int64_t count = layer.options_.heads;
    const auto sums = buffers.layout.add<float>(shape.batch, count, shape.query_length);
    log_sum_exp = {sums.in(given.memory), {shape.batch, count, shape.query_length}};
    const std::int64_t columns = given.attention->kept_columns(shape.key_length, options);
    const auto part = buffers.layout.add<float>(shape.batch, count, shape.query_length, columns);
    beside = {part.in(given.memory), {shape.batch, count, shape.query_length, columns}};
  }

  const Kept& kept;
  AttentionOptions options;  // of a call in training
  Buffers buffers;
  MutableTypedView<3> heads;
  View<float, 3> log_sum_exp;  // [B, H, Lq]
  View<float, 4> beside;       // [B, H, Lq, columns], what the attention keeps for itself
};

std::size_t MultiHeadAttention::saved_bytes(const MultiHeadAttentionShape& shape, std::int64_t kept_columns,
                                            NumberType activations) const {
  runtime::ScratchLayout layout = Buffers(*this, shape, Buffers::in_training(*this, activations)).layout;
  layout.add<float>(shape.batch, options_.heads, shape.query_length);
  layout.add<float>(shape.batch, options_.heads, shape.query_length, kept_columns);
  return layout.bytes();
}

void MultiHeadAttention::forward(Engine& engine, View<const float, 3> query, View<const float, 3> key,
                                 View<const float, 3> value, View<float, 3> out, SavedState& saved,
                                 const TrainingStep& step, const AttentionOptions& options,
                                 View<const float, 3> residual) const {
  check_inputs_and_out(query, key, value, out, residual);
  layers::check_training_options(layers::kMultiHeadAttentionName, options);
  check_output_places(options, {}, query, key, value, out, residual);
  layers::check_rows(layers::kMultiHeadAttentionName, saved.attention(), query.extent(0), query.extent(1),
                     key.extent(1));
  const ops::Extent out_extent = ops::check_view(layers::kMultiHeadAttentionName, "out", out);
  ops::check_disjoint(layers::kMultiHeadAttentionName, "out", out_extent, "query",
                      ops::check_view(layers::kMultiHeadAttentionName, "query", query));
  ops::check_disjoint(layers::kMultiHeadAttentionName, "out", out_extent, "key",
                      ops::check_view(layers::kMultiHeadAttentionName, "key", key));
  ops::check_disjoint(layers::kMultiHeadAttentionName, "out", out_extent, "value",
                      ops::check_view(layers::kMultiHeadAttentionName, "value", value));
  const MultiHeadAttentionShape shape = {query.extent(0), query.extent(1), key.extent(1), inputs_of(query, key, value)};
  const bool keeps = layers::keeps_linear(saved.checkpoint());
  const std::size_t bytes =
      saved_bytes(shape, saved.attention().kept_columns(shape.key_length, options), saved.activations());
  Kept kept = {.memory = saved.begin(keeps ? bytes : 0),
               .options = options,
               .dropout = step.dropout(options_.dropout, 0),
               .attention = &saved.attention(),
               .activations = saved.activations()};
  const runtime::Scratch scratch(engine, keeps ? 0 : bytes, layers::kMultiHeadAttentionName);
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
  KeptHeads of(*this, {query.extent(0), query.extent(1), key.extent(1), inputs_of(query, key, value)}, kept);
  const Buffers& buffers = of.buffers;
  project_all(engine, kept.activations, buffers, kept.memory, query, key, value);
  of.options.log_sum_exp = of.log_sum_exp;
  if (kept.activations == NumberType::float32) {
    const auto [q, k, v] = buffers.split(kept.memory);
    kept.attention->forward(engine, layers::split_heads<const float>(q, options_.heads),
                            layers::split_heads<const float>(k, options_.key_value_heads),
                            layers::split_heads<const float>(v, options_.key_value_heads),
                            layers::split_heads(layers::floats_of(of.heads), options_.heads), of.beside, of.options);
  } else {
    attend(engine, buffers, kept.memory, of.heads, of.options);
  }
  TypedView<3> mixed = of.heads;
  if (options_.merge != Merge::concatenate) {
    mixed = mix_heads(engine, query, layers::floats_of(of.heads), buffers.view(kept.memory, buffers.mixing),
                      buffers.view(kept.memory, buffers.mixed));
  }
  if (out) merge_heads(engine, kept.activations, mixed, out, residual);
}

void MultiHeadAttention::backward(Engine& engine, View<const float, 3> query, View<const float, 3> key,
                                  View<const float, 3> value, const SavedState& saved,
                                  View<const float, 3> out_gradient, const MultiHeadAttentionGradients& gradients) {
  layers::check_training(layers::kMultiHeadAttentionName, projections_[0].gradient());
  layers::check_saved(layers::kMultiHeadAttentionName, saved, this, layers::made_with(options_),
                      {query.extent(0), query.extent(1), key.extent(1)});
  check_inputs(query, key, value);
  check_places(query, key, value, saved.call().options[0], out_gradient, gradients);
  const SavedState::Call& call = saved.call();
  const MultiHeadAttentionShape shape = {query.extent(0), query.extent(1), key.extent(1), inputs_of(query, key, value)};
  // Inputs that are one tensor share a product and its place, so equal copies would be looked for elsewhere.
  if (call.inputs != static_cast<int>(shape.inputs)) {
    ops::fail(layers::kMultiHeadAttentionName,
              "query, key and value are not the tensors that forward() was given, expected the same");
  }
  const std::size_t bytes =
      saved_bytes(shape, saved.attention().kept_columns(shape.key_length, call.options[0]), saved.activations());
  Kept kept = {.memory = saved.data(),
               .options = call.options[0],
               .dropout = call.step.dropout(options_.dropout, 0),
               .attention = &saved.attention(),
               .activations = saved.activations()};
  if (layers::keeps_linear(saved.checkpoint())) {
    backward_from(engine, query, key, value, kept, out_gradient, gradients);
    return;
  }
  const runtime::Scratch scratch(engine, bytes, layers::kMultiHeadAttentionName);
  kept.memory = scratch.data();
  kept.options = ops::without_outputs(kept.options);
  forward_from(engine, query, key, value, {}, kept, {});
  backward_from(engine, query, key, value, kept, out_gradient, gradients);
}

void MultiHeadAttention::attend_backward(Engine& engine, const KeptHeads& kept, const TypedView<3>& heads_gradient,
                                         const AttentionGradients& gradients) const {
  const std::int64_t of_query = options_.heads, of_key = options_.key_value_heads;
  if (kept.kept.activations == NumberType::float32) {
    const auto [q, k, v] = kept.buffers.split(kept.kept.memory);
    kept.kept.attention->backward(
        engine, layers::split_heads<const float>(q, of_query), layers::split_heads<const float>(k, of_key),
        layers::split_heads<const float>(v, of_key),
        layers::split_heads(View<const float, 3>(layers::floats_of(kept.heads)), of_query), kept.log_sum_exp,
        kept.beside, layers::split_heads(layers::floats_of(heads_gradient), of_query), gradients, kept.options);
    return;
  }
  const auto [q, k, v] = kept.buffers.split<BFloat16>(kept.kept.memory);
  attention_backward(engine, layers::split_heads(q, of_query), layers::split_heads(k, of_key),
                     layers::split_heads(v, of_key), layers::split_heads(kept.heads, of_query), kept.log_sum_exp,
                     layers::split_heads(heads_gradient, of_query), gradients, kept.options);
}

// The lines of forward_from(), from the last to the first.
void MultiHeadAttention::backward_from(Engine& engine, View<const float, 3> query, View<const float, 3> key,
                                       View<const float, 3> value, const Kept& kept, View<const float, 3> out_gradient,
                                       const MultiHeadAttentionGradients& gradients) {
  layers::check_training(layers::kMultiHeadAttentionName, projections_[0].gradient());
  const MultiHeadAttentionShape shape = {query.extent(0), query.extent(1), key.extent(1), inputs_of(query, key, value)};
  const KeptHeads of(*this, shape, kept);
  // The gradients of what lies in kept.memory; that of weights is one a query even where all share them.
  Buffers made(*this, shape, {.heads = of.heads.type});
  Buffers::Buffer mixing;
  if (learned_mixing_columns() > 0) mixing = made.add(query.extent(1), learned_mixing_columns());
  const runtime::Scratch scratch(engine, made.layout.bytes(), layers::kMultiHeadAttentionName);
  const MutableTypedView<3> heads_gradient = made.typed(scratch.data(), made.heads);
  const layers::VisitedHeads visited(engine, layers::kMultiHeadAttentionName, of.heads, heads_gradient,
                                     gradients.visit);
  const bool mixes = options_.merge != Merge::concatenate;
  const TypedView<3> mixed = mixes ? of.buffers.typed(kept.memory, of.buffers.mixed) : of.heads;
  const MutableTypedView<3> mixed_gradient = mixes ? made.typed(scratch.data(), made.mixed) : visited.gradient();
  const layers::RowVisitor rows_of_query = layers::rows_of_x(*kept.attention);
  rows_of_query.sum(
      engine, output_.gradients(), query.extent(0),
      [&](std::int64_t, const TypedView<2>& rows, View<const float, 2> from, const MutableTypedView<2>& to) {
        output_.backward_in_training(engine, kept.activations, rows, from, to, {});
      },
      mixed, out_gradient, mixed_gradient);
  View<const float, 3> query_residual = gradients.residual;
  if (mixes) {
    query_residual = mix_heads_backward(
        engine, query, {layers::floats_of(of.heads), of.buffers.view(kept.memory, of.buffers.mixing)},
        layers::floats_of(mixed_gradient), made.view(scratch.data(), mixing), layers::floats_of(heads_gradient),
        gradients.query, query_residual, rows_of_query);
  }
  visited.pass_on(engine);

  const auto [q_gradient, k_gradient, v_gradient] = made.split(scratch.data());
  attend_backward(engine, of, heads_gradient,
                  {.query = layers::split_heads(q_gradient, options_.heads),
                   .key = layers::split_heads(k_gradient, options_.key_value_heads),
                   .value = layers::split_heads(v_gradient, options_.key_value_heads),
                   .bias = gradients.bias});

  const auto back = [&](Group group, const View<const float, 3>& x, const View<float, 3>& x_gradient,
                        const View<const float, 3>& residual) {
    project_backward(engine, kept, group, x, made.view(scratch.data(), group), x_gradient, residual);
  };
  const auto added = [&](const View<float, 3>& gradient) {
    return gradients.accumulate_key_and_value ? View<const float, 3>(gradient) : View<const float, 3>();
  };
  switch (shape.inputs) {
    case SharedInputs::all:
      return back(kAll, query, gradients.query, query_residual);
    case SharedInputs::key_and_value:
      back(kQuery, query, gradients.query, query_residual);
      return back(kKeyValue, key, gradients.key, added(gradients.key));
    case SharedInputs::none:
      back(kQuery, query, gradients.query, query_residual);
      back(kKey, key, gradients.key, added(gradients.key));
      return back(kValue, value, gradients.value, added(gradients.value));
  }
}

void MultiHeadAttention::project_backward(Engine& engine, const Kept& kept, Group group, View<const float, 3> x,
                                          View<const float, 3> projected_gradient, View<float, 3> x_gradient,
                                          View<const float, 3> residual) {
  const bool of_queries = group == kQuery || group == kAll;
  const Place place = place_of(group);
  const std::span<float> bias_gradient = layers::some_of(projection_bias_gradient_, rows_of(group));
  const std::span<float> weight_gradient =
      layers::values_of(layers::rows_of(projections_[place.matrix].gradient(), place.rows));
  const layers::RowVisitor rows =
      of_queries ? layers::rows_of_x(*kept.attention) : layers::rows_of_memory(*kept.attention);
  rows.sum(
      engine, std::array{weight_gradient, bias_gradient}, x.extent(0),
      [&](std::int64_t, View<const float, 2> in, View<const float, 2> from, View<float, 2> to,
          View<const float, 2> added) {
        layers::multiply_backward(engine, kept.activations, {in, from, to, added, bias_gradient},
                                  projections_[place.matrix], place.rows);
      },
      x, projected_gradient, x_gradient, residual);
}

}  // namespace headlight
