// Batches of rows, as the products want them: whole matrices.
#pragma once

#include <cassert>
#include <cstdint>
#include <type_traits>

#include "headlight/tensor.h"
#include "headlight/typed_view.h"
#include "kernels/operand.h"
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

// [N, E] as [1, N, E].
template <class T>
View<T, 3> one_sample(const View<T, 2>& x) noexcept {
  return {x.data, {1, x.extent(0), x.extent(1)}, {x.extent(0) * x.stride(0), x.stride(0), x.stride(1)}};
}

template <class Pointer>
AnyTypedView<3, Pointer> one_sample(const AnyTypedView<2, Pointer>& x) noexcept {
  return {x.type, x.data, {1, x.extent(0), x.extent(1)}, {x.extent(0) * x.stride(0), x.stride(0), x.stride(1)}};
}

template <class T>
View<T, 2> sample(const View<T, 3>& x, std::int64_t b) noexcept {
  return {
      x.data == nullptr ? nullptr : x.data + b * x.stride(0), {x.extent(1), x.extent(2)}, {x.stride(1), x.stride(2)}};
}

// The same of a typed view.
template <class Pointer>
bool is_one_matrix(const AnyTypedView<3, Pointer>& x) noexcept {
  return is_one_matrix(View<const float, 3>(nullptr, x.shape, x.strides));
}
template <class Pointer>
AnyTypedView<2, Pointer> one_matrix(const AnyTypedView<3, Pointer>& x) noexcept {
  const View<const float, 2> laid = one_matrix(View<const float, 3>(nullptr, x.shape, x.strides));
  return {x.type, x.data, laid.shape, laid.strides};
}
template <class Pointer>
AnyTypedView<2, Pointer> sample(const AnyTypedView<3, Pointer>& x, std::int64_t b) noexcept {
  return {x.type,
          x.data == nullptr ? nullptr : kernels::numbers_behind(x.data, b * x.stride(0), x.type),
          {x.extent(1), x.extent(2)},
          {x.stride(1), x.stride(2)}};
}

// A typed view of float32 as what it is.
template <int Rank, class Pointer>
auto floats_of(const AnyTypedView<Rank, Pointer>& x) noexcept {
  using Float = std::conditional_t<std::is_same_v<Pointer, void*>, float, const float>;
  assert(x.type == NumberType::float32);
  return View<Float, Rank>(static_cast<Float*>(x.data), x.shape, x.strides);
}

// Some of the rows; of a view that is not given, none.
template <class T>
View<T, 2> some_rows(const View<T, 2>& x, std::int64_t first, std::int64_t count) noexcept {
  if (!x) return {};
  return {x.data + first * x.stride(0), {count, x.extent(1)}, x.strides};
}
template <class Pointer>
AnyTypedView<2, Pointer> some_rows(const AnyTypedView<2, Pointer>& x, std::int64_t first, std::int64_t count) noexcept {
  if (!x) return {};
  return {x.type, kernels::numbers_behind(x.data, first * x.stride(0), x.type), {count, x.extent(1)}, x.strides};
}

// Rows first … first + count − 1 of the samples of x [B, L, …] one after another: of any number of them where x is one
// matrix, else of one.
template <class View3>
auto rows_of_samples(const View3& x, std::int64_t first, std::int64_t count) noexcept {
  return is_one_matrix(x) ? some_rows(one_matrix(x), first, count)
                          : some_rows(sample(x, first / x.extent(1)), first % x.extent(1), count);
}

// Calls f with matrices that together are the views [B, L, …]: once where every one is evenly spaced, else sample by
// sample. A view that is not given stays so.
template <class Function, class... Views>
void for_each_matrix(std::int64_t batch, Function f, const Views&... views) {
  if ((is_one_matrix(views) && ...)) {
    f(one_matrix(views)...);
  } else {
    for (std::int64_t b = 0; b < batch; ++b) f(sample(views, b)...);
  }
}

// Distance in numbers between rows of `columns` of them in scratch memory: whole 64-byte lines, and an odd number of
// them, so that the lines of one column fall into all 64 sets of a first-level cache. Rows of 12288 bytes (three times
// 1024 floats) share a single one, which makes attention slower; the products do not mind.
constexpr std::int64_t row_distance(std::int64_t columns, NumberType type = NumberType::float32) noexcept {
  const std::int64_t line = 64 / kernels::bytes_of_number(type);
  const std::int64_t lines = divide_up(columns, line);
  return (lines | 1) * line;
}

// Such a row counted in floats, as scratch memory is.
constexpr std::int64_t row_floats(std::int64_t columns, NumberType type) noexcept {
  return row_distance(columns, type) * kernels::bytes_of_number(type) / std::int64_t{sizeof(float)};
}

// [B, L, columns], rows row_distance apart. An empty batch may be of any length, and sizes are asked for before there
// is memory: a stride of samples that 64 bits do not hold is one that no index takes.
inline MutableTypedView<3> spaced_rows(NumberType type, void* data, const View<float, 3>::Shape& shape) noexcept {
  const std::int64_t distance = row_distance(shape[2], type);
  std::int64_t between_samples = 0;
  if (__builtin_mul_overflow(shape[1], distance, &between_samples)) between_samples = 0;
  return {type, data, shape, {between_samples, distance, 1}};
}
inline View<float, 3> spaced_rows(float* data, const View<float, 3>::Shape& shape) noexcept {
  return floats_of(spaced_rows(NumberType::float32, data, shape));
}

}  // namespace headlight::layers
