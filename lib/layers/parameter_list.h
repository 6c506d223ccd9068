// Putting parameter lists together, and filling them from named weights.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/out_of_memory.h"
#include "headlight/parameters.h"
#include "headlight/tensor.h"
#include "ops/check.h"

namespace headlight::layers {

template <int Rank>
std::span<float> values_of(Tensor<float, Rank>& tensor) noexcept {
  return {tensor.data(), static_cast<std::size_t>(tensor.size())};
}

template <int Rank>
std::span<const float> values_of(const Tensor<float, Rank>& tensor) noexcept {
  return {tensor.data(), static_cast<std::size_t>(tensor.size())};
}

// Appends the tensor as `name`; nothing if it has no memory (a bias that is not there). `gradient` has the same shape,
// or no memory outside training.
template <int Rank>
void append(std::vector<Parameter>& list, const std::string& name, Tensor<float, Rank>& tensor,
            Tensor<float, Rank>& gradient) {
  if (tensor.data() == nullptr) return;
  list.push_back({name, {tensor.shape().begin(), tensor.shape().end()}, values_of(tensor), values_of(gradient)});
}

// Gives `gradient` the shape of the tensor, and zeros; or no memory.
template <int Rank>
void make_gradient(bool wanted, const Tensor<float, Rank>& tensor, Tensor<float, Rank>& gradient) {
  gradient = wanted && tensor.data() != nullptr ? Tensor<float, Rank>(tensor.shape()) : Tensor<float, Rank>();
}

// Throws where a backward pass has no gradient to add to.
template <int Rank>
void check_training(std::string_view layer, const Tensor<float, Rank>& gradient) {
  if (gradient.data() == nullptr) ops::fail(layer, "is not in training, expected set_training(true) before backward()");
}

// What f() gives. Memory that it cannot have for its lists is lacking to "LAYER's WHAT": `bytes` of it, or more.
template <class Function>
auto named_lack(std::string_view layer, std::string_view what, std::size_t bytes, Function f) {
  try {
    return f();
  } catch (const OutOfMemory&) {
    throw;
  } catch (const std::bad_alloc&) {
    std::array<char, 64> words{};
    const int length = std::snprintf(words.data(), words.size(), "%.*s's %.*s", static_cast<int>(layer.size()),
                                     layer.data(), static_cast<int>(what.size()), what.data());
    throw OutOfMemory({words.data(), std::min(static_cast<std::size_t>(length), words.size() - 1)}, bytes);
  }
}

// Copies into each parameter the weight of its name. Everything is checked before anything is written. Throws
// std::invalid_argument naming the tensor and both shapes where one is missing, has another shape, or begins with
// options.prefix and belongs to no parameter; `layer` begins the message.
void load_parameters(std::string_view layer, std::span<const Parameter> parameters, const Weights& weights,
                     const LoadOptions& options);

}  // namespace headlight::layers
