// What llama.cpp's converters change in the tensors of a model, and save() undoes (conversion/ of
// https://github.com/ggml-org/llama.cpp).
#pragma once

#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "headlight/parameters.h"
#include "models/families/family_weights.h"
#include "models/tensor_files/stored_weight.h"

namespace headlight::models {

struct Converted {
  bool one_added_to_norms = false;  // Gemma's, whose weights are 1 + w
  // Llama's queries and keys: row 2 i + h of a head of so many was row h · head_dim / 2 + i. 0: they were not moved.
  std::int64_t head_dim = 0;
};

// Tensors of a folder from a network's weights, each of the parameters that `tensors` names. `numbers` holds those that
// lie nowhere else, as long as the result lives; of matrices there are none. Throws std::invalid_argument for the
// weight of a norm that is no float32's sum with 1, which no converter makes.
[[nodiscard]] StoredTensors tensors_as_before(const Converted& converted, const TensorShares& tensors,
                                              const Weights& weights, std::deque<std::vector<float>>& numbers);

}  // namespace headlight::models
