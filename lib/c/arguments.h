// The plain structs of C as the types of the C++ interface. Only what C++ types rule out by themselves is checked here:
// null pointers, ranks, element types, numbers without a name, fields from a future version. All else is for the
// operations to refuse.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "c/call.h"
#include "headlight/c/operations.h"
#include "headlight/dropout.h"
#include "headlight/gemm.h"
#include "headlight/typed_view.h"
#include "headlight/view.h"

namespace headlight::c {

template <class T>
T& required(const char* operation, const char* argument, T* pointer) {
  if (pointer == nullptr) refuse(operation, argument, " is a null pointer");
  return *pointer;
}

// Number `index` of a list of pointers.
template <class T>
T& entry(const char* operation, const char* argument, T* const* list, std::size_t index) {
  T* const pointer = (&required(operation, argument, list))[index];
  if (pointer == nullptr) {
    refuse(operation, argument, "[", index, "] is a null pointer");
  }
  return *pointer;
}

// The size that the caller's version of a struct has. One that was never set is found before anything beyond it is
// read, and so is one that ends within a field of the struct's alignment, where half a pointer would be read or
// written.
template <class T>
std::size_t size_of_struct(const char* operation, const char* argument, const T& given) {
  constexpr std::size_t kMostBytes = 4096;  // no struct of ours comes near it
  const std::size_t size = given.struct_size;
  if (size < sizeof(std::size_t) || size > kMostBytes || size % alignof(T) != 0) {
    refuse(operation, argument, ".struct_size is ", size, ", expected the size of the struct, ", sizeof(T),
           " in this version");
  }
  return size;
}

// An option struct of any version, read as one of this version: fields that the caller's version lacks are zero. Bytes
// from `known` on, of later versions or reserved, must be zero. A struct as long as ours is read where it lies.
template <class T>
class Fields {
  static_assert(std::has_unique_object_representations_v<T>, "padding would hold what a later field reads");

 public:
  Fields(const char* operation, const char* argument, const T* given, std::size_t known = sizeof(T))
      : fields_(given), are_given_(given != nullptr) {
    const std::size_t size = given == nullptr ? 0 : size_of_struct(operation, argument, *given);
    const auto* bytes = reinterpret_cast<const unsigned char*>(given);
    for (std::size_t at = known; at < size; ++at) {
      if (bytes[at] != 0) {
        refuse(operation, argument, " has a value at byte ", at, ", where this version of headlight has no field");
      }
    }
    if (size >= sizeof(T)) return;
    copy_ = T{};
    if (given != nullptr) std::memcpy(&copy_, given, size);
    fields_ = &copy_;
  }
  Fields(const Fields&) = delete;
  Fields& operator=(const Fields&) = delete;

  const T* operator->() const noexcept { return fields_; }
  // False of a null pointer, whose fields all are 0.
  [[nodiscard]] bool are_given() const noexcept { return are_given_; }

 private:
  const T* fields_;
  bool are_given_;
  T copy_;  // unset unless it is read
};

// Number `index` of an array of option structs, which lie as far apart as the first says: the caller's version of them
// may be longer or shorter than ours. Whoever reads the first as Fields knows that its size is one.
template <class T>
const T* element(const T* first, std::size_t index) noexcept {
  return reinterpret_cast<const T*>(reinterpret_cast<const std::byte*>(first) + index * first->struct_size);
}

// Where the fields of a struct end that has `reserved` as its last member.
#define HEADLIGHT_C_FIELDS(type) offsetof(type, reserved)

// The enumerator whose number in C is `value`; in C they are first … last, in C++ they count from 0.
template <class Enum>
Enum enumerated(const char* operation, const char* argument, std::int32_t value, std::int32_t first,
                std::int32_t last) {
  if (value < first || value > last) {
    refuse(operation, argument, " is ", value, ", expected ", first, " to ", last);
  }
  return static_cast<Enum>(value - first);
}

template <class T>
constexpr headlight_type type_of() noexcept {
  using Element = std::remove_const_t<T>;
  if constexpr (std::is_same_v<Element, float>) {
    return HEADLIGHT_FLOAT32;
  } else if constexpr (std::is_same_v<Element, std::int8_t>) {
    return HEADLIGHT_INT8;
  } else if constexpr (std::is_same_v<Element, std::int64_t>) {
    return HEADLIGHT_INT64;
  } else {
    static_assert(std::is_same_v<Element, std::uint8_t>, "a type that tensors in C have");
    return HEADLIGHT_UINT8;
  }
}

inline void check_tensor(const char* operation, const char* argument, const headlight_tensor& tensor,
                         headlight_type type, std::int32_t rank) {
  const auto expect = [&](const char* member, std::int32_t value, std::int32_t expected) {
    if (value != expected) {
      refuse(operation, argument, " has ", member, " ", value, ", expected ", expected);
    }
  };
  expect("type", tensor.type, type);
  expect("rank", tensor.rank, rank);
  if (tensor.shape == nullptr) refuse(operation, argument, " has no shape (a null pointer)");
}

inline NumberType stored_type(const char* operation, const char* argument, headlight_type type) {
  if (type == HEADLIGHT_FLOAT32) return NumberType::float32;
  if (type == HEADLIGHT_BFLOAT16) return NumberType::bfloat16;
  if (type == HEADLIGHT_FLOAT16) return NumberType::float16;
  refuse(operation, argument, " has type ", type, ", expected ", std::int32_t{HEADLIGHT_FLOAT32}, ", ",
         std::int32_t{HEADLIGHT_BFLOAT16}, " or ", std::int32_t{HEADLIGHT_FLOAT16});
}

template <class T, int Rank>
View<T, Rank> view(const char* operation, const char* argument, const headlight_tensor* tensor) {
  const headlight_tensor& given = required(operation, argument, tensor);
  check_tensor(operation, argument, given, type_of<T>(), Rank);
  typename View<T, Rank>::Shape shape{};
  std::copy_n(given.shape, Rank, shape.begin());
  if (given.strides == nullptr) return {static_cast<T*>(given.data), shape};
  typename View<T, Rank>::Shape strides{};
  std::copy_n(given.strides, Rank, strides.begin());
  return {static_cast<T*>(given.data), shape, strides};
}

// The same of any type that floats can be stored in; with `cached`, of int8, too.
template <int Rank, class Pointer>
AnyTypedView<Rank, Pointer> typed_view(const char* operation, const char* argument, const headlight_tensor* tensor,
                                       bool cached = false) {
  const headlight_tensor& given = required(operation, argument, tensor);
  const bool is_int8 = cached && given.type == HEADLIGHT_INT8;
  const NumberType type = is_int8 ? NumberType::int8 : stored_type(operation, argument, given.type);
  check_tensor(operation, argument, given, given.type, Rank);
  typename View<float, Rank>::Shape shape{};
  std::copy_n(given.shape, Rank, shape.begin());
  if (given.strides == nullptr) return {type, given.data, shape};
  typename View<float, Rank>::Shape strides{};
  std::copy_n(given.strides, Rank, strides.begin());
  return {type, given.data, shape, strides};
}

// Whether none is of another type. What is missing is refused then, as a tensor of float32.
inline bool all_floats(std::initializer_list<const headlight_tensor*> tensors) noexcept {
  return std::all_of(tensors.begin(), tensors.end(), [](const headlight_tensor* tensor) {
    return tensor == nullptr || tensor->type == HEADLIGHT_FLOAT32;
  });
}

// The same where "not given" is an answer.
template <class T, int Rank>
View<T, Rank> optional_view(const char* operation, const char* argument, const headlight_tensor* tensor) {
  if (tensor == nullptr || tensor->data == nullptr) return {};
  return view<T, Rank>(operation, argument, tensor);
}

template <int Rank, class Pointer>
AnyTypedView<Rank, Pointer> optional_typed_view(const char* operation, const char* argument,
                                                const headlight_tensor* tensor) {
  if (tensor == nullptr || tensor->data == nullptr) return {};
  return typed_view<Rank, Pointer>(operation, argument, tensor);
}

// A matrix that lies one way or the other (the last two axes): as stored, and whether that is transposed.
template <int Rank>
struct Stored {
  View<const float, Rank> view;
  Transpose transpose = Transpose::no;
};

template <int Rank>
Stored<Rank> stored(const char* operation, const char* argument, const headlight_tensor* tensor) {
  Stored<Rank> matrix{view<const float, Rank>(operation, argument, tensor)};
  constexpr std::size_t kRows = Rank - 2, kColumns = Rank - 1;
  auto& shape = matrix.view.shape;
  auto& strides = matrix.view.strides;
  const bool rows_are_long = shape[kColumns] > 1 && strides[kColumns] != 1;
  if (rows_are_long && (strides[kRows] == 1 || shape[kRows] <= 1)) {
    std::swap(shape[kRows], shape[kColumns]);
    std::swap(strides[kRows], strides[kColumns]);
    matrix.transpose = Transpose::yes;
  }
  return matrix;
}

// count elements at data, or none given.
template <class T>
std::span<T> span(const char* operation, const char* argument, T* data, std::int64_t count) {
  if (count < 0) refuse(operation, argument, " has ", count, " entries");
  if (data == nullptr && count > 0) {
    refuse(operation, argument, " has ", count, " entries and no memory (a null pointer)");
  }
  return {data, static_cast<std::size_t>(count)};
}

inline std::span<const std::int64_t> indices(const char* operation, const char* argument,
                                             const headlight_indices& given) {
  return span(operation, argument, given.data, given.count);
}

inline Dropout dropout_of(const headlight_dropout& given) noexcept {
  return {.probability = given.probability, .seed = given.seed, .stream = given.stream};
}

// A vector without gaps, and the same where "not given" is an answer.
template <class T>
std::span<T> vector(const char* operation, const char* argument, const headlight_tensor* tensor) {
  const View<T, 1> elements = view<T, 1>(operation, argument, tensor);
  if (elements.extent(0) > 1 && elements.stride(0) != 1) {
    refuse(operation, argument, " has the stride ", elements.stride(0), ", expected 1");
  }
  return span(operation, argument, elements.data, elements.extent(0));
}

template <class T>
std::span<T> optional_vector(const char* operation, const char* argument, const headlight_tensor* tensor) {
  if (tensor == nullptr || tensor->data == nullptr) return {};
  return vector<T>(operation, argument, tensor);
}

}  // namespace headlight::c
