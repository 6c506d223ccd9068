// The memory of a case, as Work::reads and Work::writes list it.
#pragma once

#include <span>
#include <vector>

#include "headlight/parameters.h"
#include "headlight/tensor.h"

namespace headlight::bench {

using Reads = std::vector<std::span<const float>>;

// Whole tensors.
template <class... Tensors>
[[nodiscard]] Reads reads_of(const Tensors&... tensors) {
  return {std::span<const float>(tensors.data(), static_cast<std::size_t>(tensors.size()))...};
}

template <class... Tensors>
[[nodiscard]] std::vector<std::span<float>> writes_of(Tensors&... tensors) {
  return {std::span<float>(tensors.data(), static_cast<std::size_t>(tensors.size()))...};
}

// A layer's weights, but for tables, of which only some rows are read. The packed copies are what products read; the
// weights themselves are as large and lie as far away.
inline void add_weights(const Weights& weights, Reads& reads) {
  for (const auto& [name, weight] : weights) {
    if (name.find("embedding") == std::string::npos) reads.push_back(weight.values);
  }
}

}  // namespace headlight::bench
