// Arrays that a call makes: of the kind of the query where that is a tensor of PyTorch, else NumPy's.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <span>

#include "array.h"

namespace headlight::python {

// Keeps what makes arrays; NumPy is there.
void define_results();

// A new array of that shape and type beside `like`, whose elements are not set. MemoryError when it cannot be had.
[[nodiscard]] nb::object new_array(const char* operation, const Array& like, std::span<const std::int64_t> shape,
                                   NumberType type = NumberType::float32);

// The same without a query to go by: NumPy's, of float32.
[[nodiscard]] nb::object new_array(std::span<const std::int64_t> shape);

// Where a result goes: into `out` where one is given, else into a new array of that shape and type.
class Result {
 public:
  Result(const char* operation, const char* argument, nb::handle out, const Array& like,
         std::span<const std::int64_t> shape, NumberType type = NumberType::float32);
  // The array, to hand back.
  [[nodiscard]] nb::object object() const { return object_; }
  [[nodiscard]] const Array& array() const noexcept { return array_; }

 private:
  nb::object object_;
  Array array_;
};

}  // namespace headlight::python
