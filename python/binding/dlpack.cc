#include "dlpack.h"

namespace headlight::python {
namespace {

constexpr std::uint32_t kMajor = 1;

// What a type shows as __dlpack_c_exchange_api__, so far as it is used here (DLPack 1.3).
struct ExchangeTable {
  std::uint32_t major, minor;
  ExchangeTable* previous;
  void* allocate;
  int (*from_object)(void* object, DLPackVersionedTensor** out);
};

const ExchangeTable* exchange_table(nb::handle object) {
  constexpr const char* kName = "dlpack_exchange_api";
  const nb::object capsule = nb::getattr(object.type(), "__dlpack_c_exchange_api__", nb::none());
  if (PyCapsule_IsValid(capsule.ptr(), kName) == 0) return nullptr;
  const auto* const table = static_cast<const ExchangeTable*>(PyCapsule_GetPointer(capsule.ptr(), kName));
  return table->major == kMajor ? table : nullptr;
}

// Whether a tensor of PyTorch wants gradients: its method refuses it then, the table does not.
bool wants_gradients(nb::handle object) { return nb::getattr(object, "requires_grad", nb::none()).ptr() == Py_True; }

// str() of an attribute; "" where there is none, or its owner refuses.
std::string text_of(nb::handle object, const char* attribute) {
  try {
    const nb::object value = nb::getattr(object, attribute, nb::none());
    return value.is_none() ? "" : nb::str(value).c_str();
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_Exception)) throw;
    return "";
  }
}

}  // namespace

bool is_negated(nb::handle object) {
  const nb::object negated = nb::getattr(object, "is_neg", nb::none());
  return !negated.is_none() && negated().ptr() == Py_True;
}

std::string why_unreadable(nb::handle object) {
  const auto is = [&](const char* attribute) { return text_of(object, attribute) == "True"; };
  // First, for of such a tensor PyTorch answers few other questions.
  if (is("is_nested")) return "is a nested tensor, expected a dense one (torch.nested.to_padded_tensor)";
  const std::string layout = text_of(object, "layout"), device = text_of(object, "device");
  if (!layout.starts_with("torch.")) return "";
  if (layout != "torch.strided") return "has the layout " + layout + ", expected torch.strided (tensor.to_dense())";
  if (device != "cpu") return "is on the device " + device + ", expected the CPU";
  if (is("is_quantized")) {
    return "is quantized (" + text_of(object, "dtype") + "), expected plain numbers (tensor.dequantize())";
  }
  if (is_negated(object)) return "is a negated view, expected the numbers themselves (tensor.resolve_neg())";
  return wants_gradients(object) ? "requires gradients, expected a tensor that does not (tensor.detach())" : "";
}

DLPackMemory::~DLPackMemory() {
  if (versioned_ != nullptr && versioned_->deleter != nullptr) versioned_->deleter(versioned_);
  if (plain_ != nullptr && plain_->deleter != nullptr) plain_->deleter(plain_);
}

bool DLPackMemory::ask(nb::handle object, bool to_write) {
  if (ask_type(object)) return true;
  const nb::object method = nb::getattr(object, "__dlpack__", nb::none());
  if (method.is_none()) return false;
  // Only the newer form says whether the memory may be written, the older one is faster, and not everybody has both.
  const auto call = [&](bool newer) {
    return newer ? method(nb::arg("max_version") = nb::make_tuple(kMajor, 1)) : method();
  };
  try {
    return take(call(to_write));
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError) && !error.matches(PyExc_BufferError)) throw;
  }
  return take(call(!to_write));
}

bool DLPackMemory::ask_type(nb::handle object) {
  const ExchangeTable* const table = exchange_table(object);
  if (table == nullptr || wants_gradients(object)) return false;
  if (table->from_object(object.ptr(), &versioned_) == 0) return true;
  versioned_ = nullptr;
  throw nb::python_error();
}

// Takes over what the capsule holds: by the protocol it gets another name then, and frees it no more.
bool DLPackMemory::take(nb::handle capsule) {
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned") != 0) {
    auto* const held = static_cast<DLPackVersionedTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
    if (held->major != kMajor) return false;
    if (PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned") != 0) throw nb::python_error();
    versioned_ = held;
    return true;
  }
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor") == 0) return false;
  auto* const held = static_cast<DLPackTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
  if (PyCapsule_SetName(capsule.ptr(), "used_dltensor") != 0) throw nb::python_error();
  plain_ = held;
  return true;
}

}  // namespace headlight::python
