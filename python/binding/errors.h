// How what is wrong becomes an exception of Python: the engine's own sentences, and those of the arguments that only
// Python can get wrong, in the same form.
#pragma once

#include <nanobind/nanobind.h>

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace nb = nanobind;

namespace headlight::python {

// ValueError("operation: message"): a value or a shape.
[[noreturn]] void refuse_value(const char* operation, const std::string& message);
// TypeError("operation: message"): a type of number, a device, an object of another kind.
[[noreturn]] void refuse_type(const char* operation, const std::string& message);
// "a list", "an int", "None": what an object is, for those messages.
[[nodiscard]] std::string kind_of(nb::handle object);

// What a message of the engine calls otherwise than Python does: an argument, or how a sentence about it begins.
struct EngineWord {
  std::string_view of_engine, of_python;
};
// "gemm: c overlaps a in memory" of matmul() → "matmul: out overlaps a in memory".
[[nodiscard]] std::string in_words_of_python(const char* operation, std::span<const EngineWord> words,
                                             std::string_view message);

// call(), whose refusals speak of `operation` and its arguments as Python has them.
template <class Call>
void with_names_of_python(const char* operation, std::span<const EngineWord> words, const Call& call) {
  try {
    call();
  } catch (const std::invalid_argument& refused) {
    throw std::invalid_argument(in_words_of_python(operation, words, refused.what()));
  }
}

// Registers how exceptions of C++ are raised: std::invalid_argument as ValueError, OutOfMemory and std::bad_alloc as
// MemoryError, std::system_error as OSError, models::FileError as headlight.FileError, which is an OSError and a
// ValueError.
void define_errors(nb::module_& module);

}  // namespace headlight::python
