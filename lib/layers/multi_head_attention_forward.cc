#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "headlight/attention.h"
#include "headlight/layers/multi_head_attention.h"
#include "layers/handed_on.h"
#include "layers/head_access.h"
#include "layers/layer_names.h"
#include "layers/multi_head_attention_buffers.h"
#include "layers/output_places.h"
#include "layers/parameter_list.h"
#include "layers/product.h"
#include "layers/rows.h"
#include "layers/sizes.h"
#include "ops/check.h"
#include "ops/rows/in_place.h"
#include "runtime/parallel.h"

namespace headlight {

namespace {

bool same_view(const View<const float, 3>& a, const View<const float, 3>& b) noexcept {
  return a.data == b.data && a.shape == b.shape && ops::are_same_places(a.shape, a.strides, b.strides);
}

}  // namespace

SharedInputs MultiHeadAttention::inputs_of(const View<const float, 3>& query, const View<const float, 3>& key,
                                           const View<const float, 3>& value) const noexcept {
  SharedInputs found = SharedInputs::none;
  if (same_view(key, value)) found = same_view(query, key) ? SharedInputs::all : SharedInputs::key_and_value;
  // Without rows, views of different widths may have everything else in common.
  return std::max(found, most_shared());
}

void MultiHeadAttention::check_inputs(const View<const float, 3>& query, const View<const float, 3>& key,
                                      const View<const float, 3>& value) const {
  ops::check_view(layers::kMultiHeadAttentionName, "query", query);
  ops::check_view(layers::kMultiHeadAttentionName, "key", key);
  ops::check_view(layers::kMultiHeadAttentionName, "value", value);
  const std::int64_t batch = query.extent(0);
  const auto expect = [](std::string_view name, const auto& view, std::array<std::int64_t, 3> shape,
                         std::string_view meaning) {
    ops::check_shape(layers::kMultiHeadAttentionName, name, view.shape, shape, meaning);
  };
  expect("query", query, {-1, -1, options_.width}, "[B, Lq, E]");
  expect("key", key, {batch, -1, options_.key_width}, "[B, Lk, key_width]");
  expect("value", value, {batch, key.extent(1), options_.value_width}, "[B, Lk, value_width]");
}

void MultiHeadAttention::check_inputs_and_out(const View<const float, 3>& query, const View<const float, 3>& key,
                                              const View<const float, 3>& value, const View<float, 3>& out,
                                              const View<const float, 3>& residual) const {
  check_inputs(query, key, value);
  const ops::Extent out_extent = ops::check_view(layers::kMultiHeadAttentionName, "out", out);
  ops::check_shape(layers::kMultiHeadAttentionName, "out", out.shape, query.shape, "[B, Lq, E]");
  ops::check_no_self_overlap(layers::kMultiHeadAttentionName, "out", out.shape, out.strides);
  if (!residual) return;
  const ops::Extent residual_extent = ops::check_view(layers::kMultiHeadAttentionName, "residual", residual);
  ops::check_shape(layers::kMultiHeadAttentionName, "residual", residual.shape, query.shape, "[B, Lq, E]");
  ops::check_same_or_disjoint(layers::kMultiHeadAttentionName, "out", out, out_extent, "residual", residual,
                              residual_extent);
}

void MultiHeadAttention::check_output_places(const AttentionOptions& options, const HeadAccess& access,
                                             const View<const float, 3>& query, const View<const float, 3>& key,
                                             const View<const float, 3>& value, const View<float, 3>& out,
                                             const View<const float, 3>& residual) {
  layers::OutputPlaces(layers::kMultiHeadAttentionName)
      .writes("heads.outputs", access.outputs)
      .writes("heads.scaled_outputs", access.scaled_outputs)
      .writes(layers::kOptions, options)
      .apart_from("query", query)
      .apart_from("key", key)
      .apart_from("value", value)
      .apart_from("out", out)
      .apart_from("residual", residual);
}

void MultiHeadAttention::project(Engine& engine, NumberType activations, Group group, View<const float, 3> x,
                                 const MutableTypedView<3>& projected) const {
  const Place place = place_of(group);
  const std::span<const float> bias = layers::some_of(projection_bias_, rows_of(group));
  layers::for_each_matrix(
      x.extent(0),
      [&](const View<const float, 2>& from, const MutableTypedView<2>& to) {
        layers::multiply_in_training(engine, activations, from, projections_[place.matrix], place.rows, to,
                                     {.bias = bias});
      },
      x, projected);
}

void MultiHeadAttention::project_all(Engine& engine, NumberType activations, const Buffers& buffers, std::byte* memory,
                                     View<const float, 3> query, View<const float, 3> key,
                                     View<const float, 3> value) const {
  const auto into = [&](Group group, const View<const float, 3>& x) {
    project(engine, activations, group, x, buffers.typed(memory, buffers.projected[group]));
  };
  switch (buffers.inputs) {
    case SharedInputs::all:
      return into(kAll, query);
    case SharedInputs::key_and_value:
      into(kQuery, query);
      return into(kKeyValue, key);
    case SharedInputs::none:
      into(kQuery, query);
      into(kKey, key);
      return into(kValue, value);
  }
}

MultiHeadAttention::Buffers MultiHeadAttention::inference_buffers(const Engine& engine,
                                                                  const MultiHeadAttentionShape& shape) const {
  NumberType product = layers::product_type(projections_[0]);
  for (const WeightMatrix& matrix : std::span(projections_).first(matrices().size())) {
    if (matrix.is_open()) product = NumberType::float32;
  }
  Buffers::Types types;
  // An odd number in a row is in no pair.
  if (options_.width / options_.heads % 2 == 0) types.projected = layers::handed_to_attention(engine, product);
  // Other merges compute with the heads.
  if (types.projected == NumberType::bfloat16 && options_.merge == Merge::concatenate) {
    types.heads = layers::handed_to_product(engine, product, output_.product_type());
  }
  return {*this, shape, types};
}

void MultiHeadAttention::attend(Engine& engine, const Buffers& buffers, std::byte* memory,
                                const MutableTypedView<3>& heads, const AttentionOptions& options) const {
  const std::int64_t of_query = options_.heads, of_key = options_.key_value_heads;
  if (buffers.types.projected == NumberType::bfloat16) {
    const auto [q, k, v] = buffers.split<BFloat16>(memory);
    attention(engine, layers::split_heads(q, of_query), layers::split_heads(k, of_key), layers::split_heads(v, of_key),
              layers::split_heads(heads, of_query), options);
  } else {
    const auto [q, k, v] = buffers.split<float>(memory);
    attention(engine, layers::split_heads<const float>(q, of_query), layers::split_heads<const float>(k, of_key),
              layers::split_heads<const float>(v, of_key), layers::split_heads(layers::floats_of(heads), of_query),
              options);
  }
}

void MultiHeadAttention::merge_heads(Engine& engine, NumberType activations, const TypedView<3>& heads,
                                     View<float, 3> out, View<const float, 3> residual) const {
  layers::for_each_matrix(
      out.extent(0),
      [&](const TypedView<2>& rows, View<float, 2> to, View<const float, 2> added) {
        output_.forward_in_training(engine, activations, rows, to, {.residual = added});
      },
      heads, out, residual);
}

void MultiHeadAttention::forward(Engine& engine, View<const float, 3> query, View<const float, 3> key,
                                 View<const float, 3> value, View<float, 3> out, const AttentionOptions& options,
                                 View<const float, 3> residual, const HeadAccess& access) const {
  check_inputs_and_out(query, key, value, out, residual);
  layers::check_head_access(access, options_.heads, query);
  check_output_places(options, access, query, key, value, out, residual);
  const Buffers buffers =
      inference_buffers(engine, {query.extent(0), query.extent(1), key.extent(1), inputs_of(query, key, value)});
  const runtime::Scratch memory(engine, buffers.layout.bytes(), layers::kMultiHeadAttentionName);
  project_all(engine, NumberType::float32, buffers, memory.data(), query, key, value);
  // Whoever asks for the heads has them in float32. The last product rounds those, to the same bits.
  const bool concatenates = options_.merge == Merge::concatenate;
  const View<float, 3> asked = access.outputs ? access.outputs
                               : concatenates ? access.scaled_outputs
                                              : View<float, 3>();
  const MutableTypedView<3> stored = asked ? MutableTypedView<3>(asked) : buffers.typed(memory.data(), buffers.heads);
  attend(engine, buffers, memory.data(), stored, options);
  layers::silence(access.silenced, stored, options_.width / options_.heads);
  if (stored.type != NumberType::float32) return merge_heads(engine, NumberType::float32, stored, out, residual);
  const View<float, 3> heads = layers::floats_of(stored);
  const View<float, 3> mixing = buffers.view(memory.data(), buffers.mixing);
  // Behind a gate heads still lie side by side.
  const bool takes_mixed = access.scaled_outputs && gates();
  const View<const float, 3> mixed = mix_heads(
      engine, query, heads, mixing, takes_mixed ? access.scaled_outputs : buffers.view(memory.data(), buffers.mixed));
  const bool has_scaled = takes_mixed || heads.data == access.scaled_outputs.data;
  if (access.scaled_outputs && !has_scaled) scale_heads(engine, heads, mixing, access.scaled_outputs);
  merge_heads(engine, NumberType::float32, mixed, out, residual);
}

namespace {

AttentionShape attention_shape(const MultiHeadAttentionOptions& options, const MultiHeadAttentionShape& shape) {
  const std::int64_t head_dim = options.width / options.heads;
  return {.batch = shape.batch,
          .query_length = shape.query_length,
          .key_length = shape.key_length,
          .query_heads = options.heads,
          .key_value_heads = options.key_value_heads,
          .head_dim = head_dim,
          .value_dim = head_dim};
}

}  // namespace

// Inputs of different widths cannot be one tensor, and have no product to share.
void MultiHeadAttention::check_shared_inputs(const MultiHeadAttentionShape& shape) const {
  static constexpr std::array<std::string_view, 3> kPossible = {"all (0), key_and_value (1) or none (2)",
                                                                "key_and_value (1) or none (2)", "none (2)"};
  const SharedInputs most = most_shared();
  if (shape.inputs >= most && shape.inputs <= SharedInputs::none) return;
  ops::fail(layers::kMultiHeadAttentionName, "shape.inputs is ", static_cast<int>(shape.inputs), ", expected ",
            kPossible[static_cast<std::size_t>(most)], " of query, key and value of widths ", options_.width, ", ",
            options_.key_width, " and ", options_.value_width);
}

std::size_t MultiHeadAttention::workspace_bytes(const Engine& engine, const MultiHeadAttentionShape& shape) const {
  check_shared_inputs(shape);
  const Buffers scratch = inference_buffers(engine, shape);
  const std::int64_t query_rows = shape.batch * shape.query_length;
  std::size_t inner = headlight::workspace_bytes(engine, attention_shape(options_, shape));
  inner = std::max(inner, output_.workspace_bytes(engine, query_rows));
  if (merge_projection_) {
    inner = std::max(inner, layers::product_bytes(engine, query_rows, merge_projection_, merge_projection_.all()));
  }
  for (const Group group : {kQuery, kKey, kValue, kKeyValue, kAll}) {
    const Buffers::Buffer& buffer = scratch.projected[group];
    if (buffer.columns == 0) continue;
    const std::int64_t rows = shape.batch * buffer.length;
    const Place place = place_of(group);
    inner = std::max(inner, layers::product_bytes(engine, rows, projections_[place.matrix], place.rows));
  }
  return scratch.layout.bytes() + inner;
}

void MultiHeadAttention::reserve(Engine& engine, const MultiHeadAttentionShape& shape) const {
  check_shared_inputs(shape);
  const Buffers scratch = inference_buffers(engine, shape);
  // Held while the operations reserve theirs, as it is when they run.
  const runtime::Scratch memory(engine, scratch.layout.bytes(), layers::kMultiHeadAttentionName);
  headlight::reserve(engine, attention_shape(options_, shape));
  const std::int64_t query_rows = shape.batch * shape.query_length;
  output_.reserve(engine, query_rows);
  if (merge_projection_) layers::reserve_product(engine, query_rows, merge_projection_, merge_projection_.all());
  for (const Group group : {kQuery, kKey, kValue, kKeyValue, kAll}) {
    const Buffers::Buffer& buffer = scratch.projected[group];
    if (buffer.columns == 0) continue;
    const Place place = place_of(group);
    layers::reserve_product(engine, shape.batch * buffer.length, projections_[place.matrix], place.rows);
  }
}

}  // namespace headlight
