// One transformer layer learns to turn some vectors into others.
#include <headlight/layers.h>
#include <headlight/optimizer.h>

#include <cmath>

int main() {
  headlight::Engine engine;
  headlight::TransformerEncoderLayer layer({.width = 16, .heads = 2, .dropout = 0});
  layer.initialize(/*seed=*/1);
  layer.set_training(true);  // every parameter gets a gradient
  headlight::AdamW optimizer(layer.parameters());
  headlight::SavedState saved;  // what forward keeps for backward

  headlight::Tensor<float, 3> x({4, 10, 16}), y({4, 10, 16}), wanted({4, 10, 16}), gradient({4, 10, 16});
  for (std::int64_t i = 0; i < x.size(); ++i) {
    x.data()[i] = std::sin(static_cast<float>(i));
    wanted.data()[i] = std::sin(static_cast<float>(i + 16));
  }
  double first = 0, loss = 0;
  for (std::uint64_t step = 0; step < 100; ++step) {
    layer.forward(engine, x, y, saved, {.seed = 1, .step = step});
    loss = 0;  // the mean of squared differences, and its gradient
    const auto count = static_cast<float>(y.size());
    for (std::int64_t i = 0; i < y.size(); ++i) {
      const float difference = y.data()[i] - wanted.data()[i];
      loss += difference * difference / count;
      gradient.data()[i] = 2 * difference / count;
    }
    if (step == 0) first = loss;
    optimizer.zero_gradients();
    layer.backward(engine, x, saved, gradient, gradient);  // the last is that of x, and may take its place
    optimizer.step(engine, {.learning_rate = 0.01});
  }
  layer.set_training(false);
  layer.freeze();  // nobody writes to its parameters any more: weights may be packed
  layer.forward(engine, x, y);
  return loss < first / 4 ? 0 : 1;
}
