// Memory that its owner hands on by DLPack (https://dmlc.github.io/dlpack), for as long as it is held here.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <string>

namespace nb = nanobind;

namespace headlight::python {

// The two structs of the protocol that own memory; what they hold in common is the tensor.
struct DLPackTensor {
  nb::dlpack::dltensor tensor;
  void* context;
  void (*deleter)(DLPackTensor*);
};

struct DLPackVersionedTensor {
  std::uint32_t major, minor;
  void* context;
  void (*deleter)(DLPackVersionedTensor*);
  std::uint64_t flags;
  nb::dlpack::dltensor tensor;
};

// What keeps a tensor of PyTorch from being read where it lies, in the words that follow its name in a message: "is on
// the device meta, expected the CPU". Nothing for one that can be read, and for what is no such tensor.
[[nodiscard]] std::string why_unreadable(nb::handle object);

// Whether the numbers of a tensor of PyTorch are the negative of what lies in memory, which DLPack does not say.
[[nodiscard]] bool is_negated(nb::handle object);

class DLPackMemory {
 public:
  DLPackMemory() = default;
  ~DLPackMemory();
  DLPackMemory(const DLPackMemory&) = delete;
  DLPackMemory& operator=(const DLPackMemory&) = delete;

  // Asks the object for its memory: by the table of functions that its type shows (PyTorch), else by its method
  // __dlpack__. False when it has neither. Throws what the owner raises: of some of them why_unreadable() knows more.
  bool ask(nb::handle object, bool to_write);

  [[nodiscard]] const nb::dlpack::dltensor& tensor() const noexcept {
    return versioned_ != nullptr ? versioned_->tensor : plain_->tensor;
  }
  // As the owner says; owners that speak the older form cannot.
  [[nodiscard]] bool read_only() const noexcept { return versioned_ != nullptr && (versioned_->flags & 1) != 0; }

 private:
  bool ask_type(nb::handle object);
  bool take(nb::handle capsule);

  DLPackVersionedTensor* versioned_ = nullptr;
  DLPackTensor* plain_ = nullptr;
};

}  // namespace headlight::python
