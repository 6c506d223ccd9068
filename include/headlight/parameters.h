// Named parameters: how layers show what they learn, and how weights from elsewhere reach them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "headlight/export.h"
#include "headlight/storage_format.h"

namespace headlight {

// One parameter of a layer, in the layer's own memory.
struct Parameter {
  std::string name;                 // "self_attn.in_proj_weight"
  std::vector<std::int64_t> shape;  // [rows, columns] of a matrix
  std::span<float> values;          // C order
  // Of the same shape; empty unless the layer is in training. Backward passes add to it.
  std::span<float> gradient{};
};

// Sets all gradients to 0.
HEADLIGHT_API void zero_gradients(std::span<const Parameter> parameters) noexcept;

// One tensor that somebody else holds: a mapped file, another library's memory.
struct WeightView {
  std::vector<std::int64_t> shape;  // [rows, columns] of a matrix
  std::span<const float> values{};  // C order
  // Where given, it keeps the memory of the numbers, which nobody changes: a layer may then read it there, and need no
  // copy. (A std::shared_ptr without a deleter will do for memory that lives longer anyway.)
  std::shared_ptr<const void> owner{};
  // Instead of `values`: numbers in any storage format, in C order; a row of the format is one of the last axis.
  // Layers read them widened, and without an owner keep a copy that is as they are.
  StoredNumbers stored{};
  // Where given, called with bytes of the numbers that nobody reads for the time being, because panels hold them. They
  // stay readable; but whoever maps a file may let go of their pages, which come back when they are read again.
  void (*let_go)(const void* from, std::size_t bytes) noexcept = nullptr;
};

// Tensors by their names, as layer.load() takes them.
using Weights = std::map<std::string, WeightView, std::less<>>;

// Which weights layer.load() takes.
struct LoadOptions {
  // In front of every name: "encoder." loads "encoder.linear1.weight" into "linear1.weight".
  std::string prefix{};
  // Whether tensors under the prefix that nothing takes are passed over. Tensors outside the prefix always are.
  bool ignore_extra = false;
};

}  // namespace headlight
