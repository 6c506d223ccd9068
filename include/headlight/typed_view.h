// Views whose numbers are of a type that the program learns as it runs.
#pragma once

#include <cstdint>
#include <type_traits>

#include "headlight/number_type.h"
#include "headlight/storage_types.h"
#include "headlight/tensor.h"
#include "headlight/view.h"

namespace headlight {

// Whether memory of T has a NumberType, and which.
template <class T>
concept StoredNumber = std::is_same_v<T, float> || std::is_same_v<T, BFloat16> || std::is_same_v<T, Float16> ||
    std::is_same_v<T, std::int8_t>;
template <StoredNumber T>
inline constexpr NumberType number_type_of = std::is_same_v<T, float>      ? NumberType::float32
                                             : std::is_same_v<T, BFloat16> ? NumberType::bfloat16
                                             : std::is_same_v<T, Float16>  ? NumberType::float16
                                                                           : NumberType::int8;

// A View with the type beside the pointer; strides count numbers, as there. Every view and tensor of float,
// BFloat16, Float16 or std::int8_t is one.
template <int Rank, class Pointer>
struct AnyTypedView {
  // A number for each axis.
  using Shape = typename View<float, Rank>::Shape;

  // What the numbers are, and where: as in View.
  NumberType type = NumberType::float32;
  Pointer data = nullptr;
  Shape shape{};
  Shape strides{};

  AnyTypedView() = default;
  // Contiguous, C order, unless strides are given.
  AnyTypedView(NumberType type_, Pointer data_, const Shape& shape_)
      : AnyTypedView(type_, data_, shape_, View<float, Rank>::contiguous_strides(shape_)) {}
  AnyTypedView(NumberType type_, Pointer data_, const Shape& shape_, const Shape& strides_)
      : type(type_), data(data_), shape(shape_), strides(strides_) {}

  // Of memory, a view or a tensor whose type the compiler knows.
  template <class T>
  requires(StoredNumber<std::remove_const_t<T>>&& std::is_convertible_v<T*, Pointer>)
      AnyTypedView(T* data_, const Shape& shape_)
      : AnyTypedView(View<T, Rank>(data_, shape_)) {}
  template <class T>
  requires(StoredNumber<std::remove_const_t<T>>&& std::is_convertible_v<T*, Pointer>)
      AnyTypedView(T* data_, const Shape& shape_, const Shape& strides_)
      : AnyTypedView(View<T, Rank>(data_, shape_, strides_)) {}
  template <class T>
  requires(StoredNumber<std::remove_const_t<T>>&& std::is_convertible_v<T*, Pointer>)
      AnyTypedView(const View<T, Rank>& view)  // NOLINT(runtime/explicit)
      : AnyTypedView(number_type_of<std::remove_const_t<T>>, view.data, view.shape, view.strides) {}
  // Part by part: a copy of the tensor's view, read in other pieces than it was just written in, would stall.
  template <StoredNumber T>
  AnyTypedView(Tensor<T, Rank>& tensor)  // NOLINT(runtime/explicit)
      : AnyTypedView(number_type_of<T>, tensor.data(), tensor.shape(), tensor.strides()) {}
  template <StoredNumber T>
  requires std::is_same_v<Pointer, const void*> AnyTypedView(const Tensor<T, Rank>& tensor)  // NOLINT(runtime/explicit)
      : AnyTypedView(number_type_of<T>, tensor.data(), tensor.shape(), tensor.strides()) {}
  // A view that writes is also one that only reads.
  template <class Other>
  requires(!std::is_same_v<Other, Pointer> && std::is_convertible_v<Other, Pointer>)
      AnyTypedView(const AnyTypedView<Rank, Other>& other)  // NOLINT(runtime/explicit)
      : AnyTypedView(other.type, other.data, other.shape, other.strides) {}

  // Of that axis, from 0.
  [[nodiscard]] std::int64_t extent(int axis) const noexcept { return shape[static_cast<std::size_t>(axis)]; }
  [[nodiscard]] std::int64_t stride(int axis) const noexcept { return strides[static_cast<std::size_t>(axis)]; }
  // Numbers; 0 when an extent is negative.
  [[nodiscard]] std::int64_t size() const noexcept { return View<const float, Rank>(nullptr, shape, strides).size(); }
  [[nodiscard]] explicit operator bool() const noexcept { return data != nullptr; }
};

// To read, and to write.
template <int Rank>
using TypedView = AnyTypedView<Rank, const void*>;
template <int Rank>
using MutableTypedView = AnyTypedView<Rank, void*>;

}  // namespace headlight
