// Training: an encoder of one layer learns to predict, at each token, the id of the token before it.
#include <headlight/layers.h>
#include <headlight/loss.h>
#include <headlight/optimizer.h>

#include <iostream>
#include <vector>

int main() {
  const std::vector<std::int64_t> tokens = {3, 1, 4, 1, 5, 9, 2, 6}, positions = {0, 1, 2, 3, 4, 5, 6, 7},
                                  offsets = {0, 8};
  const std::vector<std::int64_t> before = {0, 3, 1, 4, 1, 5, 9, 2};
  const headlight::EncoderInput input = {.ids = tokens, .positions = positions, .offsets = offsets};

  headlight::Engine engine;
  headlight::Encoder encoder({.vocabulary = 16, .max_positions = 8, .width = 16, .heads = 2, .layers = 1});
  encoder.initialize(/*seed=*/1);
  encoder.set_training(true);
  headlight::AdamW optimizer(encoder.parameters());
  headlight::SavedState saved;                                            // what forward keeps for backward
  headlight::Tensor<float, 2> hidden({8, 16}), hidden_gradient({8, 16});  // 16 outputs: a score for each token id
  for (std::uint64_t step = 0; step <= 200; ++step) {
    optimizer.zero_gradients();
    encoder.forward(engine, input, hidden, saved, {.seed = 1, .step = step});
    const double loss = headlight::cross_entropy(engine, hidden, before, {.logits_gradient = hidden_gradient}).loss;
    encoder.backward(engine, input, saved, hidden_gradient);
    optimizer.step(engine, {.learning_rate = 0.01});
    if (step % 100 == 0) std::cout << "step " << step << ": loss " << loss << '\n';
  }
}
