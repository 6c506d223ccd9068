// The module headlight._core: what the package headlight shows, beside its Python sources.
#include <nanobind/nanobind.h>

#include "array.h"
#include "attention.h"
#include "engine.h"
#include "errors.h"
#include "models.h"
#include "products.h"
#include "results.h"
#include "values.h"

NB_MODULE(_core, module) {
  // Engines, and the arrays that results are made with, belong to one interpreter.
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
    throw nb::import_error("headlight cannot be used in a sub-interpreter: import it in the main interpreter");
  }
  // Whoever ends with an engine still in a global has done nothing wrong.
  nb::set_leak_warnings(false);
  module.attr("__version__") = HEADLIGHT_PYTHON_VERSION;
  headlight::python::define_arrays();
  headlight::python::define_results();
  headlight::python::define_values();
  headlight::python::define_errors(module);
  headlight::python::define_engine(module);
  headlight::python::define_attention(module);
  headlight::python::define_products(module);
  headlight::python::define_models(module);
}
