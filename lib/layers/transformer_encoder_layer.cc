#include <algorithm>

#include "headlight/layers/transformer.h"
#include "layers/transformer_steps.h"

namespace headlight {

TransformerEncoderLayer::TransformerEncoderLayer(const TransformerLayerOptions& options)
    : options_(layers::checked("TransformerEncoderLayer", options)),
      self_attention_(layers::attention_options(options)),
      feed_forward_(layers::feed_forward_options(options)),
      norm1_(options.width, options.layer_norm_epsilon, options.bias),
      norm2_(options.width, options.layer_norm_epsilon, options.bias) {
  options_.feed_forward_width = feed_forward_.hidden_width();
}

void TransformerEncoderLayer::forward(Engine& engine, View<const float, 3> x, View<float, 3> y,
                                      const AttentionOptions& options, const HeadAccess& heads) const {
  const std::int64_t width = self_attention_.options().width;
  layers::check_hidden_states(type_name(), x, y, width);
  layers::OutputPlaces(type_name())
      .writes("heads.outputs", heads.outputs)
      .writes("heads.scaled_outputs", heads.scaled_outputs)
      .writes(layers::kOptions, options)
      .apart_from("x", x)
      .apart_from("y", y);
  const runtime::Scratch memory(
      engine, layers::normalized_bytes(options_.norm, type_name(), x.extent(0), x.extent(1), width), type_name());
  const View<float, 3> normalized = layers::normalized_view(options_.norm, memory, x);
  layers::residual_step(engine, options_.norm, norm1_, x, y, normalized,
                        [&](View<const float, 3> in, View<float, 3> out, View<const float, 3> residual) {
                          self_attention_.forward(engine, in, in, in, out, options, residual, heads);
                        });
  layers::residual_step(engine, options_.norm, norm2_, y, y, normalized,
                        [&](View<const float, 3> in, View<float, 3> out, View<const float, 3> residual) {
                          feed_forward_.forward(engine, in, out, residual);
                        });
}

std::size_t TransformerEncoderLayer::workspace_bytes(const Engine& engine, std::int64_t batch,
                                                     std::int64_t length) const {
  return layers::normalized_bytes(options_.norm, type_name(), batch, length, self_attention_.options().width) +
         std::max(self_attention_.workspace_bytes(engine, {batch, length, length, SharedInputs::all}),
                  feed_forward_.workspace_bytes(engine, batch, length));
}

void TransformerEncoderLayer::reserve(Engine& engine, std::int64_t batch, std::int64_t length) const {
  const std::int64_t width = self_attention_.options().width;
  const runtime::Scratch memory(engine, layers::normalized_bytes(options_.norm, type_name(), batch, length, width),
                                type_name());
  self_attention_.reserve(engine, {batch, length, length, SharedInputs::all});
  feed_forward_.reserve(engine, batch, length);
}

void TransformerEncoderLayer::append_parameters(const std::string& prefix, std::vector<layers::ParameterPlace>& list,
                                                const Weights* named) {
  self_attention_.append_parameters(prefix + "self_attn.", list, named);
  feed_forward_.append_parameters(prefix, list, named);
  norm1_.append_parameters(prefix + "norm1.", list, named);
  norm2_.append_parameters(prefix + "norm2.", list, named);
}

void TransformerEncoderLayer::initialize_from(layers::Initializer& initializer) {
  self_attention_.initialize_from(initializer);
  feed_forward_.initialize_from(initializer);
  norm1_.initialize_from(initializer);
  norm2_.initialize_from(initializer);
}

void TransformerEncoderLayer::set_open(bool open) noexcept {
  self_attention_.set_open(open);
  feed_forward_.set_open(open);
}

void TransformerEncoderLayer::make_gradients(bool wanted) {
  self_attention_.make_gradients(wanted);
  feed_forward_.make_gradients(wanted);
  norm1_.make_gradients(wanted);
  norm2_.make_gradients(wanted);
}

}  // namespace headlight
