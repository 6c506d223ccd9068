// A training step of one transformer encoder layer behind C functions, for the comparison: training whole layers is not
// part of the C interface.
#include <cstdint>
#include <string>
#include <vector>

#include "headlight/layers/transformer.h"

namespace {

struct TrainingStep {
  TrainingStep(int threads, std::int64_t batch, std::int64_t length, std::int64_t width, std::int64_t heads)
      : engine({.threads = threads}),
        layer({.width = width, .heads = heads, .dropout = 0}),
        x({batch, length, width}),
        y_gradient(x.shape()),
        y(x.shape()),
        x_gradient(x.shape()) {
    layer.initialize(1);
    layer.set_training(true);
    parameters = layer.parameters();
  }
  void run() {
    headlight::zero_gradients(parameters);
    layer.forward(engine, x, y, saved, {.seed = 1});
    layer.backward(engine, x, saved, y_gradient, x_gradient);
  }

  headlight::Engine engine;
  headlight::TransformerEncoderLayer layer;
  headlight::SavedState saved;
  headlight::Tensor<float, 3> x, y_gradient, y, x_gradient;
  std::vector<headlight::Parameter> parameters;
};

// What C sees of a parameter.
struct ParameterMemory {
  const char* name;
  float* values;
  float* gradient;
  std::int64_t rows;  // shape[0]
  std::int64_t count;
};

}  // namespace

extern "C" {

HEADLIGHT_API void* training_step_create(std::int32_t threads, std::int64_t batch, std::int64_t length,
                                         std::int64_t width, std::int64_t heads) {
  return new TrainingStep(threads, batch, length, width, heads);
}

HEADLIGHT_API void training_step_destroy(void* step) { delete static_cast<TrainingStep*>(step); }

// x, the gradient of y, y, the gradient of x: [batch, length, width] each.
HEADLIGHT_API float* training_step_tensor(void* step, std::int32_t number) {
  auto& of = *static_cast<TrainingStep*>(step);
  headlight::Tensor<float, 3>* const tensors[] = {&of.x, &of.y_gradient, &of.y, &of.x_gradient};
  return tensors[number]->data();
}

// The parameter of this number; 0 behind the last.
HEADLIGHT_API std::int32_t training_step_parameter(void* step, std::int32_t number, ParameterMemory* memory) {
  auto& parameters = static_cast<TrainingStep*>(step)->parameters;
  if (static_cast<std::size_t>(number) >= parameters.size()) return 0;
  const headlight::Parameter& of = parameters[static_cast<std::size_t>(number)];
  *memory = {of.name.c_str(), of.values.data(), of.gradient.data(), of.shape[0],
             static_cast<std::int64_t>(of.values.size())};
  return 1;
}

HEADLIGHT_API void training_step_run(void* step) { static_cast<TrainingStep*>(step)->run(); }

}  // extern "C"
