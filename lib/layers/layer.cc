#include "headlight/layers/layer.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "layers/initializer.h"
#include "layers/parameter_list.h"
#include "layers/product.h"
#include "ops/check.h"
#include "ops/gemm/internal.h"

namespace headlight {

std::vector<layers::ParameterPlace> Layer::places(const std::string& prefix, const Weights* named) {
  std::vector<layers::ParameterPlace> list;
  return layers::named_lack(type_name(), "list of parameters", sizeof(layers::ParameterPlace), [&] {
    append_parameters(prefix, list, named);
    return std::move(list);
  });
}

std::vector<layers::ParameterPlace> Layer::places() { return places("", nullptr); }

std::vector<Parameter> Layer::parameters() {
  std::vector<layers::ParameterPlace> list = places();
  auto parameters = layers::named_lack(type_name(), "list of parameters", list.size() * sizeof(Parameter), [&] {
    std::vector<Parameter> made;
    for (layers::ParameterPlace& place : list) {
      const std::span<float> values =
          place.matrix == nullptr ? layers::some_of(*place.vector, place.rows)
                                  : layers::values_of(layers::rows_of(place.matrix->own_for_good(), place.rows));
      made.push_back({std::move(place.name), std::move(place.shape), values, layers::gradient_of(place)});
    }
    return made;
  });
  handed_out_ = true;
  settle();
  return parameters;
}

Weights Layer::weights() const {
  // Listing changes nothing; what it hands out is made read-only below.
  std::vector<layers::ParameterPlace> list = const_cast<Layer*>(this)->places();
  return layers::named_lack(type_name(), "list of weights", list.size() * sizeof(Weights::value_type), [&] {
    Weights named;
    for (layers::ParameterPlace& place : list) {
      const std::span<const float> values = place.matrix == nullptr
                                                ? layers::some_of(*place.vector, place.rows)
                                                : layers::values_of(layers::rows_of(place.matrix->shown(), place.rows));
      named[place.name] = {std::move(place.shape), values};
    }
    return named;
  });
}

Weights Layer::weights_as_stored(const Weights& like) const {
  std::vector<layers::ParameterPlace> list = const_cast<Layer*>(this)->places("", &like);
  return layers::named_lack(type_name(), "list of weights", list.size() * sizeof(Weights::value_type), [&] {
    Weights named;
    for (layers::ParameterPlace& place : list) {
      WeightView& view = named[place.name];
      if (place.matrix == nullptr) {
        view.values = layers::some_of(*place.vector, place.rows);
      } else if (const StoredNumbers stored = place.matrix->stored(place.rows)) {
        if (stored.format == StorageFormat::float32) {
          view.values = {static_cast<const float*>(stored.data), static_cast<std::size_t>(stored.count)};
        } else {
          view.stored = stored;
        }
      } else {
        view.values = layers::values_of(layers::rows_of(place.matrix->shown(), place.rows));
      }
      view.shape = std::move(place.shape);
    }
    return named;
  });
}

std::int64_t Layer::parameter_count() const {
  std::int64_t count = 0;
  for (const layers::ParameterPlace& place : const_cast<Layer*>(this)->places()) {
    count += layers::count_of(place);
  }
  return count;
}

void Layer::load(const Weights& weights, const LoadOptions& options) {
  layers::load_parameters(type_name(), places(options.prefix, &weights), weights, options);
  settle();
}

void Layer::initialize(std::uint64_t seed) {
  layers::Initializer initializer(seed);
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

// Tables of embeddings are never packed, so that the type of their panels means nothing.
void Layer::set_precision(NumberType precision) {
  ops::check_product_type(type_name(), "precision", precision);
  const std::vector<layers::ParameterPlace> list = places();
  const auto set = [&list](NumberType type) {
    for (const layers::ParameterPlace& place : list) {
      if (place.matrix != nullptr) place.matrix->set_type(type);
    }
  };
  try {
    set(precision);
  } catch (const OutOfMemory&) {
    set(precision_);  // of those that have rows now: which takes no memory
    throw;
  }
  precision_ = precision;
}

void zero_gradients(std::span<const Parameter> parameters) noexcept {
  for (const Parameter& parameter : parameters) {
    std::fill(parameter.gradient.begin(), parameter.gradient.end(), 0.0f);
  }
}

}  // namespace headlight
