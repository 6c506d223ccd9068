// A weight as it lies in a safetensors file: its numbers as they are, in 16 bits, or as 8-bit integers and scales.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/models/atomic_file.h"
#include "headlight/models/safetensors.h"
#include "headlight/number_type.h"
#include "headlight/parameters.h"

namespace headlight::models {

// Whose name a tensor of scales has: "layer.weight_scale" is that of "layer.weight".
inline constexpr std::string_view kScaleSuffix = "_scale";

// One weight on its way into a file, as one tensor or two. It reads the weight while it is written.
class StoredWeight {
 public:
  // One tensor of the file.
  struct Part {
    std::string name;
    std::string_view dtype;
    std::vector<std::int64_t> shape;
    std::uint64_t bytes;
  };

  // `type` is that of weights with two axes or more. Throws std::invalid_argument for one that no file can hold, a
  // shape that is not that of the values, and numbers that are not finite where they would become integers.
  StoredWeight(const std::string& name, const WeightView& weight, NumberType type);

  [[nodiscard]] std::span<const Part> parts() const noexcept { return parts_; }
  // The bytes of all parts, one after another.
  void write(AtomicFile& file) const;

 private:
  void find_scales();

  WeightView weight_;
  NumberType type_;
  std::vector<Part> parts_;
  std::vector<float> scales_;  // of int8, one a row of the last axis
};

// Whether float32() reads it: F32, F16 and BF16, and I8 with the scales that write_safetensors() puts beside it.
[[nodiscard]] bool is_readable(const SafetensorsFile& file, const SafetensorsEntry& entry);
// The scales of such an I8 tensor; null where they are missing, or not one for each row.
[[nodiscard]] const SafetensorsEntry* scales_of(const SafetensorsFile& file, const SafetensorsEntry& entry);
// Whether it is the tensor of scales of another one.
[[nodiscard]] bool are_scales(const SafetensorsFile& file, const SafetensorsEntry& entry);
// All numbers, exactly widened; those of I8 times the scale of their row, rounded once.
[[nodiscard]] std::vector<float> widened(const SafetensorsFile& file, const SafetensorsEntry& entry);

}  // namespace headlight::models
