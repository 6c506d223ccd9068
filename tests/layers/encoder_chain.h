// An encoder put together from its public parts: tables, a normalisation and a chain of TransformerEncoderLayer, each
// of which is a graph of its own, where an Encoder is one (encoder_layer_parts_test.cc has the parts of a layer).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "headlight/dropout.h"
#include "headlight/layers/encoder.h"
#include "headlight/normalization.h"
#include "layers/initializer.h"
#include "layers/twins.h"
#include "support/random.h"

namespace headlight::test {

class EncoderChain {
 public:
  explicit EncoderChain(const EncoderOptions& options)
      : options_(options),
        word_({options.vocabulary, options.width}),
        position_({options.max_positions, options.width}),
        token_type_({options.token_types, options.width}),
        norm_(options.width, options.layer_norm_epsilon) {
    for (std::int64_t n = 0; n < options.layers; ++n) layers_.emplace_back(options.layer_options());
  }

  // All numbers off those that they begin with.
  void draw(Random& random) {
    word_ = random.normal_tensor<2>(word_.shape());
    position_ = random.normal_tensor<2>(position_.shape());
    token_type_ = random.normal_tensor<2>(token_type_.shape());
    randomize(norm_, random);
    for (TransformerEncoderLayer& layer : layers_) randomize(layer, random);
  }
  // In the order of the parameters; tables with the standard deviation 0.02.
  void initialize(std::uint64_t seed) {
    layers::Initializer initializer(seed);
    for (Tensor<float, 2>* const table : {&word_, &position_, &token_type_}) {
      initializer.uniform({table->data(), table->end()}, 0.02f * 1.7320508f);
    }
    norm_.initialize_from(initializer);
    for (TransformerEncoderLayer& layer : layers_) layer.initialize_from(initializer);
  }
  void set_precision(NumberType type) {
    for (TransformerEncoderLayer& layer : layers_) layer.set_precision(type);
  }
  void set_training(bool training) {
    norm_.set_training(training);
    for (TransformerEncoderLayer& layer : layers_) layer.set_training(training);
  }

  [[nodiscard]] const EncoderOptions& options() const noexcept { return options_; }
  // As an Encoder names them.
  [[nodiscard]] Weights weights() const {
    Weights all;
    const auto add = [&](const std::string& name, const Tensor<float, 2>& table) {
      if (table.size() == 0) return;
      all[name].shape = {table.shape()[0], table.shape()[1]};
      all[name].values = {table.data(), table.end()};
    };
    add("word_embeddings.weight", word_);
    add("position_embeddings.weight", position_);
    add("token_type_embeddings.weight", token_type_);
    for (const auto& [name, weight] : norm_.weights()) all["norm." + name] = weight;
    for (std::size_t n = 0; n < layers_.size(); ++n) {
      for (const auto& [name, weight] : layers_[n].weights()) all[prefix(n) + name] = weight;
    }
    return all;
  }
  // Of the layers alone: what shards of rows can be given for.
  [[nodiscard]] std::vector<Parameter> layer_parameters() {
    std::vector<Parameter> all;
    for (std::size_t n = 0; n < layers_.size(); ++n) {
      for (Parameter& parameter : layers_[n].parameters()) {
        parameter.name = prefix(n) + parameter.name;
        all.push_back(parameter);
      }
    }
    return all;
  }
  // After backward().
  [[nodiscard]] std::vector<Parameter> parameters() {
    std::vector<Parameter> all = layer_parameters();
    const auto add = [&](const std::string& name, Tensor<float, 2>& table, Tensor<float, 2>& gradient) {
      all.push_back(
          {name, {table.shape()[0], table.shape()[1]}, {table.data(), table.end()}, {gradient.data(), gradient.end()}});
    };
    add("word_embeddings.weight", word_, word_gradient_);
    add("position_embeddings.weight", position_, position_gradient_);
    if (options_.token_types > 0) add("token_type_embeddings.weight", token_type_, token_type_gradient_);
    for (Parameter& parameter : norm_.parameters()) {
      parameter.name = "norm." + parameter.name;
      all.push_back(parameter);
    }
    return all;
  }

  void forward(Engine& engine, const EncoderInput& input, View<float, 2> hidden,
               const std::vector<LayerProbabilities>& probabilities = {},
               const std::vector<LayerHeads>& heads = {}) const {
    embed_tokens(engine, input, hidden);
    if (options_.norm == Norm::post) norm_.forward(engine, hidden, hidden);
    for (std::size_t n = 0; n < layers_.size(); ++n) {
      AttentionOptions options = {.query_offsets = input.offsets};
      for (const LayerProbabilities& of : probabilities) {
        if (of.layer == static_cast<std::int64_t>(n)) options.probabilities = of.probabilities;
      }
      HeadAccess access;
      for (const LayerHeads& of : heads) {
        if (of.layer != static_cast<std::int64_t>(n)) continue;
        access.silenced = of.silenced;
        if (of.outputs) access.outputs = sample(of.outputs);
        if (of.scaled_outputs) access.scaled_outputs = sample(of.scaled_outputs);
      }
      layers_[n].forward(engine, sample(hidden), sample(hidden), options, access);
    }
    if (options_.norm == Norm::pre) norm_.forward(engine, hidden, hidden);
  }

  // Training; make() gives the state of each layer.
  template <class Make>
  void forward(Engine& engine, const EncoderInput& input, View<float, 2> hidden, const Make& make,
               const TrainingStep& step) {
    step_ = step;
    saved_.clear();
    embedded_ = Tensor<float, 2>(hidden.shape);
    inputs_.clear();
    for (std::size_t n = 0; n <= layers_.size(); ++n) inputs_.emplace_back(hidden.shape);
    embed_tokens(engine, input, embedded_);
    if (options_.norm == Norm::post) norm_.forward(engine, embedded_, inputs_[0]);
    dropout(engine, options_.norm == Norm::post ? inputs_[0].view() : embedded_.view(), inputs_[0].view(), dropped());
    for (std::size_t n = 0; n < layers_.size(); ++n) {
      saved_.push_back(make());
      layers_[n].forward(engine, sample(inputs_[n].view()), sample(inputs_[n + 1].view()), saved_[n], part(n),
                         {.query_offsets = input.offsets});
    }
    const View<float, 2> last = inputs_.back().view();
    if (options_.norm == Norm::pre) {
      norm_.forward(engine, last, hidden);
    } else {
      std::copy_n(last.data, inputs_.back().size(), hidden.data);
    }
  }
  void backward(Engine& engine, const EncoderInput& input, View<const float, 2> by, HeadVisitor* visitor = nullptr) {
    Tensor<float, 2> gradient(by.shape);
    const View<float, 2> rows = gradient.view();
    std::copy_n(by.data, gradient.size(), rows.data);
    if (options_.norm == Norm::pre) norm_.backward(engine, inputs_.back(), by, rows);
    for (std::size_t n = layers_.size(); n-- > 0;) {
      layers_[n].backward(engine, sample(inputs_[n].view()), saved_[n], sample(rows), sample(rows),
                          {visitor, static_cast<std::int64_t>(n)});
    }
    dropout(engine, rows, rows, dropped());
    if (options_.norm == Norm::post) norm_.backward(engine, embedded_, rows, rows);
    word_gradient_ = Tensor<float, 2>(word_.shape());
    position_gradient_ = Tensor<float, 2>(position_.shape());
    token_type_gradient_ = Tensor<float, 2>(token_type_.shape());
    std::vector<EmbeddingGradient> tables = {{word_gradient_, input.ids}, {position_gradient_, input.positions}};
    if (options_.token_types > 0) tables.push_back({token_type_gradient_, input.token_types});
    embed_backward(engine, rows, tables);
  }

 private:
  [[nodiscard]] static std::string prefix(std::size_t layer) { return "layers." + std::to_string(layer) + "."; }
  [[nodiscard]] static View<float, 3> sample(const View<float, 2>& rows) {
    return {rows.data, {1, rows.extent(0), rows.extent(1)}};
  }
  void embed_tokens(Engine& engine, const EncoderInput& input, View<float, 2> out) const {
    std::vector<Embedding> tables = {{word_.view(), input.ids}, {position_.view(), input.positions}};
    if (options_.token_types > 0) tables.push_back({token_type_.view(), input.token_types});
    embed(engine, tables, out);
  }
  // The step as a part sees it; the embeddings come behind the layers.
  [[nodiscard]] TrainingStep part(std::size_t number) const noexcept {
    const auto parts = static_cast<std::uint32_t>(options_.layers + 1);
    return {step_.seed, step_.step, step_.layer * parts + static_cast<std::uint32_t>(number), step_.layers * parts};
  }
  [[nodiscard]] Dropout dropped() const noexcept { return part(layers_.size()).dropout(options_.dropout, 0); }

  EncoderOptions options_;
  Tensor<float, 2> word_, position_, token_type_;
  LayerNorm norm_;
  std::vector<TransformerEncoderLayer> layers_;
  TrainingStep step_{};
  std::vector<SavedState> saved_;
  // The sum of the embeddings, the input of each layer and the output of the last.
  Tensor<float, 2> embedded_;
  std::vector<Tensor<float, 2>> inputs_;
  Tensor<float, 2> word_gradient_, position_gradient_, token_type_gradient_;
};

}  // namespace headlight::test
