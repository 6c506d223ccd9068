#include "headlight/layers/layer.h"

#include <algorithm>

#include "layers/initializer.h"
#include "layers/parameter_list.h"

namespace headlight {

std::vector<Parameter> Layer::parameters() {
  std::vector<Parameter> list;
  append_parameters("", list, nullptr);
  handed_out_ = true;
  settle();
  return list;
}

Weights Layer::weights() const {
  // Listing changes nothing; what it hands out is made read-only below.
  std::vector<Parameter> list;
  const_cast<Layer*>(this)->append_parameters("", list, nullptr);
  Weights named;
  for (Parameter& parameter : list) named[parameter.name] = {std::move(parameter.shape), parameter.values};
  return named;
}

std::int64_t Layer::parameter_count() const {
  std::int64_t count = 0;
  for (const auto& [name, weight] : weights()) count += static_cast<std::int64_t>(weight.values.size());
  return count;
}

void Layer::load(const Weights& weights, const LoadOptions& options) {
  std::vector<Parameter> list;
  append_parameters(options.prefix, list, &weights);
  layers::load_parameters(type_name(), list, weights, options);
  settle();
}

void Layer::initialize(std::uint64_t seed) {
  layers::Initializer initializer(seed);
  set_open(true);  // should memory end on the way, no packed copy of the weights before is used
  initialize_from(initializer);
  settle();
}

void Layer::set_training(bool training) {
  trains_ = false;
  try {
    make_gradients(training);
    trains_ = training;
  } catch (...) {
    make_gradients(false);
    settle();
    throw;
  }
  settle();
}

void Layer::freeze() noexcept {
  handed_out_ = false;
  settle();
}

void zero_gradients(std::span<const Parameter> parameters) noexcept {
  for (const Parameter& parameter : parameters) {
    std::fill(parameter.gradient.begin(), parameter.gradient.end(), 0.0f);
  }
}

}  // namespace headlight
