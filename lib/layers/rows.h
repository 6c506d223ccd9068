// Batches of rows, as the products want them: whole matrices.
#pragma once

#include <cstdint>

#include "headlight/tensor.h"
#include "simd/integers.h"

namespace headlight::layers {

// Whether the rows of x [B, L, E] are evenly spaced, so that it is a matrix [B·L, E]. None are, however many samples.
template <class T>
bool is_one_matrix(const View<T, 3>& x) noexcept {
  return x.extent(0) <= 1 || x.extent(1) <= 1 || x.stride(0) == x.extent(1) * x.stride(1);
}

template <class T>
View<T, 2> one_matrix(const View<T, 3>& x) noexcept {
  const std::int64_t between_rows = x.extent(1) == 1 ? x.stride(0) : x.stride(1);
  return {x.data, {x.extent(0) * x.extent(1), x.extent(2)}, {between_rows, x.stride(2)}};
}

template <class T>
View<T, 2> sample(const View<T, 3>& x, std::int64_t b) noexcept {
  return {
      x.data == nullptr ? nullptr : x.data + b * x.stride(0), {x.extent(1), x.extent(2)}, {x.stride(1), x.stride(2)}};
}

// Calls f with matrices that together are the views [B, L, …]: once where every one is evenly spaced, else sample by
// sample. A view that is not given stays so.
template <class Function, class... T>
void for_each_matrix(std::int64_t batch, Function f, const View<T, 3>&... views) {
  if ((is_one_matrix(views) && ...)) {
    f(one_matrix(views)...);
  } else {
    for (std::int64_t b = 0; b < batch; ++b) f(sample(views, b)...);
  }
}

// Distance between rows of `columns` floats in scratch memory: whole 64-byte lines, and an odd number of them, so that
// the lines of one column fall into all 64 sets of a first-level cache. Rows of 12288 bytes (three times 1024 floats)
// share a single one, which costs attention 6 %; the products do not mind.
constexpr std::int64_t row_distance(std::int64_t columns) noexcept {
  constexpr std::int64_t kLine = 64 / sizeof(float);
  const std::int64_t lines = divide_up(columns, kLine);
  return (lines | 1) * kLine;
}

// [B, L, columns], rows row_distance apart. An empty batch may be of any length, and sizes are asked for before there
// is memory: a step between samples that 64 bits do not hold is one that nobody takes.
inline View<float, 3> spaced_rows(float* data, const View<float, 3>::Shape& shape) noexcept {
  const std::int64_t distance = row_distance(shape[2]);
  std::int64_t between_samples = 0;
  if (__builtin_mul_overflow(shape[1], distance, &between_samples)) between_samples = 0;
  return {data, shape, {between_samples, distance, 1}};
}

}  // namespace headlight::layers
