// Keywords that a function does not have: nanobind would answer with the function's whole signature.
#pragma once

#include <nanobind/nanobind.h>

#include <type_traits>

namespace nb = nanobind;

namespace headlight::python {

// TypeError("operation: keyword 'casual' is unknown, expected some of query, key, …"), as its nb::sig() names them.
[[noreturn]] void refuse_keywords(const char* signature, const nb::kwargs& unknown);

namespace inner {

template <class Function, class Result, class... Arguments>
auto with_known_keywords(const char* signature, Function function, Result (*)(Arguments...)) {
  return [signature, function](Arguments... arguments, const nb::kwargs& unknown) -> Result {
    if (unknown.size() != 0) refuse_keywords(signature, unknown);
    return function(arguments...);
  };
}

}  // namespace inner

// The function, or lambda without captures, with one more argument, which collects keywords that it does not have, and
// none may be there. nb::arg("unknown") stands for it behind the others.
template <class Function>
auto with_known_keywords(const char* signature, Function function) {
  return inner::with_known_keywords(signature, function, +function);
}

}  // namespace headlight::python
