// A program that calls attention_backward() over float32 and nothing else.
#include <cstdio>

#include "headlight/attention_backward.h"
#include "headlight/engine.h"

int main() {
  const float rows[4] = {1, 2, 3, 4}, attended[4] = {1, 2, 1, 2}, sums[2] = {0, 0};
  float gradients[3][4];
  const headlight::View<const float, 4> in(rows, {1, 2, 1, 2}), out(attended, {1, 2, 1, 2});
  headlight::Engine engine;
  headlight::attention_backward(
      engine, in, in, in, out, headlight::View<const float, 3>(sums, {1, 1, 2}), in,
      {{gradients[0], {1, 2, 1, 2}}, {gradients[1], {1, 2, 1, 2}}, {gradients[2], {1, 2, 1, 2}}});
  std::printf("%g\n", static_cast<double>(gradients[0][0]));
}
