#include <string>

#include "headlight/layers/transformer.h"
#include "layers/gradient_places.h"
#include "layers/layer_names.h"
#include "layers/network/encoder_graph.h"
#include "layers/parameter_list.h"
#include "layers/row_visitor.h"
#include "layers/saved_state.h"
#include "layers/transformer_check.h"
#include "ops/attention/check.h"

namespace headlight {

struct TransformerDecoderLayer::State : layers::EncoderGraph {
  using EncoderGraph::EncoderGraph;
};

TransformerDecoderLayer::TransformerDecoderLayer(const TransformerLayerOptions& options)
    : options_(layers::checked(layers::kDecoderLayerName, options)) {
  state_ = layers::named_lack(layers::kDecoderLayerName, "list of operations", sizeof(State),
                              [&] { return std::make_unique<State>(options_, true); });
}

TransformerDecoderLayer::TransformerDecoderLayer(TransformerDecoderLayer&&) noexcept = default;
TransformerDecoderLayer& TransformerDecoderLayer::operator=(TransformerDecoderLayer&&) noexcept = default;
TransformerDecoderLayer::~TransformerDecoderLayer() = default;

void TransformerDecoderLayer::forward(Engine& engine, View<const float, 3> x, View<const float, 3> memory,
                                      View<float, 3> y, const AttentionOptions& self_options,
                                      const AttentionOptions& memory_options) const {
  const ops::Extent y_extent = layers::check_hidden_states(type_name(), x, y, options_.width).y;
  // Read after y is first written.
  const ops::Extent memory_extent = layers::check_memory(type_name(), memory, x.extent(0), options_.width);
  ops::check_disjoint(type_name(), "y", y_extent, "memory", memory_extent);
  layers::check_decoder_outputs(type_name(), self_options, memory_options, x, memory, y);
  state_->graph.forward(engine,
                        {.x = x, .attention = &self_options, .memory = memory, .memory_attention = &memory_options}, y);
}

void TransformerDecoderLayer::forward(Engine& engine, View<const float, 3> x, View<const float, 3> memory,
                                      View<float, 3> y, SavedState& saved, const TrainingStep& step,
                                      const AttentionOptions& self_options,
                                      const AttentionOptions& memory_options) const {
  const ops::Extent y_extent = layers::check_training_states(type_name(), x, y, options_.width).y;
  layers::check_training_options(type_name(), self_options);
  layers::check_training_options(type_name(), memory_options);
  const ops::Extent memory_extent = layers::check_memory(type_name(), memory, x.extent(0), options_.width);
  ops::check_disjoint(type_name(), "y", y_extent, "memory", memory_extent);
  layers::check_decoder_outputs(type_name(), self_options, memory_options, x, memory, y);
  layers::check_rows(type_name(), saved.attention(), x.extent(0), x.extent(1), memory.extent(1));
  state_->graph.forward(engine,
                        {.x = x, .attention = &self_options, .memory = memory, .memory_attention = &memory_options}, y,
                        saved, step);
  saved.commit({.layer = this,
                .made_with = layers::made_with(options_),
                .shape = {x.extent(0), x.extent(1), memory.extent(1)},
                .step = step,
                .options = {self_options, memory_options}});
}

void TransformerDecoderLayer::backward(Engine& engine, View<const float, 3> x, View<const float, 3> memory,
                                       const SavedState& saved, View<const float, 3> y_gradient,
                                       View<float, 3> x_gradient, View<float, 3> memory_gradient) {
  layers::check_saved(type_name(), saved, this, layers::made_with(options_),
                      {x.extent(0), x.extent(1), memory.extent(1)});
  layers::check_gradients(type_name(), x, options_.width, y_gradient, x_gradient);
  layers::check_memory(type_name(), memory, x.extent(0), options_.width);
  layers::GradientPlace(type_name(), "x_gradient", x_gradient).apart_from("memory", memory);
  if (memory_gradient) {
    ops::check_shape(type_name(), "memory_gradient", memory_gradient.shape, memory.shape, "the shape of memory");
  }
  layers::GradientPlace(type_name(), "memory_gradient", memory_gradient)
      .apart_from("x", x)
      .apart_from("memory", memory)
      .apart_from("y_gradient", y_gradient)
      .apart_from("x_gradient", x_gradient);
  state_->graph.parameters().check_training();
  const AttentionOptions self_options = ops::without_outputs(saved.call().options[0]);
  const AttentionOptions memory_options = ops::without_outputs(saved.call().options[1]);
  state_->graph.backward(engine,
                         {.x = x,
                          .attention = &self_options,
                          .memory = memory,
                          .memory_gradient = memory_gradient,
                          .memory_attention = &memory_options},
                         saved, y_gradient, x_gradient, {});
}

std::size_t TransformerDecoderLayer::workspace_bytes(const Engine& engine, std::int64_t batch, std::int64_t length,
                                                     std::int64_t memory_length) const {
  for (const std::int64_t rows : {length, memory_length})
    static_cast<void>(layers::row_count(type_name(), batch, rows));
  return state_->graph.workspace_bytes(engine, {batch, length, memory_length});
}

void TransformerDecoderLayer::reserve(Engine& engine, std::int64_t batch, std::int64_t length,
                                      std::int64_t memory_length) const {
  for (const std::int64_t rows : {length, memory_length})
    static_cast<void>(layers::row_count(type_name(), batch, rows));
  state_->graph.reserve(engine, {batch, length, memory_length});
}

void TransformerDecoderLayer::append_parameters(const std::string& prefix, std::vector<layers::ParameterPlace>& list,
                                                const Weights* named) {
  state_->append_parameters(prefix, list, named);
}

void TransformerDecoderLayer::initialize_from(layers::Initializer& initializer) {
  state_->graph.parameters().initialize_from(initializer);
}

void TransformerDecoderLayer::set_open(bool open) noexcept { state_->graph.parameters().set_open(open); }

void TransformerDecoderLayer::make_gradients(bool wanted) { state_->graph.parameters().make_gradients(wanted); }

}  // namespace headlight
