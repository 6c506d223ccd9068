// Engines of Python: hl.Engine, and the one that calls use where none is given.
#pragma once

#include <nanobind/nanobind.h>

#include "headlight/engine.h"

namespace nb = nanobind;

namespace headlight::python {

void define_engine(nb::module_& module);

// `engine=` of a call: None is the default engine, which is made on first use. TypeError for what is no engine.
[[nodiscard]] Engine& engine_of(const char* operation, nb::handle engine);

}  // namespace headlight::python
