// The one place where an array of Python becomes a view of headlight: NumPy's, PyTorch's, and whatever else lies on the
// CPU and speaks the buffer protocol or DLPack. Nothing is copied.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include "dlpack.h"
#include "errors.h"
#include "headlight/number_type.h"
#include "headlight/typed_view.h"
#include "headlight/view.h"

namespace headlight::python {

// What the elements of somebody's array are: 'f' float, 'b' bfloat, 'i' and 'u' integers, 'c' complex, '?' bool, or 0
// for what has no name here.
struct ElementType {
  char kind = 0;
  int bits = 0;

  friend bool operator==(const ElementType&, const ElementType&) = default;
  // "float64"
  [[nodiscard]] std::string name() const;
};

template <class T>
inline constexpr ElementType kInteger{std::is_signed_v<T> ? 'i' : 'u', 8 * static_cast<int>(sizeof(T))};
inline constexpr ElementType kFloat32{'f', 32}, kFloat16{'f', 16}, kBFloat16{'b', 16}, kBool{'?', 8}, kInt8{'i', 8},
    kUInt8{'u', 8};

// "[2, 16, 4, 64]"
[[nodiscard]] std::string describe(std::span<const std::int64_t> shape);

// Keeps what arrays of NumPy are told by; NumPy is there.
void define_arrays();

// An argument for as long as a call lasts: the memory stays where it is and is not given back before this ends.
class Array {
 public:
  enum class Access : bool { read, write };

  // Throws TypeError for what is no array, not on the CPU or, to be written, read-only.
  Array(const char* operation, const char* argument, nb::handle object, Access access = Access::read);
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  [[nodiscard]] nb::handle object() const noexcept { return object_; }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] std::int64_t extent(int axis) const noexcept { return shape_[static_cast<std::size_t>(axis)]; }
  [[nodiscard]] bool is(ElementType type) const noexcept { return type_ == type; }
  // What its owner calls the type of its elements has no name here: objects, another order of bytes.
  [[nodiscard]] bool is_of_unknown_type() const noexcept { return type_.kind == 0; }
  // ValueError("operation: argument" + what is wrong with it).
  [[noreturn]] void refuse(const std::string& what) const { refuse_value(operation_, argument_ + what); }
  // TypeError("operation: argument has numbers of type float64, expected …").
  [[noreturn]] void refuse_element_type(const char* expected) const;

  // As the C++ interface takes it. Throw TypeError for another type, ValueError for another number of axes.
  // Whoever only reads takes them as views of const.
  template <int Rank>
  [[nodiscard]] View<float, Rank> floats() const {
    expect(kFloat32, Rank);
    return {static_cast<float*>(data_), leading<Rank>(shape_), leading<Rank>(strides_)};
  }
  // float32, bfloat16 or float16.
  template <int Rank>
  [[nodiscard]] MutableTypedView<Rank> numbers() const {
    return typed<Rank>(number_type());
  }
  [[nodiscard]] NumberType number_type(bool or_int8 = false) const;
  // The same, and int8 as well: rows of integers, which scales go with.
  template <int Rank>
  [[nodiscard]] TypedView<Rank> stored_numbers() const {
    return typed<Rank>(number_type(true));
  }
  // Of that width and sign alone: std::int8_t, std::uint64_t.
  template <class T, int Rank>
  [[nodiscard]] View<T, Rank> integers() const {
    expect(kInteger<T>, Rank);
    return {static_cast<T*>(data_), leading<Rank>(shape_), leading<Rank>(strides_)};
  }
  // Of one to four axes; those missing in front are 1, as in NumPy.
  [[nodiscard]] View<float, 4> broadcast_floats() const;
  [[nodiscard]] View<const std::uint8_t, 4> broadcast_booleans() const;

  // A vector of float32 without gaps.
  [[nodiscard]] std::span<const float> vector() const;

  // "[2, 16, 4, 64]"
  [[nodiscard]] std::string describe_shape() const { return describe(shape()); }
  [[nodiscard]] std::span<const std::int64_t> shape() const noexcept {
    return {shape_.data(), static_cast<std::size_t>(rank_)};
  }
  void expect_axes(int rank) const;

 private:
  // The most axes that anything takes, and some to spare.
  static constexpr int kMostAxes = 8;
  using Axes = std::array<std::int64_t, kMostAxes>;

  bool take_buffer(nb::handle object, Access access);
  void take_dlpack(Access access);
  void check_place() const;
  void expect(ElementType type, int rank) const;
  [[nodiscard]] std::string describe_element_type() const;
  template <class T>
  [[nodiscard]] View<T, 4> aligned_right() const;
  template <int Rank>
  [[nodiscard]] MutableTypedView<Rank> typed(NumberType type) const {
    expect_axes(Rank);
    return {type, data_, leading<Rank>(shape_), leading<Rank>(strides_)};
  }

  template <int Rank>
  [[nodiscard]] static std::array<std::int64_t, static_cast<std::size_t>(Rank)> leading(const Axes& axes) noexcept {
    std::array<std::int64_t, static_cast<std::size_t>(Rank)> first{};
    for (std::size_t axis = 0; axis < first.size(); ++axis) first[axis] = axes[axis];
    return first;
  }

  const char* operation_;
  const char* argument_;
  nb::object object_;
  void* data_ = nullptr;
  ElementType type_{};
  int rank_ = 0;
  Axes shape_;    // the first rank_ are set
  Axes strides_;  // in elements
  // What holds the memory: one of the two.
  struct Buffer {
    Buffer() = default;
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() {
      if (held) PyBuffer_Release(&view);
    }
    Py_buffer view;
    bool held = false;
  };
  Buffer buffer_;
  DLPackMemory imported_;
};

}  // namespace headlight::python
