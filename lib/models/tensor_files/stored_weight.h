// A weight as it lies in a safetensors file: its numbers as they are, in 16 bits, or as integers of 8 or 4 bits and
// scales.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
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
  // The bytes of numbers (0) or scales (1).
  void write(AtomicFile& file, std::size_t part) const;

 private:
  void find_scales();
  [[nodiscard]] int integer(float value, std::size_t row, std::int64_t k) const;
  void write_as_it_is(AtomicFile& file, std::size_t part) const;
  void write_numbers(AtomicFile& file) const;

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

// Weights as one, the rows of each above those of the next: projections that a file keeps in one tensor.
class StoredTensor {
 public:
  // As StoredWeight, of one weight or more. Without a type they are as they are stored if all are in the same format,
  // else float32. Throws std::invalid_argument for weights whose rows differ in shape, too.
  StoredTensor(const std::string& name, std::span<const WeightView> weights, std::optional<NumberType> type);

  [[nodiscard]] std::span<const StoredWeight::Part> parts() const noexcept { return parts_; }
  // The bytes of all parts, one after another.
  void write(AtomicFile& file) const;

 private:
  std::vector<StoredWeight> weights_;
  std::vector<std::int64_t> shape_;
  std::vector<StoredWeight::Part> parts_;
};

// By name: the weights of each tensor of a file.
using StoredTensors = std::map<std::string, std::vector<WeightView>, std::less<>>;

// Each of one weight.
[[nodiscard]] StoredTensors one_by_one(const Weights& weights);

// write_safetensors(), and without a type write_safetensors_as_stored(), of such tensors.
void write_tensors(const std::string& path, const StoredTensors& tensors,
                   const std::map<std::string, std::string>& metadata, std::optional<NumberType> type);

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
