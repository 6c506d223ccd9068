#include "errors.h"

#include <cstddef>
#include <exception>
#include <new>
#include <system_error>

#include "headlight/models/errors.h"

namespace headlight::python {

void refuse_value(const char* operation, const std::string& message) {
  throw std::invalid_argument(std::string(operation) + ": " + message);
}

void refuse_type(const char* operation, const std::string& message) {
  throw nb::type_error((std::string(operation) + ": " + message).c_str());
}

std::string kind_of(nb::handle object) {
  if (object.is_none()) return "None";
  const auto name = nb::steal<nb::str>(PyType_GetName(Py_TYPE(object.ptr())));
  const std::string_view text = name.c_str();
  const bool vowel = !text.empty() && std::string_view("aeiouAEIOU").find(text.front()) != std::string_view::npos;
  return (vowel ? "an " : "a ") + std::string(text);
}

std::string in_words_of_python(const char* operation, std::span<const EngineWord> words, std::string_view message) {
  const std::size_t colon = message.find(": ");
  if (colon != std::string_view::npos) message.remove_prefix(colon + 2);
  std::string text = std::string(operation) + ": ";
  for (const EngineWord& word : words) {
    if (!message.starts_with(word.of_engine)) continue;
    const std::string_view rest = message.substr(word.of_engine.size());
    if (!rest.starts_with(' ') && !rest.starts_with('[')) continue;  // a longer name
    return text.append(word.of_python).append(rest);
  }
  if (message.starts_with(text)) message.remove_prefix(text.size());  // the engine named it, too
  return text.append(message);
}

namespace {

// Raises the exception of Python that stands for one of ours; what is none of them stays for nanobind, which knows
// those of the standard library. `file_error` is headlight.FileError.
void raise(const std::exception_ptr& failure, void* file_error) {
  try {
    std::rethrow_exception(failure);
  } catch (const models::FileError& error) {
    PyErr_SetString(static_cast<PyObject*>(file_error), error.what());
  } catch (const std::bad_alloc& error) {  // OutOfMemory says who asked, and for how much
    PyErr_SetString(PyExc_MemoryError, error.what());
  } catch (const std::length_error&) {  // a container asked for more than there can be
    PyErr_SetString(PyExc_MemoryError, "memory cannot be had");
  } catch (const std::system_error& error) {
    PyErr_SetString(PyExc_OSError, error.what());
  }
}

}  // namespace

void define_errors(nb::module_& module) {
  // Of two kinds: who opens files expects an OSError, who reads what they say a ValueError.
  const nb::object bases = nb::make_tuple(nb::handle(PyExc_OSError), nb::handle(PyExc_ValueError));
  nb::object file_error =
      nb::steal(PyErr_NewExceptionWithDoc("headlight.FileError",
                                          "A file of a model could not be read or understood: one line that names it, "
                                          "what was found and what was expected.",
                                          bases.ptr(), nullptr));
  if (!file_error.is_valid()) throw nb::python_error();
  module.attr("FileError") = file_error;
  nb::register_exception_translator(raise, file_error.release().ptr());
}

}  // namespace headlight::python
