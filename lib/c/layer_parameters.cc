// What all layers share: their parameters.
#include <algorithm>
#include <string>

#include "c/handles.h"
#include "c/layer_names.h"
#include "c/parameters.h"
#include "layers/parameter_list.h"

namespace headlight::c {
namespace {

// The weight of that name as the C++ interface takes it: any rank, no gaps, float32 or 16 bits.
WeightView weight_view(const char* operation, const std::string& name, const headlight_tensor* tensor) {
  const char* const argument = name.c_str();
  const headlight_tensor& given = required(operation, argument, tensor);
  // More axes than any weight has, and fewer than a number that was never set.
  constexpr std::int32_t kMostAxes = 16;
  if (given.rank < 0 || given.rank > kMostAxes) {
    refuse(operation, name, " has rank ", given.rank, ", expected 0 to ", kMostAxes);
  }
  const NumberType type = stored_type(operation, argument, given.type);
  check_tensor(operation, argument, given, given.type, given.rank);
  WeightView weight{{given.shape, given.shape + given.rank}, {}};
  std::int64_t count = 1;
  for (std::int64_t axis = given.rank - 1; axis >= 0; --axis) {
    const std::int64_t extent = given.shape[axis];
    if (given.strides != nullptr && extent > 1 && given.strides[axis] != count) {
      refuse(operation, name, " has the stride ", given.strides[axis], " on axis ", axis, ", expected ", count,
             " (contiguous)");
    }
    if (extent < 0 || __builtin_mul_overflow(count, extent, &count)) {
      refuse(operation, name, " has shape ", weight.shape, ", expected extents ≥ 0 that 64 bits address");
    }
  }
  if (type == NumberType::float32) {
    weight.values = span(operation, argument, static_cast<const float*>(given.data), count);
  } else {
    const auto numbers = span(operation, argument, static_cast<const std::uint16_t*>(given.data), count);
    weight.stored = {format_of(type), numbers.data(), count};
  }
  return weight;
}

}  // namespace

template <class Entry>
const Entry& matching(const char* operation, const std::vector<Entry>& list, const char* name,
                      const headlight_tensor* values) {
  const std::string wanted = &required(operation, "name", name);
  const auto found = std::find_if(list.begin(), list.end(), [&](const Entry& entry) { return entry.name == wanted; });
  if (found == list.end()) refuse(operation, "there is nothing named '", wanted, "'");
  // A wrong rank would read beyond the end of a shape.
  check_tensor(operation, wanted.c_str(), required(operation, wanted.c_str(), values), HEADLIGHT_FLOAT32,
               static_cast<std::int32_t>(found->shape.size()));
  const WeightView weight = weight_view(operation, wanted, values);
  if (weight.shape != found->shape) {
    refuse(operation, wanted, " has shape ", weight.shape, ", expected ", found->shape);
  }
  return *found;
}

template <class Entry>
void tell(const char* operation, const std::vector<Entry>& list, std::int64_t index, const char** name,
          std::int32_t* rank, const std::int64_t** shape) {
  const auto count = static_cast<std::int64_t>(list.size());
  if (index < 0 || index >= count) {
    refuse(operation, "index is ", index, ", expected 0 to ", count - 1);
  }
  const Entry& entry = list[static_cast<std::size_t>(index)];
  if (name != nullptr) *name = entry.name.c_str();
  if (rank != nullptr) *rank = static_cast<int32_t>(entry.shape.size());
  if (shape != nullptr) *shape = entry.shape.data();
}

template const Parameter& matching(const char*, const std::vector<Parameter>&, const char*, const headlight_tensor*);
template const layers::ParameterPlace& matching(const char*, const std::vector<layers::ParameterPlace>&, const char*,
                                                const headlight_tensor*);
template void tell(const char*, const std::vector<Parameter>&, std::int64_t, const char**, std::int32_t*,
                   const std::int64_t**);
template void tell(const char*, const std::vector<layers::ParameterPlace>&, std::int64_t, const char**, std::int32_t*,
                   const std::int64_t**);

}  // namespace headlight::c

using namespace headlight;
using namespace headlight::c;

void headlight_layer_destroy(headlight_layer* layer) {
  // What belongs to somebody else goes with its owner.
  if (layer != nullptr && layer->owned != nullptr) delete layer;
}

headlight_status headlight_layer_initialize(headlight_layer* layer, uint64_t seed, headlight_error* error) {
  return call(error, [&] {
    required(kLayer, "layer", layer).layer->initialize(seed);
    layer->settle();
  });
}

int64_t headlight_layer_parameter_count(const headlight_layer* layer) {
  return layer == nullptr ? 0 : static_cast<int64_t>(layer->parameters.size());
}

headlight_status headlight_layer_parameter(const headlight_layer* layer, int64_t index, const char** name,
                                           int32_t* rank, const int64_t** shape, headlight_error* error) {
  return call(error, [&] { tell(kLayer, required(kLayer, "layer", layer).parameters, index, name, rank, shape); });
}

headlight_status headlight_layer_get_parameter(const headlight_layer* layer, const char* name,
                                               const headlight_tensor* values, headlight_error* error) {
  return call(error, [&] {
    const layers::ParameterPlace& place = matching(kLayer, required(kLayer, "layer", layer).parameters, name, values);
    layers::read(place, static_cast<float*>(values->data));
  });
}

headlight_status headlight_layer_set_parameter(headlight_layer* layer, const char* name, const headlight_tensor* values,
                                               headlight_error* error) {
  return call(error, [&] {
    const layers::ParameterPlace& place = matching(kLayer, required(kLayer, "layer", layer).parameters, name, values);
    layers::write(place, static_cast<const float*>(values->data));
    layer->settle();
  });
}

headlight_status headlight_layer_load(headlight_layer* layer, const headlight_weight* weights, size_t count,
                                      const headlight_load_options* options, headlight_error* error) {
  return call(error, [&] {
    Layer& target = *required(kLayer, "layer", layer).layer;
    const Fields fields(kLayer, "options", options, HEADLIGHT_C_FIELDS(headlight_load_options));
    Weights named;
    for (std::size_t index = 0; index < count; ++index) {
      const headlight_weight& weight = (&required(kLayer, "weights", weights))[index];
      const std::string name = &required(kLayer, "the name of a weight", weight.name);
      if (!named.emplace(name, weight_view(kLayer, name, &weight.values)).second)
        refuse(kLayer, name, " is given twice");
    }
    target.load(named,
                {.prefix = fields->prefix == nullptr ? "" : fields->prefix, .ignore_extra = fields->ignore_extra != 0});
    layer->settle();
  });
}

headlight_status headlight_layer_set_precision(headlight_layer* layer, headlight_type precision,
                                               headlight_error* error) {
  return call(error, [&] {
    Layer& target = *required(kLayer, "layer", layer).layer;
    target.set_precision(number_type(kLayer, "precision", precision));
  });
}

headlight_type headlight_layer_precision(const headlight_layer* layer) {
  return layer == nullptr ? HEADLIGHT_FLOAT32 : type_in_c(layer->layer->precision());
}
