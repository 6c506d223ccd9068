// The parameters of a network: each is declared once, and everything that a layer does with them is done here.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/layers/layer.h"
#include "headlight/layers/network.h"
#include "runtime/inner_api.h"

namespace headlight::layers {

// Rows of a matrix, or numbers of a vector, that are a parameter of that name.
struct NamedRows {
  std::string name;
  WeightMatrix::Rows rows;
  bool is_orthogonal = false;  // at first
};

struct MatrixParameter {
  WeightMatrix matrix;
  std::int64_t columns;
  std::vector<NamedRows> parts;
  bool is_table;               // of embeddings
  bool is_multiplied = false;  // a table whose rows a product reads, too
};

struct VectorParameter {
  Tensor<float, 1> values;
  Tensor<float, 1> gradient;
  std::vector<NamedRows> parts;
  float first_value;

  [[nodiscard]] std::span<const float> all() const noexcept {
    return {values.data(), static_cast<std::size_t>(values.size())};
  }
  [[nodiscard]] std::span<float> all_of_gradient() noexcept {
    return {gradient.data(), static_cast<std::size_t>(gradient.size())};
  }
};

class Parameters {
 public:
  // Without memory there are names and shapes alone.
  Parameters(std::string_view name, bool has_memory) : name_(name), has_memory_(has_memory) {}
  // Of the layer that they are of.
  [[nodiscard]] std::string_view name() const noexcept { return name_; }

  // What is added stays where it is. Throw OutOfMemory.
  MatrixParameter& add_matrix(std::int64_t columns, std::vector<NamedRows> parts, bool is_table = false);
  VectorParameter& add_vector(std::vector<NamedRows> parts, float first_value);

  // What is added from here on gets its first values in that turn, behind those of lower ones.
  void begin_turn(int turn) noexcept { turn_ = turn; }
  // What is added from here on gets the first values that it had with one more parameter before it.
  void skip_first_values() noexcept { ++order_.back().skipped; }

  // One of the two.
  struct Parameter {
    MatrixParameter* matrix;
    VectorParameter* vector;
    int turn;
    int skipped;  // how many of what follows are not there

    [[nodiscard]] const std::vector<NamedRows>& parts() const noexcept {
      return matrix != nullptr ? matrix->parts : vector->parts;
    }
  };
  // In which they were added.
  [[nodiscard]] const std::vector<Parameter>& all() const noexcept { return order_; }

  void append_to(const std::string& prefix, std::vector<ParameterPlace>& list);
  [[nodiscard]] HEADLIGHT_INNER_API std::vector<ParameterShape> shapes() const;
  void initialize_from(Initializer& initializer);
  void set_open(bool open) noexcept;
  void make_gradients(bool wanted);
  // Throws std::invalid_argument where there are no gradients to add to.
  void check_training();

 private:
  void add(MatrixParameter* matrix, VectorParameter* vector);
  static void initialize(Initializer& initializer, const Parameter& parameter);

  std::string_view name_;
  bool has_memory_;
  std::deque<MatrixParameter> matrices_;
  std::deque<VectorParameter> vectors_;
  std::vector<Parameter> order_;
  int turn_ = 0;
};

}  // namespace headlight::layers
