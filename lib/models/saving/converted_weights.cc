#include "models/saving/converted_weights.h"

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>

#include "headlight/models/errors.h"
#include "headlight/storage_format.h"

namespace headlight::models {
namespace {

// The weights w of which a converter made s = 1 + w, rounded. Where s is below ½ in size, w had no bits below 2⁻²⁴, and
// s − 1 is w; elsewhere s − 1 is exact, or as coarse as s. So 1 + (s − 1) is s again, which is what a folder is read
// as.
WeightView without_one(const std::string& name, const WeightView& weight, std::deque<std::vector<float>>& numbers) {
  std::vector<float>& before = numbers.emplace_back(weight.values.begin(), weight.values.end());
  for (float& value : before) {
    const float sum = value;
    value = sum - 1.0f;
    if (1.0f + value == sum || sum != sum) continue;
    throw std::invalid_argument("models::TextEncoder: save: " + in_quotes(name) + " holds " + std::to_string(sum) +
                                ", which is no float32's sum with 1, as its folder has it");
  }
  return {weight.shape, before};
}

// Row `row` of a matrix.
WeightView row_of(const WeightView& matrix, std::int64_t row) {
  const std::int64_t columns = matrix.shape[1];
  WeightView one = matrix;
  one.shape[0] = 1;
  if (matrix.stored) {
    one.stored = some_rows(matrix.stored, columns, row, 1);
  } else {
    one.values = matrix.values.subspan(static_cast<std::size_t>(row * columns), static_cast<std::size_t>(columns));
  }
  return one;
}

// Where row h · head_dim / 2 + i of a head is.
std::int64_t among_pairs(std::int64_t row, std::int64_t head_dim) noexcept {
  const std::int64_t within = row % head_dim, half = head_dim / 2;
  return row - within + within % half * 2 + within / half;
}

// A matrix as its rows; of a bias a copy.
void add_rows(const WeightView& weight, std::int64_t head_dim, std::vector<WeightView>& to,
              std::deque<std::vector<float>>& numbers) {
  const std::int64_t rows = weight.shape[0];
  if (weight.shape.size() == 2) {
    for (std::int64_t row = 0; row < rows; ++row) to.push_back(row_of(weight, among_pairs(row, head_dim)));
    return;
  }
  std::vector<float>& before = numbers.emplace_back();
  for (std::int64_t row = 0; row < rows; ++row) {
    before.push_back(weight.values[static_cast<std::size_t>(among_pairs(row, head_dim))]);
  }
  to.push_back({weight.shape, before});
}

bool is_of_query_or_key(std::string_view parameter) noexcept {
  return parameter.find(".attention.query.") != std::string_view::npos ||
         parameter.find(".attention.key.") != std::string_view::npos;
}

}  // namespace

StoredTensors tensors_as_before(const Converted& converted, const TensorShares& names, const Weights& weights,
                                std::deque<std::vector<float>>& numbers) {
  StoredTensors tensors;
  for (const auto& [tensor, parameters] : names) {
    std::vector<WeightView>& shares = tensors[tensor];
    for (const std::string& parameter : parameters) {
      const WeightView& weight = weights.find(parameter)->second;
      if (converted.one_added_to_norms && weight.shape.size() == 1 && parameter.ends_with(".weight")) {
        shares.push_back(without_one(tensor, weight, numbers));
      } else if (converted.head_dim > 0 && is_of_query_or_key(parameter)) {
        add_rows(weight, converted.head_dim, shares, numbers);
      } else {
        shares.push_back(weight);
      }
    }
  }
  return tensors;
}

}  // namespace headlight::models
