#include <algorithm>

#include "headlight/layers/transformer.h"
#include "layers/transformer_steps.h"

namespace headlight {

TransformerDecoderLayer::TransformerDecoderLayer(const TransformerLayerOptions& options)
    : options_(layers::checked("TransformerDecoderLayer", options)),
      self_attention_(layers::attention_options(options)),
      memory_attention_(layers::attention_options(options)),
      feed_forward_(layers::feed_forward_options(options)),
      norm1_(options.width, options.layer_norm_epsilon, options.bias),
      norm2_(options.width, options.layer_norm_epsilon, options.bias),
      norm3_(options.width, options.layer_norm_epsilon, options.bias) {
  options_.feed_forward_width = feed_forward_.hidden_width();
}

void TransformerDecoderLayer::forward(Engine& engine, View<const float, 3> x, View<const float, 3> memory,
                                      View<float, 3> y, const AttentionOptions& self_options,
                                      const AttentionOptions& memory_options) const {
  const std::int64_t width = self_attention_.options().width;
  const ops::Extent y_extent = layers::check_hidden_states(type_name(), x, y, width).y;
  // Read after y is first written.
  const ops::Extent memory_extent = layers::check_memory(type_name(), memory, x.extent(0), width);
  ops::check_disjoint(type_name(), "y", y_extent, "memory", memory_extent);
  layers::check_decoder_outputs(type_name(), self_options, memory_options, x, memory, y);

  const runtime::Scratch scratch(
      engine, layers::normalized_bytes(options_.norm, type_name(), x.extent(0), x.extent(1), width), type_name());
  const View<float, 3> normalized = layers::normalized_view(options_.norm, scratch, x);
  layers::residual_step(engine, options_.norm, norm1_, x, y, normalized,
                        [&](View<const float, 3> in, View<float, 3> out, View<const float, 3> residual) {
                          self_attention_.forward(engine, in, in, in, out, self_options, residual);
                        });
  layers::residual_step(engine, options_.norm, norm2_, y, y, normalized,
                        [&](View<const float, 3> in, View<float, 3> out, View<const float, 3> residual) {
                          memory_attention_.forward(engine, in, memory, memory, out, memory_options, residual);
                        });
  layers::residual_step(engine, options_.norm, norm3_, y, y, normalized,
                        [&](View<const float, 3> in, View<float, 3> out, View<const float, 3> residual) {
                          feed_forward_.forward(engine, in, out, residual);
                        });
}

std::size_t TransformerDecoderLayer::workspace_bytes(const Engine& engine, std::int64_t batch, std::int64_t length,
                                                     std::int64_t memory_length) const {
  return layers::normalized_bytes(options_.norm, type_name(), batch, length, self_attention_.options().width) +
         std::max(
             {self_attention_.workspace_bytes(engine, {batch, length, length, SharedInputs::all}),
              memory_attention_.workspace_bytes(engine, {batch, length, memory_length, SharedInputs::key_and_value}),
              feed_forward_.workspace_bytes(engine, batch, length)});
}

void TransformerDecoderLayer::reserve(Engine& engine, std::int64_t batch, std::int64_t length,
                                      std::int64_t memory_length) const {
  const std::int64_t width = self_attention_.options().width;
  const runtime::Scratch scratch(engine, layers::normalized_bytes(options_.norm, type_name(), batch, length, width),
                                 type_name());
  self_attention_.reserve(engine, {batch, length, length, SharedInputs::all});
  memory_attention_.reserve(engine, {batch, length, memory_length, SharedInputs::key_and_value});
  feed_forward_.reserve(engine, batch, length);
}

void TransformerDecoderLayer::append_parameters(const std::string& prefix, std::vector<layers::ParameterPlace>& list,
                                                const Weights* named) {
  self_attention_.append_parameters(prefix + "self_attn.", list, named);
  memory_attention_.append_parameters(prefix + "multihead_attn.", list, named);
  feed_forward_.append_parameters(prefix, list, named);
  norm1_.append_parameters(prefix + "norm1.", list, named);
  norm2_.append_parameters(prefix + "norm2.", list, named);
  norm3_.append_parameters(prefix + "norm3.", list, named);
}

void TransformerDecoderLayer::initialize_from(layers::Initializer& initializer) {
  self_attention_.initialize_from(initializer);
  memory_attention_.initialize_from(initializer);
  feed_forward_.initialize_from(initializer);
  norm1_.initialize_from(initializer);
  norm2_.initialize_from(initializer);
  norm3_.initialize_from(initializer);
}

void TransformerDecoderLayer::set_open(bool open) noexcept {
  self_attention_.set_open(open);
  memory_attention_.set_open(open);
  feed_forward_.set_open(open);
}

void TransformerDecoderLayer::make_gradients(bool wanted) {
  self_attention_.make_gradients(wanted);
  memory_attention_.make_gradients(wanted);
  feed_forward_.make_gradients(wanted);
  norm1_.make_gradients(wanted);
  norm2_.make_gradients(wanted);
  norm3_.make_gradients(wanted);
}

}  // namespace headlight
