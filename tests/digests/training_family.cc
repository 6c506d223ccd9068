// Whole training steps: forward, backward, optimiser, several times over.
#include <memory>

#include "digests/family.h"
#include "digests/layer_draws.h"
#include "headlight/loss.h"
#include "headlight/optimizer.h"
#include "support/keepings.h"

namespace headlight::test {
namespace training_family {

SavedState draw_saved_state(DigestCase& c) {
  const Keeping keeping = one_of(c.random, kKeepings);
  c.words << " " << keeping;
  return keeping.saved(c.random.integer(0, 2));
}

// An optimiser and its options.
class Steps {
 public:
  Steps(DigestCase& c, std::vector<Parameter> parameters) : c_(c) {
    const std::int64_t kind = c.random.integer(0, 3);
    if (kind < 2) {
      AdamWOptions options;
      if (c.random.once_in(2)) options.weight_decay = 0;
      optimizer_ = std::make_unique<AdamW>(std::move(parameters), options);
    } else {
      SgdOptions options;
      if (kind == 3) options.momentum = 0.875;
      if (c.random.once_in(2)) options.weight_decay = 0.125;
      optimizer_ = std::make_unique<Sgd>(std::move(parameters), options);
    }
    options_.learning_rate = kind < 2 ? 0x1p-8 : 0x1p-6;
    if (c.random.once_in(2)) options_.max_norm = 0.25;
    c.words << (kind < 2 ? " AdamW" : " Sgd") << " max_norm=" << options_.max_norm;
  }

  // One step, once the gradients are there.
  void take() {
    for (const Parameter& parameter : optimizer_->parameters()) {
      c_.digest.add(std::span<const float>(parameter.gradient));
    }
    c_.digest.add(optimizer_->step(c_.engine, options_).gradient_norm);
    optimizer_->zero_gradients();
  }
  // The parameters that came out.
  void end() {
    for (const Parameter& parameter : optimizer_->parameters()) {
      c_.digest.add(std::span<const float>(parameter.values));
    }
  }

 private:
  DigestCase& c_;
  std::unique_ptr<Optimizer> optimizer_;
  StepOptions options_;
};

TrainingStep draw_step(DigestCase& c) {
  TrainingStep step;
  step.seed = c.random.next();
  step.step = static_cast<std::uint64_t>(c.random.integer(0, 1000));
  return step;
}

// The gradient of half the squared distance to a target.
void add_difference(View<const float, 3> y, View<const float, 3> target, View<float, 3> gradient) {
  for (std::int64_t n = 0; n < y.size(); ++n) gradient.data[n] = y.data[n] - target.data[n];
}

constexpr int kIterations = 3;

void attention_layer(DigestCase& c) {
  const MultiHeadAttentionOptions made = draw_attention_layer(c.random, true, c.words);
  MultiHeadAttention layer(made);
  draw_weights(c.random, layer);
  AttentionSize size;
  size.batch = c.random.integer(1, 3);
  size.query_length = c.random.integer(1, 40);
  const std::int64_t key_width = made.key_width == 0 ? made.width : made.key_width;
  const std::int64_t value_width = made.value_width == 0 ? made.width : made.value_width;
  const bool self = key_width == made.width && value_width == made.width && c.random.once_in(2);
  size.key_length = self ? size.query_length : c.random.integer(1, 60);
  size.query_heads = made.heads;
  size.key_value_heads = made.key_value_heads;
  size.head_dim = size.value_dim = made.width / made.heads;
  AttentionChoice choice(c.random, size, AttentionChoice::Kind::all, c.words);
  choice.options.dropout = {};

  const Tensor<float, 3> query = draw_activations(c.random, size.batch, size.query_length, made.width);
  const Tensor<float, 3> key = draw_activations(c.random, size.batch, size.key_length, key_width);
  const Tensor<float, 3> value = draw_activations(c.random, size.batch, size.key_length, value_width);
  const Tensor<float, 3> target = draw_activations(c.random, size.batch, size.query_length, made.width);
  Tensor<float, 3> y(query.shape()), y_gradient(query.shape()), query_gradient(query.shape());
  Tensor<float, 3> key_gradient(key.shape()), value_gradient(value.shape());
  MultiHeadAttentionGradients gradients;
  gradients.query = query_gradient;
  if (!self) gradients.key = key_gradient;
  if (!self) gradients.value = value_gradient;
  Tensor<float, 4> bias_gradient;
  if (choice.options.bias && c.random.once_in(2)) {
    bias_gradient = Tensor<float, 4>(choice.options.bias.shape);
    gradients.bias = bias_gradient;
  }
  layer.set_training(true);
  SavedState saved = draw_saved_state(c);
  Steps steps(c, layer.parameters());
  TrainingStep step = draw_step(c);
  c.words << (self ? " self" : "") << size;
  for (int n = 0; n < kIterations; ++n, ++step.step) {
    const View<const float, 3> keys = self ? query : key, values = self ? query : value;
    layer.forward(c.engine, query, keys, values, y, saved, step, choice.options);
    add_difference(y, target, y_gradient);
    layer.backward(c.engine, query, keys, values, saved, y_gradient, gradients);
    c.digest.add(y);
    c.digest.add(gradients.query);
    c.digest.add(gradients.key);
    c.digest.add(gradients.value);
    c.digest.add(gradients.bias);
    steps.take();
  }
  steps.end();
}

void feed_forward(DigestCase& c) {
  const FeedForwardOptions made = draw_feed_forward(c.random, true, c.words);
  FeedForward layer(made);
  draw_weights(c.random, layer);
  const std::int64_t batch = c.random.integer(1, 3), length = c.random.integer(1, 40);
  const Tensor<float, 3> x = draw_activations(c.random, batch, length, made.width);
  const Tensor<float, 3> target = draw_activations(c.random, batch, length, made.width);
  Tensor<float, 3> y(x.shape()), gradient(x.shape());
  View<const float, 3> residual;
  if (c.random.once_in(2)) residual = x;
  layer.set_training(true);
  SavedState saved = draw_saved_state(c);
  Steps steps(c, layer.parameters());
  TrainingStep step = draw_step(c);
  c.words << " B=" << batch << " L=" << length << (residual ? " residual" : "");
  for (int n = 0; n < kIterations; ++n, ++step.step) {
    layer.forward(c.engine, x, y, saved, step, residual);
    add_difference(y, target, gradient);
    layer.backward(c.engine, x, saved, gradient, gradient);
    c.digest.add(y);
    c.digest.add(gradient);
    steps.take();
  }
  steps.end();
}

void encoder_layer(DigestCase& c) {
  c.words << " TransformerEncoderLayer";
  const TransformerLayerOptions made = draw_transformer_layer(c.random, true, c.words);
  TransformerEncoderLayer layer(made);
  draw_weights(c.random, layer);
  AttentionSize size;
  size.batch = c.random.integer(1, 3);
  size.query_length = size.key_length = c.random.integer(1, 40);
  size.query_heads = size.key_value_heads = made.heads;
  AttentionChoice choice(c.random, size, AttentionChoice::Kind::all, c.words);
  choice.options.dropout = {};
  const Tensor<float, 3> x = draw_activations(c.random, size.batch, size.query_length, made.width);
  const Tensor<float, 3> target = draw_activations(c.random, size.batch, size.query_length, made.width);
  Tensor<float, 3> y(x.shape()), gradient(x.shape());
  layer.set_training(true);
  SavedState saved = draw_saved_state(c);
  Steps steps(c, layer.parameters());
  TrainingStep step = draw_step(c);
  c.words << " B=" << size.batch << " L=" << size.query_length;
  for (int n = 0; n < kIterations; ++n, ++step.step) {
    layer.forward(c.engine, x, y, saved, step, choice.options);
    add_difference(y, target, gradient);
    layer.backward(c.engine, x, saved, gradient, gradient);
    c.digest.add(y);
    c.digest.add(gradient);
    steps.take();
  }
  steps.end();
}

void decoder_layer(DigestCase& c) {
  c.words << " TransformerDecoderLayer";
  const TransformerLayerOptions made = draw_transformer_layer(c.random, true, c.words);
  TransformerDecoderLayer layer(made);
  draw_weights(c.random, layer);
  const std::int64_t batch = c.random.integer(1, 3), length = c.random.integer(1, 30);
  const std::int64_t memory_length = c.random.integer(1, 40);
  const Tensor<float, 3> x = draw_activations(c.random, batch, length, made.width);
  const Tensor<float, 3> memory = draw_activations(c.random, batch, memory_length, made.width);
  const Tensor<float, 3> target = draw_activations(c.random, batch, length, made.width);
  Tensor<float, 3> y(x.shape()), gradient(x.shape()), memory_gradient(memory.shape());
  layer.set_training(true);
  SavedState saved = draw_saved_state(c);
  Steps steps(c, layer.parameters());
  TrainingStep step = draw_step(c);
  c.words << " B=" << batch << " L=" << length << " Lm=" << memory_length;
  for (int n = 0; n < kIterations; ++n, ++step.step) {
    layer.forward(c.engine, x, memory, y, saved, step);
    add_difference(y, target, gradient);
    layer.backward(c.engine, x, memory, saved, gradient, gradient, memory_gradient);
    c.digest.add(y);
    c.digest.add(gradient);
    c.digest.add(memory_gradient);
    steps.take();
  }
  steps.end();
}

// An encoder that learns to name labels, through a linear layer.
void encoder(DigestCase& c) {
  const EncoderOptions made = draw_encoder(c.random, true, c.words);
  Encoder layer(made);
  draw_weights(c.random, layer);
  const std::int64_t classes = c.random.integer(2, 30);
  Linear readout(made.width, classes);
  draw_weights(c.random, readout);
  const DigestTokens tokens(c.random, made, c.words);
  std::vector<std::int64_t> labels(tokens.ids.size());
  for (std::int64_t& label : labels) label = c.random.once_in(5) ? -100 : c.random.integer(0, classes - 1);
  Tensor<float, 2> hidden({tokens.count(), made.width}), hidden_gradient(hidden.shape());
  Tensor<float, 2> logits({tokens.count(), classes});

  layer.set_training(true);
  readout.set_training(true);
  std::vector<Parameter> parameters = layer.parameters();
  for (const Parameter& parameter : readout.parameters()) parameters.push_back(parameter);
  SavedState saved = draw_saved_state(c);
  Steps steps(c, std::move(parameters));
  TrainingStep step = draw_step(c);
  for (int n = 0; n < kIterations; ++n, ++step.step) {
    layer.forward(c.engine, tokens.input(), hidden, saved, step);
    readout.forward(c.engine, hidden, logits);
    c.digest.add(hidden);
    c.digest.add(logits);
    CrossEntropyOptions options;
    options.logits_gradient = logits;
    c.digest.add(cross_entropy(c.engine, logits, labels, options).loss);
    readout.backward(c.engine, hidden, logits, hidden_gradient);
    layer.backward(c.engine, tokens.input(), saved, hidden_gradient);
    c.digest.add(hidden_gradient);
    steps.take();
  }
  steps.end();
}

}  // namespace training_family

void digest_training(DigestCase& c) {
  constexpr void (*kKinds[])(DigestCase&) = {training_family::attention_layer, training_family::encoder,
                                             training_family::encoder_layer,   training_family::feed_forward,
                                             training_family::encoder,         training_family::decoder_layer,
                                             training_family::attention_layer, training_family::encoder};
  kKinds[c.number % 8](c);
}

}  // namespace headlight::test
