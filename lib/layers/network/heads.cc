// Heads before attention: the angles that they are turned by, and their rows, normalised and turned.
#include "layers/heads.h"

#include "headlight/head_rows.h"
#include "headlight/normalization.h"
#include "layers/network/operations.h"
#include "layers/row_distribution.h"
#include "ops/rows/rotary_angles.h"
#include "ops/rows/scale.h"
#include "runtime/parallel.h"

namespace headlight::layers {

void AnglesOperation::forward(const GraphCall& call, const RowRange& rows) const {
  const View<float, 2> angles = call.floats(output(), rows);
  const auto [ids, positions, token_types, offsets] = call.input();
  const RowShards* const shards = call.is_training() ? call.attention().shards() : nullptr;
  if (shards == nullptr) return rotary_angles(call.engine(), spec_, head_dim_, positions, offsets, angles);

  // Of each sequence some rows are here, and all of them decide how long it is.
  const std::size_t sequences = ops::sequences_with_rows(offsets);
  runtime::ScratchLayout layout;
  const auto of_rows = layout.add<std::int64_t>(sequences + 1);
  const auto of_lengths = layout.add<std::int64_t>(sequences);
  const runtime::Scratch memory(call.engine(), layout.bytes(), call.name());
  std::int64_t* const here = of_rows.in(memory.data());
  std::int64_t* const lengths = of_lengths.in(memory.data());
  std::size_t sequence = 0;
  for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
    if (offsets[s + 1] > offsets[s]) here[sequence++] = place_in(shards->rows(), offsets[s]);
  }
  here[sequences] = place_in(shards->rows(), offsets.back());
  if (ops::angles_ask_for_lengths(spec_)) {
    ops::find_sequence_lengths(positions, {here, sequences + 1}, lengths);
    call.attention().find_largest({lengths, sequences});
  }
  ops::fill_rotary_angles(call.engine(), spec_, head_dim_, positions, {here, sequences + 1}, lengths, angles);
}

void AnglesOperation::backward(const GraphCall&, const RowRange&) {}

// Of sequences that have rows.
Operation::Blocks AnglesOperation::workspace(const Engine& engine, const BatchShape& shape) const {
  return {ops::lengths_bytes(spec_, shape.rows()), ops::frequencies_bytes(engine, output().columns)};
}

HeadRowsOptions HeadsOperation::options(const GraphCall& call, const Heads& heads, const RowRange& rows) const {
  HeadRowsOptions made;
  made.rotation = {call.floats(input(1), rows), pairing_};
  if (!heads.norm || whole_width_norms_) return made;
  made.norm = heads.norm.kind;
  made.weight = heads.weight->all();
  if (heads.bias != nullptr) made.bias = heads.bias->all();
  made.one_plus_weight = heads.norm.one_plus_weight;
  made.epsilon = heads.norm.epsilon;
  return made;
}

// Those of query or key, from column `first` on.
void HeadsOperation::prepare(const GraphCall& call, const Heads& heads, std::int64_t first,
                             const RowRange& rows) const {
  const std::int64_t columns = heads.count * head_dim_;
  MutableTypedView<2> x = call.at(input(0).part(first, columns), rows);
  const MutableTypedView<2> y = call.at(output().part(first, columns), rows);
  if (whole_width_norms_ && heads.norm) {
    // In float32 where that is kept for the way back, or is lost anyway.
    const MutableTypedView<2> normalized = y.type == NumberType::float32 ? y : x;
    normalize_rows(call.engine(), heads.norm, heads.weight, heads.bias, x, {}, normalized);
    x = normalized;
  }
  head_rows(call.engine(), by_heads(x, head_dim_), by_heads(y, head_dim_), options(call, heads, rows));
}

void HeadsOperation::forward(const GraphCall& call, const RowRange& rows) const {
  const std::int64_t of_query = query_.count * head_dim_, of_key = key_.count * head_dim_;
  prepare(call, query_, 0, rows);
  prepare(call, key_, of_query, rows);
  const MutableTypedView<2> from = call.at(input(0).part(of_query + of_key, of_key), rows);
  const MutableTypedView<2> value = call.at(output().part(of_query + of_key, of_key), rows);
  head_rows(call.engine(), by_heads(from, head_dim_), by_heads(value, head_dim_), {});
}

void HeadsOperation::prepare_backward(const GraphCall& call, const Heads& heads, std::int64_t first,
                                      const RowRange& rows) const {
  const std::int64_t columns = heads.count * head_dim_;
  const Slice of_x = input(0).part(first, columns);
  const View<float, 2> y_gradient = call.gradient(output().part(first, columns), rows);
  const View<float, 2> x_gradient = call.gradient(of_x, rows);
  const View<float, 2> x = heads.norm ? call.floats(of_x, rows) : View<float, 2>();
  const bool is_of_heads = heads.norm && !whole_width_norms_;
  HeadRowsGradients gradients = {.x = by_heads(x_gradient, head_dim_)};
  if (is_of_heads) gradients.weight = heads.weight->all_of_gradient();
  if (is_of_heads && heads.bias != nullptr) gradients.bias = heads.bias->all_of_gradient();
  head_rows_backward(call.engine(), is_of_heads ? by_heads(x, head_dim_) : MutableTypedView<3>(),
                     by_heads(y_gradient, head_dim_), gradients, options(call, heads, rows));
  if (heads.norm && whole_width_norms_) {
    normalize_rows_backward(call.engine(), heads.norm, heads.weight, heads.bias, x, x_gradient, x_gradient, {});
  }
}

void HeadsOperation::backward(const GraphCall& call, const RowRange& rows) {
  const std::int64_t of_query = query_.count * head_dim_, of_key = key_.count * head_dim_;
  prepare_backward(call, query_, 0, rows);
  prepare_backward(call, key_, of_query, rows);
  const View<const float, 2> from = call.gradient(output().part(of_query + of_key, of_key), rows);
  const View<float, 2> to = call.gradient(input(0).part(of_query + of_key, of_key), rows);
  if (from.data != to.data) ops::scale_rows(call.engine(), from, 1.0f, {}, to);
}

ParameterGradients HeadsOperation::gradients() noexcept {
  const auto of = [](VectorParameter* parameter) {
    return parameter == nullptr ? std::span<float>() : parameter->all_of_gradient();
  };
  return {{of(query_.weight), of(query_.bias), of(key_.weight), of(key_.bias)}};
}

Operation::Blocks HeadsOperation::workspace(const Engine& engine, const BatchShape&) const {
  return {rows_workspace_bytes(engine, query_.count * head_dim_)};
}

}  // namespace headlight::layers
