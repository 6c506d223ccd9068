#include "layers/network/parameters.h"

#include <algorithm>
#include <utility>

#include "layers/initializer.h"
#include "layers/parameter_list.h"
#include "layers/product.h"
#include "layers/sizes.h"

namespace headlight::layers {

MatrixParameter& Parameters::add_matrix(std::int64_t columns, std::vector<NamedRows> parts, bool is_table) {
  const std::int64_t rows = parts.back().rows.first + parts.back().rows.count;
  const auto shape = matrix_shape(name_, parts.front().name, rows, columns);
  WeightMatrix matrix = has_memory_ ? WeightMatrix(shape) : WeightMatrix();
  MatrixParameter& made =
      matrices_.emplace_back(MatrixParameter{std::move(matrix), columns, std::move(parts), is_table});
  add(&made, nullptr);
  return made;
}

VectorParameter& Parameters::add_vector(std::vector<NamedRows> parts, float first_value) {
  const std::int64_t size = parts.back().rows.first + parts.back().rows.count;
  const auto shape = vector_shape(name_, parts.front().name, size);
  Tensor<float, 1> values = has_memory_ ? Tensor<float, 1>(shape) : Tensor<float, 1>();
  for (float& value : values) value = first_value;
  VectorParameter& made = vectors_.emplace_back(VectorParameter{std::move(values), {}, std::move(parts), first_value});
  add(nullptr, &made);
  return made;
}

void Parameters::add(MatrixParameter* matrix, VectorParameter* vector) { order_.push_back({matrix, vector, turn_, 0}); }

void Parameters::append_to(const std::string& prefix, std::vector<ParameterPlace>& list) {
  for (const Parameter& parameter : order_) {
    if (parameter.matrix != nullptr) {
      for (const NamedRows& part : parameter.matrix->parts) {
        layers::append(list, prefix + part.name, parameter.matrix->matrix, part.rows);
      }
    } else {
      for (const NamedRows& part : parameter.vector->parts) {
        layers::append(list, prefix + part.name, parameter.vector->values, parameter.vector->gradient, part.rows);
      }
    }
  }
}

std::vector<ParameterShape> Parameters::shapes() const {
  std::vector<ParameterShape> all;
  for (const Parameter& parameter : order_) {
    for (const NamedRows& part : parameter.parts()) {
      std::vector<std::int64_t> shape = {part.rows.count};
      if (parameter.matrix != nullptr) shape.push_back(parameter.matrix->columns);
      all.push_back({part.name, std::move(shape)});
    }
  }
  return all;
}

// Streams are numbers: what comes behind a parameter has others where that is missing.
void Parameters::initialize_from(Initializer& initializer) {
  int last = 0;
  for (const Parameter& parameter : order_) last = std::max(last, parameter.turn);
  for (int turn = 0; turn <= last; ++turn) {
    for (const Parameter& parameter : order_) {
      if (parameter.turn != turn) continue;
      initialize(initializer, parameter);
      for (int skipped = 0; skipped < parameter.skipped; ++skipped) initializer.constant({}, 0.0f);
    }
  }
}

void Parameters::initialize(Initializer& initializer, const Parameter& parameter) {
  // Standard deviation 0.02, as the tables of published models begin; a uniform draw of bound b has b / √3.
  constexpr float kTableBound = 0.02f * 1.7320508f;
  if (parameter.vector != nullptr) {
    initializer.constant(values_of(parameter.vector->values), parameter.vector->first_value);
    return;
  }
  const View<float, 2> all = parameter.matrix->matrix.own();
  for (const NamedRows& part : parameter.matrix->parts) {
    const std::span<float> values = values_of(layers::rows_of(all, part.rows));
    if (parameter.matrix->is_table) {
      initializer.uniform(values, kTableBound);
    } else if (part.is_orthogonal) {
      initializer.orthogonal(values, all.extent(1), part.rows.count);
    } else {
      initializer.xavier(values, all.extent(1), part.rows.count);
    }
  }
}

void Parameters::set_open(bool open) noexcept {
  for (MatrixParameter& parameter : matrices_) {
    if (!parameter.is_table || parameter.is_multiplied) parameter.matrix.set_open(open);
  }
}

void Parameters::make_gradients(bool wanted) {
  for (MatrixParameter& parameter : matrices_) parameter.matrix.make_gradient(wanted);
  for (VectorParameter& parameter : vectors_) layers::make_gradient(wanted, parameter.values, parameter.gradient);
}

void Parameters::check_training() { layers::check_training(name_, matrices_.front().matrix.gradient()); }

}  // namespace headlight::layers
