#include <string>

#include "headlight/layers/transformer.h"
#include "layers/head_access.h"
#include "layers/layer_names.h"
#include "layers/network/encoder_graph.h"
#include "layers/parameter_list.h"
#include "layers/row_visitor.h"
#include "layers/saved_state.h"
#include "layers/transformer_check.h"
#include "ops/attention/check.h"

namespace headlight {

struct TransformerEncoderLayer::State : layers::EncoderGraph {
  using EncoderGraph::EncoderGraph;
};

TransformerEncoderLayer::TransformerEncoderLayer(const TransformerLayerOptions& options)
    : options_(layers::checked(layers::kEncoderLayerName, options)) {
  state_ = layers::named_lack(layers::kEncoderLayerName, "list of operations", sizeof(State),
                              [&] { return std::make_unique<State>(options_, false); });
}

TransformerEncoderLayer::TransformerEncoderLayer(TransformerEncoderLayer&&) noexcept = default;
TransformerEncoderLayer& TransformerEncoderLayer::operator=(TransformerEncoderLayer&&) noexcept = default;
TransformerEncoderLayer::~TransformerEncoderLayer() = default;

void TransformerEncoderLayer::forward(Engine& engine, View<const float, 3> x, View<float, 3> y,
                                      const AttentionOptions& options, const HeadAccess& heads) const {
  layers::check_hidden_states(type_name(), x, y, options_.width);
  layers::OutputPlaces(type_name())
      .writes("heads.outputs", heads.outputs)
      .writes("heads.scaled_outputs", heads.scaled_outputs)
      .writes(layers::kOptions, options)
      .apart_from("x", x)
      .apart_from("y", y);
  layers::check_head_access(heads, options_.heads, x);
  state_->graph.forward(engine, {.x = x, .attention = &options, .access = heads}, y);
}

void TransformerEncoderLayer::forward(Engine& engine, View<const float, 3> x, View<float, 3> y, SavedState& saved,
                                      const TrainingStep& step, const AttentionOptions& options) const {
  layers::check_training_states(type_name(), x, y, options_.width);
  layers::check_training_options(type_name(), options);
  layers::check_rows(type_name(), saved.attention(), x.extent(0), x.extent(1));
  layers::OutputPlaces(type_name()).writes(layers::kOptions, options).apart_from("x", x).apart_from("y", y);
  state_->graph.forward(engine, {.x = x, .attention = &options}, y, saved, step);
  saved.commit({.layer = this,
                .made_with = layers::made_with(options_),
                .shape = {x.extent(0), x.extent(1), 0},
                .step = step,
                .options = {options}});
}

void TransformerEncoderLayer::backward(Engine& engine, View<const float, 3> x, const SavedState& saved,
                                       View<const float, 3> y_gradient, View<float, 3> x_gradient,
                                       const HeadVisit& visit) {
  layers::check_saved(type_name(), saved, this, layers::made_with(options_), {x.extent(0), x.extent(1), 0});
  layers::check_gradients(type_name(), x, options_.width, y_gradient, x_gradient);
  state_->graph.parameters().check_training();
  const AttentionOptions options = ops::without_outputs(saved.call().options[0]);
  state_->graph.backward(engine, {.x = x, .attention = &options}, saved, y_gradient, x_gradient, visit);
}

std::size_t TransformerEncoderLayer::workspace_bytes(const Engine& engine, std::int64_t batch,
                                                     std::int64_t length) const {
  static_cast<void>(layers::row_count(type_name(), batch, length));
  return state_->graph.workspace_bytes(engine, {batch, length});
}

void TransformerEncoderLayer::reserve(Engine& engine, std::int64_t batch, std::int64_t length) const {
  static_cast<void>(layers::row_count(type_name(), batch, length));
  state_->graph.reserve(engine, {batch, length});
}

void TransformerEncoderLayer::append_parameters(const std::string& prefix, std::vector<layers::ParameterPlace>& list,
                                                const Weights* named) {
  state_->append_parameters(prefix, list, named);
}

void TransformerEncoderLayer::initialize_from(layers::Initializer& initializer) {
  state_->graph.parameters().initialize_from(initializer);
}

void TransformerEncoderLayer::set_open(bool open) noexcept { state_->graph.parameters().set_open(open); }

void TransformerEncoderLayer::make_gradients(bool wanted) { state_->graph.parameters().make_gradients(wanted); }

}  // namespace headlight
