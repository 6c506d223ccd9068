#include "array.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <string_view>
#include <utility>

namespace headlight::python {
namespace {

constexpr const char* kExpected =
    ", expected an array on the CPU that speaks the buffer protocol or DLPack (numpy.ndarray, torch.Tensor)";

constexpr const char* kReadOnly = " is read-only";

// An array without elements may come without memory, which to the engine would be one that is not given.
alignas(64) float nowhere[16];

// What a format of the buffer protocol says (the module struct).
ElementType element_type(const char* format, Py_ssize_t bytes) noexcept {
  if (format == nullptr) format = "B";
  if (*format == '@' || *format == '=' || *format == '<') ++format;  // little-endian machines alone are supported
  if (*format == '\0' || format[1] != '\0') return {};
  const std::string_view kinds[] = {"f:efd", "i:bhilqn", "u:BHILQN", "?:?"};
  for (const std::string_view kind : kinds) {
    if (kind.substr(2).find(*format) != std::string_view::npos) return {kind.front(), static_cast<int>(bytes) * 8};
  }
  return {};
}

ElementType element_type(nb::dlpack::dtype type) noexcept {
  if (type.lanes != 1) return {};
  switch (static_cast<nb::dlpack::dtype_code>(type.code)) {
    case nb::dlpack::dtype_code::Int:
      return {'i', type.bits};
    case nb::dlpack::dtype_code::UInt:
      return {'u', type.bits};
    case nb::dlpack::dtype_code::Float:
      return {'f', type.bits};
    case nb::dlpack::dtype_code::Bfloat:
      return {'b', type.bits};
    case nb::dlpack::dtype_code::Complex:
      return {'c', type.bits};
    case nb::dlpack::dtype_code::Bool:
      return {'?', type.bits};
    default:
      return {};
  }
}

// Of NumPy, kept as long as the process runs.
PyObject* numpy_array = nullptr;
struct NumpyType {
  const char* name;
  ElementType type;
  PyObject* dtype = nullptr;
};
std::array numpy_types{NumpyType{"float32", kFloat32}, NumpyType{"float16", kFloat16}, NumpyType{"int8", kInt8},
                       NumpyType{"bool", kBool}, NumpyType{"uint8", kUInt8}};
// ml_dtypes.bfloat16 as a dtype, once somebody has come with it.
std::atomic<PyObject*> numpy_bfloat16{nullptr};

// "float64" → 'f', 64; of what is in another order of bytes, nothing.
ElementType named_type(nb::handle type) {
  if (nb::getattr(type, "isnative", nb::none()).ptr() != Py_True) return {};
  const nb::object name = nb::getattr(type, "name", nb::none());
  if (PyUnicode_Check(name.ptr()) == 0) return {};
  const std::string text = nb::borrow<nb::str>(name).c_str();
  for (const char kind : {'f', 'b', 'i', 'u', 'c', '?'}) {
    for (const int bits : {8, 16, 32, 64, 128}) {
      if (ElementType{kind, bits}.name() == text) return {kind, bits};
    }
  }
  return {};
}

ElementType element_type_of_numpy(nb::handle array) {
  const nb::object type = array.attr("dtype");
  for (const NumpyType& known : numpy_types) {
    if (type.ptr() == known.dtype) return known.type;
  }
  if (type.ptr() == numpy_bfloat16.load(std::memory_order_relaxed)) return kBFloat16;
  const ElementType found = named_type(type);
  if (found == kBFloat16) {
    PyObject* none = nullptr;
    if (numpy_bfloat16.compare_exchange_strong(none, type.ptr())) type.inc_ref();
  }
  return found;
}

// Whether it is an array of numpy.ma, whose mask nobody here would look at.
bool is_masked(nb::handle array) {
  if (array.type().is(numpy_array)) return false;
  const nb::str name("numpy.ma");
  const nb::object masked = nb::steal(PyImport_GetModule(name.ptr()));
  if (!masked.is_valid()) {
    PyErr_Clear();
    return false;
  }
  const int is_one = PyObject_IsInstance(array.ptr(), masked.attr("MaskedArray").ptr());
  if (is_one < 0) throw nb::python_error();
  return is_one == 1;
}

// The strides of an array without gaps, from its last axis on; of sizes that pass 64 bits any, for the engine refuses
// them.
class ContiguousStrides {
 public:
  explicit ContiguousStrides(std::int64_t first) : stride_(static_cast<std::uint64_t>(first)) {}
  std::int64_t next(std::int64_t extent) noexcept {
    return static_cast<std::int64_t>(std::exchange(stride_, stride_ * static_cast<std::uint64_t>(extent)));
  }

 private:
  std::uint64_t stride_;
};

// Memory that the CPU reads: its own, and what a GPU's driver has pinned in it.
bool on_the_cpu(int device) noexcept {
  return device == nb::device::cpu::value || device == nb::device::cuda_host::value ||
         device == nb::device::rocm_host::value;
}

}  // namespace

void define_arrays() {
  const nb::module_ numpy = nb::module_::import_("numpy");
  numpy_array = numpy.attr("ndarray").inc_ref().ptr();
  for (NumpyType& known : numpy_types) known.dtype = numpy.attr("dtype")(known.name).release().ptr();
}

std::string ElementType::name() const {
  const char* const word = kind == 'f'   ? "float"
                           : kind == 'b' ? "bfloat"
                           : kind == 'i' ? "int"
                           : kind == 'u' ? "uint"
                           : kind == 'c' ? "complex"
                                         : nullptr;
  if (kind == '?') return "bool";
  return word == nullptr ? "unknown" : word + std::to_string(bits);
}

Array::Array(const char* operation, const char* argument, nb::handle object, Access access)
    : operation_(operation), argument_(argument), object_(nb::borrow(object)) {
  if (!take_buffer(object, access)) take_dlpack(access);
  check_place();
  const bool empty = std::any_of(shape_.begin(), shape_.begin() + rank_, [](auto extent) { return extent == 0; });
  if (empty && data_ == nullptr) data_ = nowhere;
}

// False when the object has no buffer to give.
bool Array::take_buffer(nb::handle object, Access access) {
  if (PyObject_CheckBuffer(object.ptr()) == 0) return false;
  Py_buffer& view = buffer_.view;
  // NumPy writes a format anew each time, and has none for bfloat16; its dtype says as much.
  const bool numpys = PyObject_TypeCheck(object.ptr(), reinterpret_cast<PyTypeObject*>(numpy_array)) != 0;
  if (numpys && is_masked(object)) {
    refuse_type(operation_,
                std::string(argument_) + " is a MaskedArray, whose mask would not be seen; hand in .filled()");
  }
  const int wanted = numpys ? PyBUF_STRIDED_RO : PyBUF_RECORDS_RO;
  if (PyObject_GetBuffer(object.ptr(), &view, access == Access::write ? wanted | PyBUF_WRITABLE : wanted) != 0) {
    if (!PyErr_ExceptionMatches(PyExc_BufferError) && !PyErr_ExceptionMatches(PyExc_ValueError)) {
      throw nb::python_error();
    }
    const nb::python_error why;  // takes it
    if (access == Access::write && PyObject_GetBuffer(object.ptr(), &view, wanted) == 0) {
      PyBuffer_Release(&view);
      refuse_type(operation_, std::string(argument_) + kReadOnly);
    }
    PyErr_Clear();
    if (nb::hasattr(object, "__dlpack__")) return false;
    refuse_type(operation_, std::string(argument_) + ": " + nb::str(why.value()).c_str());
  }
  buffer_.held = true;
  data_ = view.buf;
  type_ = numpys ? element_type_of_numpy(object) : element_type(view.format, view.itemsize);
  if (type_.bits != view.itemsize * 8) type_ = {};  // a subclass that says what is not so
  rank_ = view.ndim;
  if (rank_ > kMostAxes) return true;                                   // check_place() refuses it
  const std::int64_t bytes = std::max<std::int64_t>(1, view.itemsize);  // there are types of none
  ContiguousStrides contiguous(bytes);
  for (int axis = rank_ - 1; axis >= 0; --axis) {
    const auto at = static_cast<std::size_t>(axis);
    const std::int64_t own = contiguous.next(view.shape[axis]);
    const std::int64_t stride = view.strides == nullptr ? own : view.strides[axis];
    shape_[at] = view.shape[axis];
    strides_[at] = stride / bytes;
    if (stride % bytes != 0 && shape_[at] > 1) {  // a stride that no index takes may be any
      refuse_value(operation_, std::string(argument_) + " has strides that are no multiples of its elements' size");
    }
  }
  return true;
}

void Array::take_dlpack(Access access) {
  const std::string name(argument_);
  const auto refuse = [&](const std::string& otherwise) {
    const std::string why = why_unreadable(object_);
    refuse_type(operation_, name + (why.empty() ? otherwise : " " + why));
  };
  if (is_negated(object_)) refuse("");
  try {
    if (!imported_.ask(object_, access == Access::write)) refuse(" is " + kind_of(object_) + kExpected);
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_Exception) || error.matches(PyExc_MemoryError)) throw;
    const std::string said = nb::str(error.value()).c_str();
    refuse(": " + said.substr(0, said.find('\n')));  // behind it PyTorch lists where it was
  }
  const nb::dlpack::dltensor& tensor = imported_.tensor();
  if (access == Access::write && imported_.read_only()) refuse_type(operation_, name + kReadOnly);
  if (!on_the_cpu(tensor.device.device_type)) {
    refuse(" is on the device " + std::to_string(tensor.device.device_type) + ":" +
           std::to_string(tensor.device.device_id) + " of DLPack, expected the CPU (1:0)");
  }
  data_ = tensor.data == nullptr ? nullptr : static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  type_ = element_type(tensor.dtype);
  rank_ = tensor.ndim;
  if (rank_ > kMostAxes) return;  // check_place() refuses it
  ContiguousStrides contiguous(1);
  for (int axis = rank_ - 1; axis >= 0; --axis) {
    const auto at = static_cast<std::size_t>(axis);
    const std::int64_t own = contiguous.next(tensor.shape[axis]);
    shape_[at] = tensor.shape[axis];
    strides_[at] = tensor.strides == nullptr ? own : tensor.strides[axis];
  }
}

void Array::check_place() const {
  if (rank_ < 0 || rank_ > kMostAxes) {
    refuse_value(operation_, std::string(argument_) + " has " + std::to_string(rank_) + " axes, expected at most 4");
  }
  const auto bytes = static_cast<std::uintptr_t>(type_.bits / 8);
  if (bytes > 1 && reinterpret_cast<std::uintptr_t>(data_) % bytes != 0) {
    refuse_value(operation_, std::string(argument_) + " lies at an address that is no multiple of its elements' size");
  }
}

NumberType Array::number_type(bool or_int8) const {
  if (type_ == kFloat32) return NumberType::float32;
  if (type_ == kBFloat16) return NumberType::bfloat16;
  if (type_ == kFloat16) return NumberType::float16;
  if (or_int8 && type_ == kInt8) return NumberType::int8;
  refuse_element_type(or_int8 ? "float32, bfloat16, float16 or int8" : "float32, bfloat16 or float16");
}

View<float, 4> Array::broadcast_floats() const {
  if (type_ != kFloat32) refuse_element_type("float32");
  return aligned_right<float>();
}

View<const std::uint8_t, 4> Array::broadcast_booleans() const {
  if (type_ != kBool && type_ != kUInt8) refuse_element_type("bool or uint8");
  return aligned_right<std::uint8_t>();
}

template <class T>
View<T, 4> Array::aligned_right() const {
  if (rank_ < 1 || rank_ > 4) {
    refuse_value(operation_, std::string(argument_) + " has shape " + describe_shape() + ", expected 1 to 4 axes");
  }
  View<T, 4> view;
  view.data = static_cast<T*>(data_);
  const std::size_t missing = 4 - static_cast<std::size_t>(rank_);
  for (std::size_t axis = 0; axis < 4; ++axis) {
    view.shape[axis] = axis < missing ? 1 : shape_[axis - missing];
    view.strides[axis] = axis < missing ? 0 : strides_[axis - missing];
  }
  return view;
}

std::span<const float> Array::vector() const {
  const View<const float, 1> view = floats<1>();
  if (view.extent(0) > 1 && view.stride(0) != 1) {
    refuse_value(operation_,
                 std::string(argument_) + " has the stride " + std::to_string(view.stride(0)) + ", expected 1");
  }
  return {view.data, static_cast<std::size_t>(view.extent(0))};
}

void Array::expect(ElementType type, int rank) const {
  if (type_ != type) refuse_element_type(type.name().c_str());
  expect_axes(rank);
}

void Array::expect_axes(int rank) const {
  if (rank_ == rank) return;
  refuse_value(operation_, std::string(argument_) + " has shape " + describe_shape() + ", expected " +
                               std::to_string(rank) + (rank == 1 ? " axis" : " axes"));
}

void Array::refuse_element_type(const char* expected) const {
  refuse_type(operation_,
              std::string(argument_) + " has numbers of type " + describe_element_type() + ", expected " + expected);
}

// "float64"; of what has no name here its owner's words for it.
std::string Array::describe_element_type() const {
  if (type_.kind != 0) return type_.name();
  std::string words = "'";
  if (buffer_.held && buffer_.view.format != nullptr) return words.append(buffer_.view.format).append("'");
  try {
    const nb::object dtype = object_.attr("dtype");
    words.append(nb::str(dtype).c_str()).append("'");
    const bool said = buffer_.held && named_type(dtype).kind != 0;
    return said ? words.append(" in ").append(std::to_string(buffer_.view.itemsize)).append(" bytes") : words;
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_Exception)) throw;
    return "unknown";
  }
}

std::string describe(std::span<const std::int64_t> shape) {
  std::string list;
  for (const std::int64_t extent : shape) list += (list.empty() ? "" : ", ") + std::to_string(extent);
  return "[" + list + "]";
}

}  // namespace headlight::python
