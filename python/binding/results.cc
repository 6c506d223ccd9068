#include "results.h"

#include <string>

namespace headlight::python {
namespace {

// Of NumPy, kept as long as the process runs.
PyObject* numpy_empty = nullptr;
PyObject* numpy_float32 = nullptr;
PyObject* numpy_float16 = nullptr;
PyObject* numpy_int8 = nullptr;

// The module torch where somebody has imported it and the object is one of its tensors, else nothing.
nb::object torch_of(nb::handle object) {
  if (PyObject_CheckBuffer(object.ptr()) != 0) return {};
  const nb::str name("torch");
  nb::object torch = nb::steal(PyImport_GetModule(name.ptr()));
  if (!torch.is_valid()) {
    PyErr_Clear();
    return {};
  }
  const int is_tensor = PyObject_IsInstance(object.ptr(), torch.attr("Tensor").ptr());
  if (is_tensor < 0) throw nb::python_error();
  return is_tensor == 1 ? torch : nb::object();
}

nb::object numpy_type(const char* operation, NumberType type) {
  if (type == NumberType::float32) return nb::borrow(numpy_float32);
  if (type == NumberType::float16) return nb::borrow(numpy_float16);
  if (type == NumberType::int8) return nb::borrow(numpy_int8);
  try {
    return nb::module_::import_("ml_dtypes").attr("bfloat16");
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_ImportError)) throw;
    refuse_type(operation, "a result of bfloat16 needs the package ml_dtypes, or an array to write into (out=)");
  }
}

nb::object tuple_of(std::span<const std::int64_t> shape) {
  nb::object extents = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(shape.size())));
  if (!extents.is_valid()) throw nb::python_error();
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    PyObject* const extent = PyLong_FromLongLong(shape[axis]);
    if (extent == nullptr) throw nb::python_error();
    PyTuple_SetItem(extents.ptr(), static_cast<Py_ssize_t>(axis), extent);
  }
  return extents;
}

}  // namespace

void define_results() {
  const nb::module_ numpy = nb::module_::import_("numpy");
  numpy_empty = numpy.attr("empty").inc_ref().ptr();
  numpy_float32 = numpy.attr("dtype")("float32").release().ptr();
  numpy_float16 = numpy.attr("dtype")("float16").release().ptr();
  numpy_int8 = numpy.attr("dtype")("int8").release().ptr();
}

nb::object new_array(const char* operation, const Array& like, std::span<const std::int64_t> shape, NumberType type) {
  const nb::object extents = tuple_of(shape);
  const nb::object torch = torch_of(like.object());
  if (!torch.is_valid()) return nb::handle(numpy_empty)(extents, numpy_type(operation, type));
  try {
    const nb::object element = torch.attr(std::string(name(type)).c_str());
    return torch.attr("empty")(extents, nb::arg("dtype") = element, nb::arg("device") = "cpu");
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_RuntimeError)) throw;  // how PyTorch says that there is no memory
    PyErr_SetString(PyExc_MemoryError, (std::string(operation) + ": " + nb::str(error.value()).c_str()).c_str());
    throw nb::python_error();
  }
}

nb::object new_array(std::span<const std::int64_t> shape) {
  return nb::handle(numpy_empty)(tuple_of(shape), nb::handle(numpy_float32));
}

Result::Result(const char* operation, const char* argument, nb::handle out, const Array& like,
               std::span<const std::int64_t> shape, NumberType type)
    : object_(out.is_none() ? new_array(operation, like, shape, type) : nb::borrow(out)),
      array_(operation, argument, object_, Array::Access::write) {}

}  // namespace headlight::python
