#include "headlight/layers/network.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "layers/gradient_places.h"
#include "layers/layer_names.h"
#include "layers/layer_outputs.h"
#include "layers/network/graph.h"
#include "layers/network/parts.h"
#include "layers/row_visitor.h"
#include "layers/saved_state.h"
#include "layers/sizes.h"
#include "ops/check.h"

namespace headlight {

namespace {

class HeadsOfNetwork final : public layers::HeadShapes {
 public:
  explicit HeadsOfNetwork(const NetworkSpec& spec) noexcept : spec_(spec) {}
  [[nodiscard]] std::int64_t layers() const noexcept override { return static_cast<std::int64_t>(spec_.blocks.size()); }
  [[nodiscard]] layers::HeadShape at(std::int64_t layer) const noexcept override {
    const AttentionSpec& attention = spec_.blocks[static_cast<std::size_t>(layer)].attention;
    return {attention.heads, attention.head_dim};
  }

 private:
  const NetworkSpec& spec_;
};

}  // namespace

struct Network::State {
  NetworkSpec spec;
  bool turns = false;  // whether any block turns its heads
  layers::Graph graph{layers::kNetworkName};
  layers::Logits logits;
};

Network::Network(const NetworkSpec& spec) : state_(std::make_unique<State>()) {
  state_->spec = layers::checked(spec);
  for (const BlockSpec& block : state_->spec.blocks) state_->turns |= block.attention.rotary.dims > 0;
  state_->logits = layers::add_network(state_->graph, state_->spec);
}

std::vector<ParameterShape> Network::parameter_shapes(const NetworkSpec& spec) {
  layers::Graph graph(layers::kNetworkName, false);
  static_cast<void>(layers::add_network(graph, layers::checked(spec)));
  return graph.parameters().shapes();
}

Network::Network(Network&&) noexcept = default;
Network& Network::operator=(Network&&) noexcept = default;
Network::~Network() = default;

const NetworkSpec& Network::spec() const noexcept { return state_->spec; }

// Lists that forward() and backward() trust, and hidden or its gradient [N, E] apart from them.
void Network::check(const EncoderInput& input, std::string_view name, const View<const float, 2>& hidden,
                    const layers::RowVisitor& visitor) const {
  const ops::Extent extent = ops::check_view(layers::kNetworkName, name, hidden);
  const auto tokens = static_cast<std::int64_t>(input.ids.size());
  const std::array<std::int64_t, 2> expected = {tokens, state_->spec.width};
  ops::check_shape(layers::kNetworkName, name, hidden.shape, expected, "[N, E]");
  const EmbeddingSpec& embedding = state_->spec.embedding;
  const auto check_list = [&](std::string_view list_name, std::span<const std::int64_t> list, bool is_needed) {
    if (list.size() != input.ids.size() && (is_needed || !list.empty())) {
      ops::fail(layers::kNetworkName, list_name, " has ", list.size(), " entries, expected ", tokens,
                " (one for each id)");
    }
    ops::check_disjoint(layers::kNetworkName, name, extent, list_name, ops::extent_of(list));
  };
  check_list("ids", input.ids, true);
  check_list("positions", input.positions, state_->turns || embedding.positions > 0);
  check_list("token_types", input.token_types, embedding.token_types > 0);
  ops::check_disjoint(layers::kNetworkName, name, extent, "offsets", ops::extent_of(input.offsets));
  layers::check_token_offsets(layers::kNetworkName, input, visitor.whole_length(tokens));
  const auto check_rows = [&](std::string_view list_name, std::span<const std::int64_t> list, std::int64_t rows) {
    for (std::size_t n = 0; n < list.size(); ++n) {
      if (list[n] >= 0 && list[n] < rows) continue;
      ops::fail(layers::kNetworkName, list_name, "[", n, "] is ", list[n], ", expected 0 to ", rows - 1);
    }
  };
  check_rows("ids", input.ids, embedding.vocabulary);
  if (embedding.token_types > 0) check_rows("token_types", input.token_types, embedding.token_types);
  if (embedding.positions > 0) {
    check_rows("positions", input.positions, embedding.positions);
  } else if (state_->turns) {
    check_rows("positions", input.positions, std::int64_t{1} << 53);
  }
}

void Network::forward(Engine& engine, const EncoderInput& input, View<float, 2> hidden,
                      std::span<const LayerProbabilities> probabilities, std::span<const LayerHeads> heads) const {
  check(input, "hidden", hidden, {});
  ops::check_no_self_overlap(layers::kNetworkName, "hidden", hidden.shape, hidden.strides);
  layers::check_layer_outputs(layers::kNetworkName, HeadsOfNetwork(state_->spec), input, hidden, probabilities, heads);
  if (hidden.extent(0) == 0) return;
  state_->graph.forward(engine, {.tokens = input, .probabilities = probabilities, .heads = heads},
                        layers::one_sample(hidden));
}

void Network::forward(Engine& engine, const EncoderInput& input, View<float, 2> hidden, SavedState& saved,
                      const TrainingStep& step) const {
  layers::check_rows(layers::kNetworkName, saved.attention(), 1, hidden.extent(0));
  check(input, "hidden", hidden, layers::rows_of_x(saved.attention()));
  ops::check_no_self_overlap(layers::kNetworkName, "hidden", hidden.shape, hidden.strides);
  const std::int64_t tokens = hidden.extent(0);
  state_->graph.forward(engine, {.tokens = input}, layers::one_sample(hidden), saved, step);
  SavedState::Call done = {.layer = this, .made_with = made_with(), .shape = {tokens, 0, 0}, .step = step};
  done.options[0].query_offsets = input.offsets;
  saved.commit(done);
}

void Network::backward(Engine& engine, const EncoderInput& input, const SavedState& saved,
                       View<const float, 2> hidden_gradient, HeadVisitor* visitor) {
  const auto tokens = static_cast<std::int64_t>(input.ids.size());
  layers::check_saved(layers::kNetworkName, saved, this, made_with(), {tokens, 0, 0});
  check(input, "hidden_gradient", hidden_gradient, layers::rows_of_x(saved.attention()));
  if (!std::ranges::equal(input.offsets, saved.call().options[0].query_offsets)) {
    ops::fail(layers::kNetworkName, "offsets are others than those of the forward pass, expected the same");
  }
  state_->graph.parameters().check_training();
  state_->graph.backward(engine, {.tokens = input}, saved, layers::one_sample(hidden_gradient), {}, {visitor});
}

// That there are logits, and the shapes of both.
void Network::check_logits(const View<const float, 2>& hidden, std::string_view name,
                           const View<const float, 2>& logits) const {
  if (!state_->spec.logits) ops::fail(layers::kNetworkName, "has no logits, expected NetworkSpec::logits with them");
  const ops::Extent hidden_extent = ops::check_view(layers::kNetworkName, "hidden", hidden);
  const std::array<std::int64_t, 2> of_hidden = {-1, state_->spec.width};
  ops::check_shape(layers::kNetworkName, "hidden", hidden.shape, of_hidden, "[N, E]");
  const ops::Extent extent = ops::check_view(layers::kNetworkName, name, logits);
  const std::array<std::int64_t, 2> of_logits = {hidden.extent(0), state_->spec.embedding.vocabulary};
  ops::check_shape(layers::kNetworkName, name, logits.shape, of_logits, "[N, vocabulary]");
  ops::check_disjoint(layers::kNetworkName, name, extent, "hidden", hidden_extent);
}

void Network::logits(Engine& engine, View<const float, 2> hidden, View<float, 2> logits) const {
  check_logits(hidden, "logits", logits);
  ops::check_no_self_overlap(layers::kNetworkName, "logits", logits.shape, logits.strides);
  if (hidden.extent(0) > 0) state_->logits.forward(engine, hidden, logits);
}

void Network::logits_backward(Engine& engine, View<const float, 2> hidden, View<const float, 2> logits,
                              View<float, 2> logits_gradient, View<float, 2> hidden_gradient) {
  check_logits(hidden, "logits_gradient", logits_gradient);
  const LogitsSpec& spec = state_->spec.logits;
  if (spec.cap > 0) check_logits(hidden, "logits", logits);
  if (spec.cap > 0 || spec.factor != 1) {
    layers::GradientPlace(layers::kNetworkName, "logits_gradient", logits_gradient)
        .same_as_or_apart_from("logits", spec.cap > 0 ? logits : View<const float, 2>());
  }
  ops::check_shape(layers::kNetworkName, "hidden_gradient", hidden_gradient.shape, hidden.shape, "[N, E]");
  layers::GradientPlace(layers::kNetworkName, "hidden_gradient", hidden_gradient)
      .same_as_or_apart_from("hidden", hidden)
      .apart_from("logits_gradient", logits_gradient);
  state_->graph.parameters().check_training();
  if (hidden.extent(0) > 0) state_->logits.backward(engine, hidden, logits, logits_gradient, hidden_gradient);
}

// What decides how memory is laid out.
std::array<std::int64_t, 12> Network::made_with() const noexcept {
  return {state_->spec.width, static_cast<std::int64_t>(state_->spec.blocks.size()), state_->graph.layout()};
}

std::size_t Network::workspace_bytes(const Engine& engine, std::int64_t tokens) const {
  static_cast<void>(layers::at_least(0, layers::kNetworkName, "tokens", tokens));
  return state_->graph.workspace_bytes(engine, {1, tokens}, state_->logits.workspace_bytes(engine, tokens));
}

void Network::reserve(Engine& engine, std::int64_t tokens) const {
  static_cast<void>(layers::at_least(0, layers::kNetworkName, "tokens", tokens));
  state_->graph.reserve(engine, {1, tokens}, state_->logits.workspace_bytes(engine, tokens));
  state_->logits.pack_weights(engine);
}

void Network::append_parameters(const std::string& prefix, std::vector<layers::ParameterPlace>& list, const Weights*) {
  state_->graph.parameters().append_to(prefix, list);
}

void Network::initialize_from(layers::Initializer& initializer) {
  state_->graph.parameters().initialize_from(initializer);
}

void Network::set_open(bool open) noexcept { state_->graph.parameters().set_open(open); }

void Network::make_gradients(bool wanted) { state_->graph.parameters().make_gradients(wanted); }

}  // namespace headlight
