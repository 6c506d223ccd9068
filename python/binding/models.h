// load() and Encoder of Python.
#pragma once

#include <nanobind/nanobind.h>

namespace headlight::python {

void define_models(nanobind::module_& module);

}  // namespace headlight::python
