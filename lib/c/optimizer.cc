#include "headlight/optimizer.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "c/handles.h"
#include "c/parameters.h"
#include "headlight/c/optimizer.h"

struct headlight_optimizer {
  using Trainings = std::vector<std::weak_ptr<headlight::c::Training>>;

  headlight_optimizer(std::unique_ptr<headlight::Optimizer> optimizer_, Trainings trainings_)
      : optimizer(std::move(optimizer_)), trainings(std::move(trainings_)), state(optimizer->state()) {}

  // The number of the first layer whose training has ended, or how many layers there are. From then on the optimiser's
  // parameters may lie in memory that is gone.
  [[nodiscard]] std::size_t ended() const noexcept {
    const auto found = std::find_if(trainings.begin(), trainings.end(), [](const auto& one) { return one.expired(); });
    return static_cast<std::size_t>(found - trainings.begin());
  }

  std::unique_ptr<headlight::Optimizer> optimizer;
  Trainings trainings;  // of each layer
  // Listed once, so that their names and shapes stay where they are.
  std::vector<headlight::Parameter> state;
};

namespace headlight::c {
namespace {

constexpr const char* kName = "optimizer";

double given_or(const double* given, double otherwise) noexcept { return given == nullptr ? otherwise : *given; }

std::vector<Parameter> parameters_of(headlight_layer* const* layers, std::size_t count) {
  std::vector<Parameter> list;
  for (std::size_t number = 0; number < count; ++number) {
    headlight_layer& handle = entry(kName, "layers", layers, number);
    for (Parameter& parameter : handle.layer->parameters()) {
      parameter.name = std::to_string(number) + "." + parameter.name;
      list.push_back(std::move(parameter));
    }
    handle.settle();
  }
  return list;
}

headlight_optimizer::Trainings trainings_of(headlight_layer* const* layers, std::size_t count) {
  headlight_optimizer::Trainings list;
  for (std::size_t number = 0; number < count; ++number) {
    list.push_back(entry(kName, "layers", layers, number).training);
  }
  return list;
}

// An optimiser in training.
Optimizer& learning(headlight_optimizer* optimizer) {
  const headlight_optimizer& handle = required(kName, "optimizer", optimizer);
  const std::size_t number = handle.ended();
  if (number < handle.trainings.size()) {
    refuse(kName, "layers[" + std::to_string(number) +
                      "] has left training or was destroyed, expected layers in training ever since it was made");
  }
  return *handle.optimizer;
}

void write(headlight_step_report* to, const StepReport& report) {
  if (to == nullptr) return;
  headlight_step_report found{};
  found.struct_size = to->struct_size;
  found.gradient_norm = report.gradient_norm;
  // A view of a parameter's name, which ends in a zero byte.
  found.non_finite = report.taken() ? nullptr : report.non_finite.data();
  std::memcpy(to, &found, std::min(found.struct_size, sizeof found));
}

}  // namespace
}  // namespace headlight::c

using namespace headlight;
using namespace headlight::c;

headlight_status headlight_sgd_create(headlight_layer* const* layers, size_t count,
                                      const headlight_sgd_options* options, headlight_optimizer** optimizer,
                                      headlight_error* error) {
  return create(kName, optimizer, error, [&] {
    const Fields fields(kName, "options", options);
    const SgdOptions wanted{.momentum = given_or(fields->momentum, SgdOptions{}.momentum),
                            .weight_decay = given_or(fields->weight_decay, SgdOptions{}.weight_decay)};
    return std::make_unique<headlight_optimizer>(std::make_unique<Sgd>(parameters_of(layers, count), wanted),
                                                 trainings_of(layers, count));
  });
}

headlight_status headlight_adamw_create(headlight_layer* const* layers, size_t count,
                                        const headlight_adamw_options* options, headlight_optimizer** optimizer,
                                        headlight_error* error) {
  return create(kName, optimizer, error, [&] {
    const Fields fields(kName, "options", options);
    const AdamWOptions wanted{.beta1 = given_or(fields->beta1, AdamWOptions{}.beta1),
                              .beta2 = given_or(fields->beta2, AdamWOptions{}.beta2),
                              .epsilon = given_or(fields->epsilon, AdamWOptions{}.epsilon),
                              .weight_decay = given_or(fields->weight_decay, AdamWOptions{}.weight_decay)};
    return std::make_unique<headlight_optimizer>(std::make_unique<AdamW>(parameters_of(layers, count), wanted),
                                                 trainings_of(layers, count));
  });
}

void headlight_optimizer_destroy(headlight_optimizer* optimizer) { delete optimizer; }

headlight_status headlight_optimizer_step(headlight_optimizer* optimizer, headlight_engine* engine,
                                          const headlight_step_options* options, headlight_step_report* report,
                                          headlight_error* error) {
  return call(kName, engine, error, [&](Engine& on) {
    const Fields fields(kName, "options", options);
    if (report != nullptr) size_of_struct(kName, "report", *report);
    write(report,
          learning(optimizer).step(on, {.learning_rate = given_or(fields->learning_rate, StepOptions{}.learning_rate),
                                        .max_norm = given_or(fields->max_norm, StepOptions{}.max_norm)}));
  });
}

void headlight_optimizer_zero_gradients(headlight_optimizer* optimizer) {
  if (optimizer != nullptr && optimizer->ended() == optimizer->trainings.size()) optimizer->optimizer->zero_gradients();
}

int64_t headlight_optimizer_steps(const headlight_optimizer* optimizer) {
  return optimizer == nullptr ? 0 : optimizer->optimizer->steps();
}

headlight_status headlight_optimizer_set_steps(headlight_optimizer* optimizer, int64_t steps, headlight_error* error) {
  return call(error, [&] { required(kName, "optimizer", optimizer).optimizer->set_steps(steps); });
}

int64_t headlight_optimizer_state_count(const headlight_optimizer* optimizer) {
  return optimizer == nullptr ? 0 : static_cast<int64_t>(optimizer->state.size());
}

headlight_status headlight_optimizer_state(const headlight_optimizer* optimizer, int64_t index, const char** name,
                                           int32_t* rank, const int64_t** shape, headlight_error* error) {
  return call(error, [&] { tell(kName, required(kName, "optimizer", optimizer).state, index, name, rank, shape); });
}

headlight_status headlight_optimizer_get_state(const headlight_optimizer* optimizer, const char* name,
                                               const headlight_tensor* values, headlight_error* error) {
  return call(error, [&] {
    const Parameter& moment = matching(kName, required(kName, "optimizer", optimizer).state, name, values);
    std::memcpy(values->data, moment.values.data(), moment.values.size_bytes());
  });
}

headlight_status headlight_optimizer_set_state(headlight_optimizer* optimizer, const char* name,
                                               const headlight_tensor* values, headlight_error* error) {
  return call(error, [&] {
    const Parameter& moment = matching(kName, required(kName, "optimizer", optimizer).state, name, values);
    std::memcpy(moment.values.data(), values->data, moment.values.size_bytes());
  });
}

double headlight_warmup_cosine(double peak, double least, int64_t warmup, int64_t total, int64_t step) {
  return WarmupCosine{.peak = peak, .least = least, .warmup = warmup, .total = total}(step);
}
