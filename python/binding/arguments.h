// How functions are defined. An argument may be anything, and a call that does not fit the signature is refused in one
// sentence: nanobind would answer with the whole signature, and refuse None by itself.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace nb = nanobind;

namespace headlight::python {

// An argument of that name, None included: the function says what it expected.
[[nodiscard]] inline auto argument(const char* name) { return nb::arg(name).none(); }

// TypeError of what is wrong with such a call: TypeError("attention: keyword 'casual' is unknown, expected some of
// query, key, …"), with the names of the signature, "def attention(query: A, key: Array, …) -> A". `given` and `named`
// are the arguments by position (self first) and by name.
[[noreturn]] void refuse_call(const char* signature, const nb::args& given, const nb::kwargs& named);

// Defines a function of a module, or a method of a class: `arguments` are argument(…) of each, nb::kw_only() and
// default values, as scope.def() takes them.
template <class Scope, class Function, class... Arguments>
void define(Scope& scope, const char* name, const char* signature, const Function& function, const char* text,
            const Arguments&... arguments) {
  scope.def(name, function, arguments..., nb::sig(signature), text);
  // What does not fit comes here. With the same text, which is shown once then.
  const std::string otherwise = std::string("def ") + name + "(*args, **kwargs) -> NoReturn";
  scope.def(
      name, [signature](const nb::args& given, const nb::kwargs& named) { refuse_call(signature, given, named); },
      nb::sig(otherwise.c_str()), text);
}

}  // namespace headlight::python
