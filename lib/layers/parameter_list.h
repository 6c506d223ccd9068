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

#include "headlight/layers/layer.h"
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

// The part of a bias that belongs to those rows of a matrix; nothing of none.
inline std::span<float> some_of(Tensor<float, 1>& bias, const WeightMatrix::Rows& rows) noexcept {
  if (bias.data() == nullptr) return {};
  return {bias.data() + rows.first, static_cast<std::size_t>(rows.count)};
}
inline std::span<const float> some_of(const Tensor<float, 1>& bias, const WeightMatrix::Rows& rows) noexcept {
  return some_of(const_cast<Tensor<float, 1>&>(bias), rows);
}

// Of rows side by side.
template <class T>
std::span<T> values_of(const View<T, 2>& matrix) noexcept {
  return {matrix.data, static_cast<std::size_t>(matrix.size())};
}

// Appends those numbers of the vector as `name`; nothing if it has no memory (a bias that is not there). `gradient` has
// the same shape, or no memory outside training.
inline void append(std::vector<ParameterPlace>& list, const std::string& name, Tensor<float, 1>& vector,
                   Tensor<float, 1>& gradient, WeightMatrix::Rows numbers) {
  if (vector.data() == nullptr) return;
  list.push_back(
      {.name = name, .shape = {numbers.count}, .rows = numbers, .vector = &vector, .vector_gradient = &gradient});
}
// The same of all of them.
inline void append(std::vector<ParameterPlace>& list, const std::string& name, Tensor<float, 1>& vector,
                   Tensor<float, 1>& gradient) {
  append(list, name, vector, gradient, {0, vector.size()});
}

// The same of some rows of a matrix.
inline void append(std::vector<ParameterPlace>& list, const std::string& name, WeightMatrix& matrix,
                   WeightMatrix::Rows rows) {
  if (!matrix) return;
  list.push_back({.name = name, .shape = {rows.count, matrix.columns()}, .matrix = &matrix, .rows = rows});
}

// Gives `gradient` the shape of the tensor, and zeros; or no memory.
inline void make_gradient(bool wanted, const Tensor<float, 1>& tensor, Tensor<float, 1>& gradient) {
  gradient = wanted && tensor.data() != nullptr ? Tensor<float, 1>(tensor.shape()) : Tensor<float, 1>();
}

// Throws where a backward pass has no gradient to add to.
template <int Rank>
void check_training(std::string_view layer, const View<float, Rank>& gradient) {
  if (!gradient) ops::fail(layer, "is not in training, expected set_training(true) before backward()");
}

[[nodiscard]] std::int64_t count_of(const ParameterPlace& place) noexcept;
// Its numbers, copied out or in; its gradient, empty outside training.
void read(const ParameterPlace& place, float* to) noexcept;
void write(const ParameterPlace& place, const float* from);
[[nodiscard]] std::span<float> gradient_of(const ParameterPlace& place) noexcept;

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

// Takes each parameter from the weight of its name, as Layer::load() says. Everything is checked before anything is
// written. Throws std::invalid_argument naming the tensor and both shapes where one is missing, has another shape, or
// begins with options.prefix and belongs to no parameter; `layer` begins the message.
void load_parameters(std::string_view layer, std::span<const ParameterPlace> places, const Weights& weights,
                     const LoadOptions& options);

}  // namespace headlight::layers
