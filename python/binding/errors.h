// How what is wrong becomes an exception of Python: the engine's own sentences, and those of the arguments that only
// Python can get wrong, in the same form.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace nb = nanobind;

namespace headlight::python {

// ValueError("operation: message"): a value or a shape.
[[noreturn]] void refuse_value(const char* operation, const std::string& message);
// TypeError("operation: message"): a type of number, a device, an object of another kind.
[[noreturn]] void refuse_type(const char* operation, const std::string& message);
// "a list", "an int", "None": what an object is, for those messages.
[[nodiscard]] std::string kind_of(nb::handle object);

// Registers how exceptions of C++ are raised: std::invalid_argument as ValueError, OutOfMemory and std::bad_alloc as
// MemoryError, std::system_error as OSError, models::FileError as headlight.FileError, which is an OSError and a
// ValueError.
void define_errors(nb::module_& module);

}  // namespace headlight::python
