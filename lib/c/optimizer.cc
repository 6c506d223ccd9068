#include "headlight/optimizer.h"

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "c/handles.h"
#include "c/learning_layers.h"
#include "c/parameters.h"
#include "headlight/c/optimizer.h"

struct headlight_optimizer {
  headlight_optimizer(std::unique_ptr<headlight::Optimizer> optimizer_, headlight::c::LearningLayers layers_)
      : optimizer(std::move(optimizer_)), layers(std::move(layers_)), state(optimizer->state()) {}

  std::unique_ptr<headlight::Optimizer> optimizer;
  headlight::c::LearningLayers layers;
  // Listed once, so that their names and shapes stay where they are.
  std::vector<headlight::Parameter> state;
};

namespace headlight::c {
namespace {

constexpr const char* kOptimizer = "optimizer";

// An optimiser in training.
Optimizer& learning(headlight_optimizer* optimizer) {
  const headlight_optimizer& handle = required(kOptimizer, "optimizer", optimizer);
  handle.layers.check(kOptimizer);
  return *handle.optimizer;
}

}  // namespace
}  // namespace headlight::c

using namespace headlight;
using namespace headlight::c;

headlight_status headlight_sgd_create(headlight_layer* const* layers, size_t count,
                                      const headlight_sgd_options* options, headlight_optimizer** optimizer,
                                      headlight_error* error) {
  return create(kOptimizer, optimizer, error, [&] {
    const Fields fields(kOptimizer, "options", options);
    const SgdOptions wanted{.momentum = given_or(fields->momentum, SgdOptions{}.momentum),
                            .weight_decay = given_or(fields->weight_decay, SgdOptions{}.weight_decay)};
    LearningLayers learning(kOptimizer, layers, count);
    return std::make_unique<headlight_optimizer>(std::make_unique<Sgd>(learning.parameters(), wanted),
                                                 std::move(learning));
  });
}

headlight_status headlight_adamw_create(headlight_layer* const* layers, size_t count,
                                        const headlight_adamw_options* options, headlight_optimizer** optimizer,
                                        headlight_error* error) {
  return create(kOptimizer, optimizer, error, [&] {
    const AdamWOptions wanted = adamw_options(kOptimizer, options);
    LearningLayers learning(kOptimizer, layers, count);
    return std::make_unique<headlight_optimizer>(std::make_unique<AdamW>(learning.parameters(), wanted),
                                                 std::move(learning));
  });
}

void headlight_optimizer_destroy(headlight_optimizer* optimizer) { delete optimizer; }

headlight_status headlight_optimizer_step(headlight_optimizer* optimizer, headlight_engine* engine,
                                          const headlight_step_options* options, headlight_step_report* report,
                                          headlight_error* error) {
  return call(kOptimizer, engine, error, [&](Engine& on) {
    const StepOptions wanted = step_options(kOptimizer, options);
    if (report != nullptr) size_of_struct(kOptimizer, "report", *report);
    write(report, learning(optimizer).step(on, wanted));
  });
}

void headlight_optimizer_zero_gradients(headlight_optimizer* optimizer) {
  if (optimizer != nullptr && optimizer->layers.learn()) optimizer->optimizer->zero_gradients();
}

int64_t headlight_optimizer_steps(const headlight_optimizer* optimizer) {
  return optimizer == nullptr ? 0 : optimizer->optimizer->steps();
}

headlight_status headlight_optimizer_set_steps(headlight_optimizer* optimizer, int64_t steps, headlight_error* error) {
  return call(error, [&] { required(kOptimizer, "optimizer", optimizer).optimizer->set_steps(steps); });
}

int64_t headlight_optimizer_state_count(const headlight_optimizer* optimizer) {
  return optimizer == nullptr ? 0 : static_cast<int64_t>(optimizer->state.size());
}

headlight_status headlight_optimizer_state(const headlight_optimizer* optimizer, int64_t index, const char** name,
                                           int32_t* rank, const int64_t** shape, headlight_error* error) {
  return call(error,
              [&] { tell(kOptimizer, required(kOptimizer, "optimizer", optimizer).state, index, name, rank, shape); });
}

headlight_status headlight_optimizer_get_state(const headlight_optimizer* optimizer, const char* name,
                                               const headlight_tensor* values, headlight_error* error) {
  return call(error, [&] {
    const Parameter& moment = matching(kOptimizer, required(kOptimizer, "optimizer", optimizer).state, name, values);
    std::memcpy(values->data, moment.values.data(), moment.values.size_bytes());
  });
}

headlight_status headlight_optimizer_set_state(headlight_optimizer* optimizer, const char* name,
                                               const headlight_tensor* values, headlight_error* error) {
  return call(error, [&] {
    const Parameter& moment = matching(kOptimizer, required(kOptimizer, "optimizer", optimizer).state, name, values);
    std::memcpy(moment.values.data(), values->data, moment.values.size_bytes());
  });
}

double headlight_warmup_cosine(double peak, double least, int64_t warmup, int64_t total, int64_t step) {
  return WarmupCosine{.peak = peak, .least = least, .warmup = warmup, .total = total}(step);
}
