#include <algorithm>
#include <array>

#include "headlight/layers/multi_head_attention.h"
#include "layers/parameter_list.h"
#include "layers/product.h"
#include "layers/rows.h"
#include "layers/sizes.h"
#include "ops/check.h"
#include "ops/in_place.h"
#include "runtime/parallel.h"

namespace headlight {

namespace {

constexpr std::string_view kName = "MultiHeadAttention";

bool same_view(const View<const float, 3>& a, const View<const float, 3>& b) noexcept {
  return a.data == b.data && a.shape == b.shape && a.strides == b.strides;
}

// [B, L, heads · D] as [B, L, heads, D].
template <class T>
View<T, 4> split_heads(const View<T, 3>& x, std::int64_t heads) noexcept {
  const std::int64_t head_dim = x.extent(2) / heads;
  return {x.data, {x.extent(0), x.extent(1), heads, head_dim}, {x.stride(0), x.stride(1), head_dim, 1}};
}

void silence(std::span<const std::int64_t> silenced, const View<float, 3>& heads, std::int64_t head_dim) noexcept {
  for (const std::int64_t head : silenced) {
    for (std::int64_t b = 0; b < heads.extent(0); ++b) {
      for (std::int64_t i = 0; i < heads.extent(1); ++i) std::fill_n(&heads(b, i, head * head_dim), head_dim, 0.0f);
    }
  }
}

// Columns [begin, begin + count) of x.
View<float, 3> columns_of(const View<float, 3>& x, std::int64_t begin, std::int64_t count) noexcept {
  return {x.data + begin, {x.extent(0), x.extent(1), count}, x.strides};
}

}  // namespace

// What lies in scratch during a call: the projected inputs, as many buffers as there are products, and the heads'
// outputs.
struct MultiHeadAttention::Scratch {
  struct Buffer {
    std::size_t offset = 0;
    std::int64_t columns = 0;
    std::int64_t length = 0;
  };

  Scratch(const MultiHeadAttention& layer, const MultiHeadAttentionShape& shape) : batch(shape.batch) {
    for (const std::int64_t length : {shape.query_length, shape.key_length}) {
      static_cast<void>(layers::row_count(kName, batch, length));
    }
    const std::int64_t width = layer.options_.width;
    const std::int64_t key_value = layer.key_value_columns();
    switch (shape.inputs) {
      case SharedInputs::all:
        projected[kAll] = add(shape.query_length, width + 2 * key_value);
        break;
      case SharedInputs::key_and_value:
        projected[kQuery] = add(shape.query_length, width);
        projected[kKeyValue] = add(shape.key_length, 2 * key_value);
        break;
      case SharedInputs::none:
        projected[kQuery] = add(shape.query_length, width);
        projected[kKey] = add(shape.key_length, key_value);
        projected[kValue] = add(shape.key_length, key_value);
        break;
    }
    heads = add(shape.query_length, width);
  }

  Buffer add(std::int64_t length, std::int64_t columns) noexcept {
    return {layout.add<float>(batch, length, layers::row_distance(columns)), columns, length};
  }

  [[nodiscard]] View<float, 3> view(std::byte* base, const Buffer& buffer) const noexcept {
    const std::int64_t distance = layers::row_distance(buffer.columns);
    return {reinterpret_cast<float*>(base + buffer.offset),
            {batch, buffer.length, buffer.columns},
            {buffer.length * distance, distance, 1}};
  }

  std::int64_t batch;
  runtime::ScratchLayout layout;
  std::array<Buffer, kGroups> projected{};
  Buffer heads;
};

SharedInputs MultiHeadAttention::inputs_of(const View<const float, 3>& query, const View<const float, 3>& key,
                                           const View<const float, 3>& value) const noexcept {
  if (options_.key_width != options_.value_width || !same_view(key, value)) return SharedInputs::none;
  return options_.key_width == options_.width && same_view(query, key) ? SharedInputs::all
                                                                       : SharedInputs::key_and_value;
}

void MultiHeadAttention::check(const View<const float, 3>& query, const View<const float, 3>& key,
                               const View<const float, 3>& value, const View<float, 3>& out,
                               const View<const float, 3>& residual) const {
  ops::check_view(kName, "query", query);
  ops::check_view(kName, "key", key);
  ops::check_view(kName, "value", value);
  const ops::Extent out_extent = ops::check_view(kName, "out", out);
  const std::int64_t batch = query.extent(0);
  const auto expect = [](std::string_view name, const auto& view, std::array<std::int64_t, 3> shape,
                         std::string_view meaning) { ops::check_shape(kName, name, view.shape, shape, meaning); };
  expect("query", query, {-1, -1, options_.width}, "[B, Lq, E]");
  expect("key", key, {batch, -1, options_.key_width}, "[B, Lk, key_width]");
  expect("value", value, {batch, key.extent(1), options_.value_width}, "[B, Lk, value_width]");
  expect("out", out, query.shape, "[B, Lq, E]");
  ops::check_no_self_overlap(kName, "out", out.shape, out.strides);
  if (!residual) return;
  const ops::Extent residual_extent = ops::check_view(kName, "residual", residual);
  expect("residual", residual, query.shape, "[B, Lq, E]");
  ops::check_same_or_disjoint(kName, "out", out, out_extent, "residual", residual, residual_extent);
}

void MultiHeadAttention::check(const HeadAccess& access, const View<const float, 3>& query,
                               const View<const float, 3>& key, const View<const float, 3>& value,
                               const View<float, 3>& out, const View<const float, 3>& residual) const {
  for (const std::int64_t head : access.silenced) {
    if (head < 0 || head >= options_.heads) {
      ops::fail(kName, "head " + std::to_string(head) + " is to be silenced, expected 0 to " +
                           std::to_string(options_.heads - 1));
    }
  }
  if (!access.outputs) return;
  const ops::Extent extent = ops::check_view(kName, "heads.outputs", access.outputs);
  ops::check_shape(kName, "heads.outputs", access.outputs.shape, query.shape, "[B, Lq, E]");
  ops::check_no_self_overlap(kName, "heads.outputs", access.outputs.shape, access.outputs.strides);
  const auto check_apart = [&](std::string_view name, const View<const float, 3>& other) {
    if (other) ops::check_disjoint(kName, "heads.outputs", extent, name, ops::check_view(kName, name, other));
  };
  check_apart("query", query);
  check_apart("key", key);
  check_apart("value", value);
  check_apart("out", out);
  check_apart("residual", residual);
}

void MultiHeadAttention::project(Engine& engine, Group group, View<const float, 3> x, View<float, 3> projected) const {
  layers::for_each_matrix(
      x.extent(0),
      [&](View<const float, 2> rows, View<float, 2> out) {
        layers::multiply(engine, rows, weight_of(group), packed_[group], out, {.bias = bias_of(group)});
      },
      x, projected);
}

void MultiHeadAttention::forward(Engine& engine, View<const float, 3> query, View<const float, 3> key,
                                 View<const float, 3> value, View<float, 3> out, const AttentionOptions& options,
                                 View<const float, 3> residual, const HeadAccess& access) const {
  check(query, key, value, out, residual);
  check(access, query, key, value, out, residual);
  const SharedInputs inputs = inputs_of(query, key, value);
  const Scratch scratch(*this, {query.extent(0), query.extent(1), key.extent(1), inputs});
  const runtime::Scratch memory(engine, scratch.layout.bytes());
  const auto buffer = [&](Group group) { return scratch.view(memory.data(), scratch.projected[group]); };
  const std::int64_t width = options_.width;
  const std::int64_t key_value = key_value_columns();

  View<float, 3> q;
  View<float, 3> k;
  View<float, 3> v;
  if (inputs == SharedInputs::all) {
    project(engine, kAll, query, buffer(kAll));
    q = columns_of(buffer(kAll), 0, width);
    k = columns_of(buffer(kAll), width, key_value);
    v = columns_of(buffer(kAll), width + key_value, key_value);
  } else {
    q = buffer(kQuery);
    project(engine, kQuery, query, q);
    if (inputs == SharedInputs::key_and_value) {
      project(engine, kKeyValue, key, buffer(kKeyValue));
      k = columns_of(buffer(kKeyValue), 0, key_value);
      v = columns_of(buffer(kKeyValue), key_value, key_value);
    } else {
      k = buffer(kKey);
      v = buffer(kValue);
      project(engine, kKey, key, k);
      project(engine, kValue, value, v);
    }
  }
  const View<float, 3> heads = access.outputs ? access.outputs : scratch.view(memory.data(), scratch.heads);
  attention(engine, split_heads<const float>(q, options_.heads), split_heads<const float>(k, options_.key_value_heads),
            split_heads<const float>(v, options_.key_value_heads), split_heads(heads, options_.heads), options);
  silence(access.silenced, heads, width / options_.heads);
  layers::for_each_matrix(
      out.extent(0),
      [&](View<const float, 2> rows, View<float, 2> to, View<const float, 2> added) {
        layers::multiply(engine, rows, output_, packed_output_, to,
                         {.bias = layers::values_of(output_bias_), .residual = added});
      },
      View<const float, 3>(heads), out, residual);
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

std::size_t MultiHeadAttention::workspace_bytes(const Engine& engine, const MultiHeadAttentionShape& shape) const {
  const Scratch scratch(*this, shape);
  const std::int64_t query_rows = shape.batch * shape.query_length;
  std::size_t inner = headlight::workspace_bytes(engine, attention_shape(options_, shape));
  inner = std::max(inner, layers::product_bytes(engine, query_rows, output_, packed_output_));
  for (const Group group : {kQuery, kKey, kValue, kKeyValue, kAll}) {
    const Scratch::Buffer& buffer = scratch.projected[group];
    if (buffer.columns == 0) continue;
    const std::int64_t rows = shape.batch * buffer.length;
    inner = std::max(inner, layers::product_bytes(engine, rows, weight_of(group), packed_[group]));
  }
  return scratch.layout.bytes() + inner;
}

void MultiHeadAttention::reserve(Engine& engine, const MultiHeadAttentionShape& shape) const {
  const Scratch scratch(*this, shape);
  // Held while the operations reserve theirs, as it is when they run.
  const runtime::Scratch memory(engine, scratch.layout.bytes());
  headlight::reserve(engine, attention_shape(options_, shape));
  layers::reserve_product(engine, shape.batch * shape.query_length, output_, packed_output_);
  for (const Group group : {kQuery, kKey, kValue, kKeyValue, kAll}) {
    const Scratch::Buffer& buffer = scratch.projected[group];
    if (buffer.columns == 0) continue;
    layers::reserve_product(engine, shape.batch * buffer.length, weight_of(group), packed_[group]);
  }
}

}  // namespace headlight
