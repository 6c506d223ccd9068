// A weight as it lies in a safetensors file: its numbers as they are, in 16 bits, or as integers of 8 or 4 bits and
// scales.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/models/atomic_file.h"
#include "headlight/models/safetensors.h"
#include "headlight/number_type.h"
#include "headlight/parameters.h"
#include "headlight/storage_format.h"

namespace headlight::models {

// Whose name a tensor of scales has: "layer.weight_scale" is that of "layer.weight".
inline constexpr std::string_view kScaleSuffix = "_scale";
// And the tensor that says of how many numbers those of int4 are.
inline constexpr std::string_view kShapeSuffix = "_shape";

// One weight on its way into a file, as one to three tensors. It reads the weight while it is written: numbers that are
// stored elsewhere a row at a time.
class StoredWeight {
 public:
  // One tensor of the file.
  struct Part {
    std::string name;
    std::string_view dtype;
    std::vector<std::int64_t> shape;
    std::uint64_t bytes;
  };

  // `type` is that of weights with two axes or more; none: the one that they are stored in, float32 where that is no
  // format of safetensors. Throws std::invalid_argument for one that no file can hold, a shape that is not that of the
  // numbers, and numbers that are not finite where they would become integers.
  StoredWeight(const std::string& name, const WeightView& weight, std::optional<NumberType> type);

  [[nodiscard]] std::span<const Part> parts() const noexcept { return parts_; }
  // The bytes of all parts, one after another.
  void write(AtomicFile& file) const;

 private:
  void find_scales();
  [[nodiscard]] int integer(float value, std::size_t row, std::int64_t k) const;
  void write_as_it_is(AtomicFile& file) const;

  WeightView weight_;
  NumberType type_;
  bool as_it_is_ = false;  // its bytes are those of the file
  std::size_t count_ = 0;  // of numbers
  std::vector<Part> parts_;
  // Of integers: numbers of a row of the last axis, how many of them have a scale together, scales of a row; all
  // scales.
  std::int64_t columns_ = 1, per_scale_ = 1, scales_of_row_ = 0;
  std::vector<float> scales_;
};

// The format of its numbers: F32, F16 and BF16, and I8 and U8 with what write_safetensors() puts beside them; else
// none.
[[nodiscard]] std::optional<StorageFormat> format_in(const SafetensorsFile& file, const SafetensorsEntry& entry);
// The shape of its numbers: the tensor's, but for int4.
[[nodiscard]] std::vector<std::int64_t> shape_in(const SafetensorsFile& file, const SafetensorsEntry& entry);
// Whether it holds the scales or the shape of another tensor.
[[nodiscard]] bool belongs_to_another(const SafetensorsFile& file, const SafetensorsEntry& entry);
// Numbers in rows of so many columns as floats, at whatever address they lie.
[[nodiscard]] std::vector<float> floats_of(const StoredNumbers& numbers, std::int64_t columns);
// Its numbers of that format where they lie, and as floats.
[[nodiscard]] StoredNumbers numbers_in(const SafetensorsFile& file, const SafetensorsEntry& entry,
                                       StorageFormat format);
[[nodiscard]] std::vector<float> widened(const SafetensorsFile& file, const SafetensorsEntry& entry,
                                         StorageFormat format);

}  // namespace headlight::models
