// Layers: made, computed with, loaded, trained.
#include <memory>
#include <optional>

#include "digests/digest.h"
#include "faults/scene.h"
#include "headlight/gradient_tree.h"
#include "headlight/layers.h"
#include "headlight/loss.h"
#include "headlight/optimizer.h"
#include "support/random.h"

namespace headlight::faults::layer_scenes {
namespace {

using test::Digest;
using test::Random;

constexpr TransformerLayerOptions kOptions = {.width = 24, .heads = 3, .feed_forward_width = 40};
constexpr EncoderOptions kEncoder = {
    .vocabulary = 16, .max_positions = 8, .width = 16, .heads = 2, .feed_forward_width = 24, .layers = 2};
constexpr View<float, 3>::Shape kShape = {2, 9, 24};

void add_weights(Digest& digest, const Layer& layer) {
  for (const auto& [name, weight] : layer.weights()) digest.add(weight.values);
}

// Initialised with a seed of its own, and never shown: its weights may lie in panels alone.
template <class Made, class Options>
Made initialised(const Options& options, std::uint64_t seed = 1) {
  Made layer(options);
  layer.initialize(seed);
  return layer;
}

class MakingScene : public Scene {
 public:
  void call() override {
    encoder_ = nullptr;
    encoder_ = std::make_unique<Encoder>(kEncoder);
    encoder_->initialize(1);
  }
  std::uint64_t result() const override {
    Digest digest;
    add_weights(digest, *encoder_);
    return digest.value();
  }

 private:
  std::unique_ptr<Encoder> encoder_;
};

// A forward pass may have written a part of y; the layer is as it was.
template <NumberType kPrecision>
class ForwardScene : public Scene {
 public:
  void call() override {
    encoder_.set_precision(kPrecision);
    encoder_.forward(engine_, x_, y_);
    decoder_.forward(engine_, x_, y_, z_);
  }
  std::uint64_t result() const override {
    Digest digest;
    digest.add(y_);
    digest.add(z_);
    return digest.value();
  }
  std::uint64_t state() const override {
    Digest digest;
    add_weights(digest, encoder_);
    add_weights(digest, decoder_);
    return digest.value();
  }

 private:
  Random random_{3};
  Tensor<float, 3> x_ = random_.normal_tensor<3>(kShape), y_{kShape}, z_{kShape};
  TransformerEncoderLayer encoder_ = initialised<TransformerEncoderLayer>(kOptions);
  TransformerDecoderLayer decoder_ = initialised<TransformerDecoderLayer>(kOptions);
  Engine engine_{EngineOptions{.threads = 3}};
};

class LoadScene : public Scene {
 public:
  void call() override { layer_.load(weights_); }
  std::uint64_t result() const override {
    Digest digest;
    add_weights(digest, layer_);
    return digest.value();
  }
  std::uint64_t state() const override { return result(); }

 private:
  TransformerEncoderLayer other_ = initialised<TransformerEncoderLayer>(kOptions, 2);
  Weights weights_ = other_.weights();
  TransformerEncoderLayer layer_ = initialised<TransformerEncoderLayer>(kOptions);
};

// Whoever asks for parameters is shown rows: they are read back from panels.
class ParametersScene : public Scene {
 public:
  ParametersScene() {
    Tensor<float, 3> x(kShape), y(kShape);
    layer_.forward(engine_, x, y);
  }
  void call() override { parameters_ = layer_.parameters(); }
  std::uint64_t result() const override {
    Digest digest;
    for (const Parameter& parameter : parameters_) digest.add(parameter.values);
    return digest.value();
  }
  std::uint64_t state() const override {
    Digest digest;
    add_weights(digest, layer_);
    return digest.value();
  }

 private:
  Engine engine_{EngineOptions{.threads = 1}};
  TransformerEncoderLayer layer_ = initialised<TransformerEncoderLayer>(kOptions);
  std::vector<Parameter> parameters_;
};

// One step of training with a new optimiser. What fails on the way has taken no step.
class TrainingScene : public Scene {
 public:
  void call() override {
    encoder_.set_training(true);
    std::optional<AdamW> optimizer(encoder_.parameters());
    optimizer->zero_gradients();
    encoder_.forward(engine_, input(), hidden_, saved_, {.seed = 1, .step = 2});
    loss_ = cross_entropy(engine_, hidden_, ids_, {.logits_gradient = hidden_gradient_}).loss;
    encoder_.backward(engine_, input(), saved_, hidden_gradient_);
    const std::vector<Parameter> moments = optimizer->state();
    optimizer->step(engine_, {.learning_rate = 0.01});
    Digest digest;
    for (const Parameter& moment : moments) digest.add(moment.values);
    moments_ = digest.value();
  }
  std::uint64_t result() const override {
    Digest digest;
    digest.add(loss_);
    digest.add(moments_);
    add_weights(digest, encoder_);
    return digest.value();
  }
  std::uint64_t state() const override {
    Digest digest;
    add_weights(digest, encoder_);
    return digest.value();
  }

 private:
  EncoderInput input() const { return {.ids = ids_, .positions = places_, .offsets = ends_}; }

  const std::vector<std::int64_t> ids_ = {3, 1, 4, 1, 5, 9, 2, 6}, places_ = {0, 1, 2, 3, 4, 5, 6, 7}, ends_ = {0, 8};
  Tensor<float, 2> hidden_{{8, 16}}, hidden_gradient_{{8, 16}};
  SavedState saved_{Checkpoint::layer_input};
  Encoder encoder_ = initialised<Encoder>(kEncoder);
  Engine engine_{EngineOptions{.threads = 3}};
  double loss_ = 0;
  std::uint64_t moments_ = 0;
};

// The gradients of three shards, added as a tree does: its memory is the only thing that can be refused.
class TreeScene : public Scene {
 public:
  TreeScene() {
    layer_.set_training(true);
    parameters_ = layer_.parameters();
  }
  void call() override {
    GradientTree tree(parameters_, 0, kShards);
    for (int shard = 0; shard < kShards; ++shard) {
      Random random(static_cast<std::uint64_t>(shard));
      for (const Parameter& parameter : parameters_) {
        for (float& element : parameter.gradient) element = random.normal();
      }
      if (shard + 1 < kShards) tree.take(engine_);
    }
    tree.finish(engine_);
  }
  std::uint64_t result() const override {
    Digest digest;
    for (const Parameter& parameter : parameters_) digest.add(std::span<const float>(parameter.gradient));
    return digest.value();
  }
  std::uint64_t state() const override { return result(); }

 private:
  static constexpr int kShards = 3;
  TransformerEncoderLayer layer_ = initialised<TransformerEncoderLayer>(kOptions);
  std::vector<Parameter> parameters_;
  Engine engine_{EngineOptions{.threads = 3}};
};

}  // namespace

std::span<const NamedScene> list() {
  static constexpr NamedScene kScenes[] = {
      {"an Encoder made", make_scene<MakingScene>},
      {"forward of layers", make_scene<ForwardScene<NumberType::float32>>},
      {"forward of layers, bfloat16", make_scene<ForwardScene<NumberType::bfloat16>>},
      {"forward of layers, int8", make_scene<ForwardScene<NumberType::int8>>},
      {"Layer::load", make_scene<LoadScene>},
      {"Layer::parameters", make_scene<ParametersScene>},
      {"a step of training", make_scene<TrainingScene>},
      {"GradientTree", make_scene<TreeScene>},
  };
  return kScenes;
}

}  // namespace headlight::faults::layer_scenes
