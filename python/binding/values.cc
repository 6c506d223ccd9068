#include "values.h"

#include <cstddef>
#include <limits>
#include <optional>
#include <tuple>
#include <type_traits>

#include "array.h"

namespace headlight::python {
namespace {

// The type of numpy.True_, kept as long as the process runs.
PyObject* numpy_bool = nullptr;

// Says what was wanted where Python says that the object is none, as a memoryview of several axes does of its items,
// or where a tensor of PyTorch cannot be looked at; other exceptions pass.
[[noreturn]] void not_that(const char* operation, const char* argument, nb::handle object, const char* expected) {
  if (PyErr_ExceptionMatches(PyExc_RuntimeError)) {
    nb::python_error failure;  // takes it
    const std::string why = why_unreadable(object);
    if (why.empty()) throw failure;
    refuse_type(operation, std::string(argument) + " " + why);
  }
  if (!PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_NotImplementedError)) {
    throw nb::python_error();
  }
  PyErr_Clear();
  refuse_type(operation, std::string(argument) + " is " + kind_of(object) + ", expected " + expected);
}

[[noreturn]] void out_of_range(const char* operation, const char* argument, const char* expected) {
  if (!PyErr_ExceptionMatches(PyExc_OverflowError)) throw nb::python_error();
  PyErr_Clear();
  refuse_value(operation, std::string(argument) + " is out of range, expected " + expected);
}

nb::object index(const char* operation, const char* argument, nb::handle object) {
  nb::object whole = nb::steal(PyNumber_Index(object.ptr()));
  if (!whole.is_valid()) not_that(operation, argument, object, "an integer");
  return whole;
}

}  // namespace

void define_values() { numpy_bool = nb::module_::import_("numpy").attr("bool_").inc_ref().ptr(); }

std::int64_t integer(const char* operation, const char* argument, nb::handle object) {
  const nb::object whole = index(operation, argument, object);
  const long long value = PyLong_AsLongLong(whole.ptr());
  if (value == -1 && PyErr_Occurred() != nullptr) out_of_range(operation, argument, "an integer of 64 bits");
  return value;
}

std::uint64_t seed_of(const char* operation, const char* argument, nb::handle object) {
  const nb::object whole = index(operation, argument, object);
  const unsigned long long value = PyLong_AsUnsignedLongLong(whole.ptr());
  if (PyErr_Occurred() != nullptr) out_of_range(operation, argument, "0 to 2**64 - 1");
  return value;
}

float number(const char* operation, const char* argument, nb::handle object) {
  const double value = PyFloat_AsDouble(object.ptr());
  if (value == -1 && PyErr_Occurred() != nullptr) {
    if (PyErr_ExceptionMatches(PyExc_OverflowError)) out_of_range(operation, argument, "a float");
    not_that(operation, argument, object, "a number");
  }
  return static_cast<float>(value);
}

std::optional<bool> boolean(nb::handle object) {
  if (object.ptr() == Py_True) return true;
  if (object.ptr() == Py_False) return false;
  if (PyObject_TypeCheck(object.ptr(), reinterpret_cast<PyTypeObject*>(numpy_bool)) == 0) return std::nullopt;
  const int value = PyObject_IsTrue(object.ptr());
  if (value < 0) throw nb::python_error();
  return value == 1;
}

bool truth(const char* operation, const char* argument, nb::handle object) {
  if (const std::optional<bool> value = boolean(object)) return *value;
  refuse_type(operation, std::string(argument) + " is " + kind_of(object) + ", expected True or False");
}

std::string_view text(const char* operation, const char* argument, nb::handle object) {
  if (PyUnicode_Check(object.ptr()) == 0) {
    refuse_type(operation, std::string(argument) + " is " + kind_of(object) + ", expected a str");
  }
  Py_ssize_t length = 0;
  const char* const bytes = PyUnicode_AsUTF8AndSize(object.ptr(), &length);
  if (bytes == nullptr) {  // a lone surrogate
    PyErr_Clear();
    refuse_value(operation, std::string(argument) + " is a str that cannot be written as UTF-8");
  }
  return {bytes, static_cast<std::size_t>(length)};
}

NumberType precision_of(const char* operation, nb::handle precision) {
  const std::string_view given = text(operation, "precision", precision);
  const std::optional<NumberType> type = parse_number_type(given);
  if (!type) {
    refuse_value(operation, "precision is '" + std::string(given) + "', expected " + kPrecisions);
  }
  return *type;
}

bool is_pair_like(nb::handle object) noexcept {
  return PyTuple_Check(object.ptr()) != 0 || PyList_Check(object.ptr()) != 0;
}

Items::Items(const char* operation, const char* argument, nb::handle object, const char* expected)
    : operation_(operation), argument_(argument), object_(object), expected_(expected) {
  iterator_ = nb::steal(PyObject_GetIter(object.ptr()));
  if (!iterator_.is_valid()) not_that(operation, argument, object, expected);
}

nb::object Items::next() {
  nb::object item = nb::steal(PyIter_Next(iterator_.ptr()));
  if (item.is_valid() || PyErr_Occurred() == nullptr) return item;
  not_that(operation_, argument_, object_, expected_);
}

namespace {

// Those of an array of T, behind one another; false of an array of another type.
template <class T>
bool append(const Array& array, std::vector<std::int64_t>& list) {
  if (!array.is(kInteger<T>)) return false;
  const View<T, 1> numbers = array.integers<T, 1>();
  for (std::int64_t i = 0; i < numbers.extent(0); ++i) {
    if constexpr (std::is_same_v<T, std::uint64_t>) {
      constexpr std::uint64_t kLargest = std::numeric_limits<std::int64_t>::max();
      if (numbers(i) > kLargest) {
        array.refuse(std::string("[") + std::to_string(i) + "] is " + std::to_string(numbers(i)) +
                     ", expected an integer of 64 bits");
      }
    }
    list.push_back(static_cast<std::int64_t>(numbers(i)));
  }
  return true;
}

using IntegerTypes = std::tuple<std::int64_t, std::int32_t, std::int16_t, std::int8_t, std::uint64_t, std::uint32_t,
                                std::uint16_t, std::uint8_t>;

// What an array holds; nothing where its items are to be asked one by one.
std::optional<std::vector<std::int64_t>> integers_of_array(const char* operation, const char* argument,
                                                           nb::handle object) {
  if (PyList_Check(object.ptr()) != 0 || PyTuple_Check(object.ptr()) != 0) return std::nullopt;
  if (PyObject_CheckBuffer(object.ptr()) == 0 && !nb::hasattr(object, "__dlpack__")) return std::nullopt;
  const Array array(operation, argument, object);
  if (array.is_of_unknown_type()) return std::nullopt;
  array.expect_axes(1);
  std::vector<std::int64_t> list;
  if (array.extent(0) == 0) return list;  // of any type: NumPy makes float64 of []
  const auto append_any = [&]<class... T>(std::tuple<T...>) { return (append<T>(array, list) || ...); };
  if (!append_any(IntegerTypes())) array.refuse_element_type("integers");
  return list;
}

}  // namespace

bool is_one_integer(nb::handle object) {
  if (PyLong_Check(object.ptr()) != 0) return true;
  if (PyIndex_Check(object.ptr()) == 0) return false;
  const nb::object axes = nb::getattr(object, "ndim", nb::none());
  return axes.is_none() ? PySequence_Check(object.ptr()) == 0 : axes.equal(nb::int_(0));
}

std::vector<std::int64_t> integers(const char* operation, const char* argument, nb::handle object) {
  if (std::optional<std::vector<std::int64_t>> found = integers_of_array(operation, argument, object)) return *found;
  std::vector<std::int64_t> list;
  Items items(operation, argument, object, "a list of integers");
  while (const nb::object item = items.next()) {
    list.push_back(integer(operation, (std::string(argument) + "[" + std::to_string(list.size()) + "]").c_str(), item));
  }
  return list;
}

}  // namespace headlight::python
