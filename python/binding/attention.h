// attention(), attention_backward() and merge_attention() of Python.
#pragma once

#include <nanobind/nanobind.h>

namespace headlight::python {

void define_attention(nanobind::module_& module);

}  // namespace headlight::python
