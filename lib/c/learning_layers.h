// What optimisers of the C interface have in common: the parameters of layers in training, options and reports.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "c/handles.h"
#include "headlight/c/optimizer.h"
#include "headlight/optimizer.h"

namespace headlight::c {

// Layers that an optimiser was made for, and their parameters, each with the layer's number before its name.
class LearningLayers {
 public:
  LearningLayers(const char* operation, headlight_layer* const* layers, std::size_t count) {
    for (std::size_t number = 0; number < count; ++number) {
      headlight_layer& handle = entry(operation, "layers", layers, number);
      for (Parameter& parameter : handle.layer->parameters()) {
        parameter.name = std::to_string(number) + "." + parameter.name;
        parameters_.push_back(std::move(parameter));
      }
      handle.settle();
      trainings_.push_back(handle.training);
    }
  }

  [[nodiscard]] const std::vector<Parameter>& parameters() const noexcept { return parameters_; }
  // Whether all are in training ever since. If not, parameters may lie in memory that is gone.
  [[nodiscard]] bool learn() const noexcept { return ended() == trainings_.size(); }
  void check(const char* operation) const {
    if (learn()) return;
    refuse(operation, "layers[", ended(),
           "] has left training or was destroyed, expected layers in training ever since it was made");
  }

 private:
  // The number of the first layer whose training has ended, or how many layers there are.
  [[nodiscard]] std::size_t ended() const noexcept {
    const auto found =
        std::find_if(trainings_.begin(), trainings_.end(), [](const auto& one) { return one.expired(); });
    return static_cast<std::size_t>(found - trainings_.begin());
  }

  std::vector<Parameter> parameters_;
  std::vector<std::weak_ptr<Training>> trainings_;  // of each layer
};

inline double given_or(const double* given, double otherwise) noexcept { return given == nullptr ? otherwise : *given; }

inline AdamWOptions adamw_options(const char* operation, const headlight_adamw_options* options) {
  const Fields fields(operation, "options", options);
  return {.beta1 = given_or(fields->beta1, AdamWOptions{}.beta1),
          .beta2 = given_or(fields->beta2, AdamWOptions{}.beta2),
          .epsilon = given_or(fields->epsilon, AdamWOptions{}.epsilon),
          .weight_decay = given_or(fields->weight_decay, AdamWOptions{}.weight_decay)};
}

inline StepOptions step_options(const char* operation, const headlight_step_options* options) {
  const Fields fields(operation, "options", options);
  return {.learning_rate = given_or(fields->learning_rate, StepOptions{}.learning_rate),
          .max_norm = given_or(fields->max_norm, StepOptions{}.max_norm)};
}

inline void write(headlight_step_report* to, const StepReport& report) {
  if (to == nullptr) return;
  headlight_step_report found{};
  found.struct_size = to->struct_size;
  found.gradient_norm = report.gradient_norm;
  // A view of a parameter's name, which ends in a zero byte.
  found.non_finite = report.taken() ? nullptr : report.non_finite.data();
  std::memcpy(to, &found, std::min(found.struct_size, sizeof found));
}

}  // namespace headlight::c
