#include "headlight/layers/layer.h"

#include <algorithm>
#include <utility>

#include "layers/initializer.h"
#include "layers/parameter_list.h"

namespace headlight {

std::vector<Parameter> Layer::list(const std::string& prefix, const Weights* named) {
  std::vector<Parameter> list;
  return layers::named_lack(type_name(), "list of parameters", sizeof(Parameter), [&] {
    append_parameters(prefix, list, named);
    return std::move(list);
  });
}

std::vector<Parameter> Layer::parameters() {
  std::vector<Parameter> parameters = list("", nullptr);
  handed_out_ = true;
  settle();
  return parameters;
}

Weights Layer::weights() const {
  // Listing changes nothing; what it hands out is made read-only below.
  std::vector<Parameter> parameters = const_cast<Layer*>(this)->list("", nullptr);
  return layers::named_lack(type_name(), "list of weights", parameters.size() * sizeof(Weights::value_type), [&] {
    Weights named;
    for (Parameter& parameter : parameters) named[parameter.name] = {std::move(parameter.shape), parameter.values};
    return named;
  });
}

std::int64_t Layer::parameter_count() const {
  std::int64_t count = 0;
  for (const auto& [name, weight] : weights()) count += static_cast<std::int64_t>(weight.values.size());
  return count;
}

void Layer::load(const Weights& weights, const LoadOptions& options) {
  const std::vector<Parameter> parameters = list(options.prefix, &weights);
  layers::load_parameters(type_name(), parameters, weights, options);
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
