// matmul() and pack() of Python.
#pragma once

#include <nanobind/nanobind.h>

namespace headlight::python {

void define_products(nanobind::module_& module);

}  // namespace headlight::python
