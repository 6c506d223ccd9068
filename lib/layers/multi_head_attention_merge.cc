// What happens to the heads between attention and the last product.
#include <algorithm>
#include <array>

#include "headlight/layers/multi_head_attention.h"
#include "headlight/normalization.h"
#include "layers/parameter_list.h"
#include "layers/product.h"
#include "layers/row_visitor.h"
#include "layers/rows.h"
#include "ops/rows/blocks.h"
#include "ops/rows/head_merge.h"
#include "runtime/costs.h"

namespace headlight {

namespace {

constexpr std::array<std::string_view, 6> kNames{"concatenate",       "average",       "weighted",
                                                 "weighted-by-input", "gated-by-head", "gated-by-element"};

void copy_rows(Engine& engine, const View<const float, 2>& from, const View<float, 2>& to) {
  if (from.size() == 0) return;
  ops::for_row_blocks(engine, from.extent(0), from.extent(1), runtime::costs::kCopy,
                      [&](std::int64_t first, std::int64_t rows) {
                        for (std::int64_t n = first; n < first + rows; ++n)
                          std::copy_n(&from(n, 0), from.extent(1), &to(n, 0));
                      });
}

}  // namespace

std::string_view name(Merge merge) noexcept {
  const auto index = static_cast<std::size_t>(merge);
  return index < kNames.size() ? kNames[index] : "unknown";
}

std::optional<Merge> parse_merge(std::string_view text) noexcept {
  const auto found = std::find(kNames.begin(), kNames.end(), text);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Merge>(found - kNames.begin());
}

std::int64_t MultiHeadAttention::merged_columns() const noexcept {
  switch (options_.merge) {
    case Merge::average:
    case Merge::weighted:
    case Merge::weighted_by_input:
      return options_.width / options_.heads;
    default:
      return options_.width;
  }
}

std::int64_t MultiHeadAttention::mixing_columns() const noexcept {
  switch (options_.merge) {
    case Merge::weighted_by_input:
    case Merge::gated_by_head:
      return options_.heads;
    case Merge::gated_by_element:
      return options_.width;
    default:
      return 0;
  }
}

std::int64_t MultiHeadAttention::learned_mixing_columns() const noexcept {
  return options_.merge == Merge::weighted ? options_.heads : mixing_columns();
}

bool MultiHeadAttention::gates() const noexcept {
  return options_.merge == Merge::gated_by_head || options_.merge == Merge::gated_by_element;
}

View<const float, 3> MultiHeadAttention::mix_heads(Engine& engine, View<const float, 3> query,
                                                   View<const float, 3> heads, View<float, 3> mixing,
                                                   View<float, 3> mixed) const {
  if (options_.merge == Merge::concatenate) return heads;
  if (heads.size() == 0) return mixed;  // and none of them has memory
  const std::int64_t batch = heads.extent(0);
  if (mixing_columns() == 0) {
    const View<float, 2> weights(mixing.data, {1, options_.heads});
    if (options_.merge == Merge::average) {
      std::fill_n(weights.data, options_.heads, 1.0f / static_cast<float>(options_.heads));
    } else {
      softmax(engine, {merge_logits_.data(), {1, options_.heads}}, weights);
    }
    layers::for_each_matrix(
        batch, [&](View<const float, 2> rows, View<float, 2> to) { ops::weigh_heads(engine, rows, weights, to); },
        heads, mixed);
    return mixed;
  }
  layers::for_each_matrix(
      batch,
      [&](View<const float, 2> x, View<float, 2> to) {
        layers::multiply(engine, x, merge_projection_, merge_projection_.all(), to, {});
        if (!gates()) softmax(engine, to, to);
      },
      query, mixing);
  layers::for_each_matrix(
      batch,
      [&](View<const float, 2> rows, View<const float, 2> by, View<float, 2> to) {
        if (gates()) {
          ops::gate_heads(engine, rows, by, options_.heads, to);
        } else {
          ops::weigh_heads(engine, rows, by, to);
        }
      },
      heads, View<const float, 3>(mixing), mixed);
  return mixed;
}

void MultiHeadAttention::scale_heads(Engine& engine, View<const float, 3> heads, View<const float, 3> weights,
                                     View<float, 3> scaled) const {
  const bool shared = mixing_columns() == 0;
  const View<const float, 2> one_row(weights.data, {1, options_.heads});
  layers::for_each_matrix(
      heads.extent(0),
      [&](View<const float, 2> rows, View<float, 2> to, View<const float, 2> by) {
        if (options_.merge == Merge::concatenate) return copy_rows(engine, rows, to);
        if (shared) by = one_row;
        ops::scale_heads(engine, rows, by, to);
      },
      heads, scaled, shared ? View<const float, 3>() : weights);
}

View<const float, 3> MultiHeadAttention::mix_heads_backward(
    Engine& engine, View<const float, 3> query, const MixedHeads& from, View<const float, 3> mixed_gradient,
    View<float, 3> mixing_gradient, View<float, 3> heads_gradient, View<float, 3> query_gradient,
    View<const float, 3> residual, const layers::RowVisitor& rows_of_query) {
  if (from.heads.size() == 0) return residual;
  const bool learned = mixing_gradient.extent(2) > 0;
  const View<const float, 2> heads = layers::one_matrix(from.heads);
  View<const float, 2> by = layers::one_matrix(from.mixing);
  if (mixing_columns() == 0) by = {from.mixing.data, {1, options_.heads}};
  const View<float, 2> by_gradient = learned ? layers::one_matrix(mixing_gradient) : View<float, 2>();
  const View<const float, 2> gradient = layers::one_matrix(mixed_gradient);
  const View<float, 2> to = layers::one_matrix(heads_gradient);
  if (gates()) {
    ops::gate_heads_backward(engine, heads, by, options_.heads, gradient, to, by_gradient);
  } else {
    ops::weigh_heads_backward(engine, heads, by, gradient, to, by_gradient);
  }
  if (!learned) return residual;
  // Each row has its own part in the gradient of logits that all share.
  if (!gates()) {
    const std::int64_t between_rows = mixing_columns() == 0 ? 0 : by.stride(0);
    softmax_backward(engine, {by.data, by_gradient.shape, {between_rows, 1}}, by_gradient, by_gradient);
  }
  const View<const float, 3> mixing(mixing_gradient);
  if (mixing_columns() == 0) {
    const std::span<float> logits = layers::values_of(merge_logits_gradient_);
    rows_of_query.sum(
        engine, std::array{logits}, query.extent(0),
        [&](std::int64_t, View<const float, 2> rows) { bias_backward(engine, rows, logits); }, mixing);
    return residual;
  }
  rows_of_query.sum(
      engine, std::array{layers::values_of(merge_projection_.gradient())}, query.extent(0),
      [&](std::int64_t, View<const float, 2> x, View<const float, 2> rows, View<float, 2> x_gradient,
          View<const float, 2> added) {
        layers::multiply_backward(engine, NumberType::float32, {x, rows, x_gradient, added}, merge_projection_,
                                  merge_projection_.all());
      },
      query, mixing, query_gradient, residual);
  return query_gradient ? View<const float, 3>(query_gradient) : residual;
}

}  // namespace headlight
