#include "layers/parameter_list.h"

#include <algorithm>
#include <set>

#include "ops/check.h"

namespace headlight::layers {

namespace {

void check_weight(std::string_view layer, const Parameter& parameter, const WeightView& weight) {
  if (weight.shape != parameter.shape) {
    ops::fail(layer, "weight " + parameter.name + " has shape " + ops::describe(weight.shape) + ", expected " +
                         ops::describe(parameter.shape));
  }
  if (weight.values.size() != parameter.values.size()) {
    ops::fail(layer, "weight " + parameter.name + " of shape " + ops::describe(weight.shape) + " holds " +
                         std::to_string(weight.values.size()) + " values, expected " +
                         std::to_string(parameter.values.size()));
  }
}

void check_no_extra(std::string_view layer, std::span<const Parameter> parameters, const Weights& weights,
                    std::string_view prefix) {
  std::set<std::string_view> known;
  for (const Parameter& parameter : parameters) known.insert(parameter.name);
  for (auto at = weights.lower_bound(prefix); at != weights.end() && at->first.starts_with(prefix); ++at) {
    if (!known.contains(at->first)) {
      ops::fail(layer, "weight " + at->first + " of shape " + ops::describe(at->second.shape) +
                           " belongs to no parameter, expected none beside the layer's own");
    }
  }
}

}  // namespace

void load_parameters(std::string_view layer, std::span<const Parameter> parameters, const Weights& weights,
                     const LoadOptions& options) {
  for (const Parameter& parameter : parameters) {
    const auto found = weights.find(parameter.name);
    if (found == weights.end()) {
      ops::fail(layer,
                "weight " + parameter.name + " is missing, expected one of shape " + ops::describe(parameter.shape));
    }
    check_weight(layer, parameter, found->second);
  }
  if (!options.ignore_extra) {
    named_lack(layer, "list of parameters", parameters.size() * sizeof(std::string_view),
               [&] { check_no_extra(layer, parameters, weights, options.prefix); });
  }
  for (const Parameter& parameter : parameters) {
    const std::span<const float> from = weights.find(parameter.name)->second.values;
    std::copy(from.begin(), from.end(), parameter.values.begin());
  }
}

}  // namespace headlight::layers
