// One transformer encoder layer, width 512, 8 heads, on 32 sequences of 100 tokens.
#include <headlight/layers.h>

#include <iostream>

int main() {
  headlight::Engine engine;
  headlight::TransformerEncoderLayer layer({.width = 512, .heads = 8, .feed_forward_width = 2048});
  layer.initialize(/*seed=*/1);  // or layer.load(weights), with the names of torch.nn.TransformerEncoderLayer

  headlight::Tensor<float, 3> x({32, 100, 512}), y({32, 100, 512});
  for (float& element : x) element = static_cast<float>(&element - x.begin()) * 1e-6f;
  layer.forward(engine, x, y);

  std::cout << layer.parameter_count() << " parameters turned [32, 100, 512] into [" << y.shape()[0] << ", "
            << y.shape()[1] << ", " << y.shape()[2] << "]\n";
}
