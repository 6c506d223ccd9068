#include "models/stored_weight.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "headlight/models/errors.h"
#include "headlight/storage_types.h"

namespace headlight::models {
namespace {

constexpr float kLargestInteger = 127.0f;

[[noreturn]] void fail(const std::string& name, const std::string& what) {
  throw std::invalid_argument("write_safetensors: tensor " + in_quotes(name) + " " + what);
}

void check_shape(const std::string& name, const WeightView& weight) {
  std::uint64_t count = 1;
  bool fits = name != "__metadata__";
  for (const std::int64_t extent : weight.shape) {
    fits = fits && extent >= 0 && !__builtin_mul_overflow(count, static_cast<std::uint64_t>(extent), &count);
  }
  if (fits && count == weight.values.size()) return;
  fail(name,
       "has " + std::to_string(weight.values.size()) + " values, which its shape does not say, or a reserved name");
}

std::string_view dtype_of(NumberType type) {
  switch (type) {
    case NumberType::float32:
      return "F32";
    case NumberType::bfloat16:
      return "BF16";
    case NumberType::float16:
      return "F16";
    case NumberType::int8:
      return "I8";
    case NumberType::int4:
      break;
  }
  throw std::invalid_argument("write_safetensors: weights are of type " + std::string(name(type)) +
                              ", expected float32, bfloat16, float16 or int8");
}

// The scale of a row as PackedMatrix has it.
float scale_of(std::span<const float> row) {
  float most = 0;
  for (const float value : row) most = std::max(most, std::abs(value));
  return std::max(most / kLargestInteger, 0x1p-126f);
}

// As it is written. Of a row that is read again the largest number is 127 scales, and 127 scales / 127 are, rounded, in
// one case of 129 the scale's neighbour (of all floats), which is what this gives; it gives that one itself again. So
// the numbers of a file, rounded to integers again, have the integers and the scales of the file.
float stable(float scale) {
  const float most = scale * kLargestInteger;
  return std::isfinite(most) ? most / kLargestInteger : std::nextafter(scale, 0.0f);
}

// Hands the numbers over in pieces, each made of some of the values.
template <class Stored, class Make>
void write_in_pieces(AtomicFile& file, std::span<const float> values, Make make) {
  std::array<Stored, 4096> piece;
  for (std::size_t at = 0; at < values.size(); at += piece.size()) {
    const std::size_t count = std::min(piece.size(), values.size() - at);
    for (std::size_t n = 0; n < count; ++n) piece[n] = make(at + n);
    file.write(piece.data(), count * sizeof(Stored));
  }
}

template <class Stored>
void widen_into(const SafetensorsEntry& entry, std::vector<float>& values) {
  for (std::size_t n = 0; n < values.size(); ++n) {
    Stored stored;
    std::memcpy(&stored, entry.bytes.data() + n * sizeof stored, sizeof stored);
    values[n] = static_cast<float>(stored);
  }
}

}  // namespace

StoredWeight::StoredWeight(const std::string& name, const WeightView& weight, NumberType type)
    : weight_(weight), type_(weight.shape.size() < 2 ? NumberType::float32 : type) {
  check_shape(name, weight);
  parts_.push_back({name, dtype_of(type_), weight.shape, weight.values.size() * bytes_of(type_)});
  if (type_ != NumberType::int8) return;
  find_scales();
  std::vector<std::int64_t> shape = weight.shape;
  shape.back() = 1;
  parts_.push_back({name + std::string(kScaleSuffix), "F32", std::move(shape), scales_.size() * sizeof(float)});
}

void StoredWeight::find_scales() {
  std::int64_t rows = 1;
  for (std::size_t axis = 0; axis + 1 < weight_.shape.size(); ++axis) rows *= weight_.shape[axis];
  const auto columns = static_cast<std::size_t>(weight_.shape.back());
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto values = weight_.values.subspan(static_cast<std::size_t>(row) * columns, columns);
    if (!std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); })) {
      fail(parts_.front().name, "holds a NaN or an infinity in row " + std::to_string(row) + ", which int8 has not");
    }
    scales_.push_back(scale_of(values));
  }
}

void StoredWeight::write(AtomicFile& file) const {
  const std::span<const float> values = weight_.values;
  switch (type_) {
    case NumberType::float32:
      return file.write(values.data(), values.size_bytes());
    case NumberType::bfloat16:
      return write_in_pieces<BFloat16>(file, values, [&](std::size_t n) { return BFloat16(values[n]); });
    case NumberType::float16:
      return write_in_pieces<Float16>(file, values, [&](std::size_t n) { return Float16(values[n]); });
    default:
      break;
  }
  const auto columns = static_cast<std::size_t>(weight_.shape.back());
  write_in_pieces<std::int8_t>(file, values, [&](std::size_t n) {
    return static_cast<std::int8_t>(std::nearbyint(values[n] * (1 / scales_[n / columns])));
  });
  write_in_pieces<float>(file, scales_, [&](std::size_t row) { return stable(scales_[row]); });
}

const SafetensorsEntry* scales_of(const SafetensorsFile& file, const SafetensorsEntry& entry) {
  if (entry.dtype != "I8" || entry.shape.empty()) return nullptr;
  const SafetensorsEntry* const scales = file.find(entry.name + std::string(kScaleSuffix));
  if (scales == nullptr || scales->dtype != "F32") return nullptr;
  std::vector<std::int64_t> rows = entry.shape;
  rows.back() = 1;
  return scales->shape == rows ? scales : nullptr;
}

bool are_scales(const SafetensorsFile& file, const SafetensorsEntry& entry) {
  if (!entry.name.ends_with(kScaleSuffix)) return false;
  const std::string name = entry.name.substr(0, entry.name.size() - kScaleSuffix.size());
  const SafetensorsEntry* const scaled = file.find(name);
  return scaled != nullptr && scales_of(file, *scaled) == &entry;
}

bool is_readable(const SafetensorsFile& file, const SafetensorsEntry& entry) {
  return entry.dtype == "F32" || entry.dtype == "F16" || entry.dtype == "BF16" || scales_of(file, entry) != nullptr;
}

std::vector<float> widened(const SafetensorsFile& file, const SafetensorsEntry& entry) {
  std::size_t count = 1;
  for (const std::int64_t extent : entry.shape) count *= static_cast<std::size_t>(extent);
  std::vector<float> values(count);
  if (entry.dtype == "F16") {
    widen_into<Float16>(entry, values);
  } else if (entry.dtype == "BF16") {
    widen_into<BFloat16>(entry, values);
  } else if (entry.dtype == "I8") {
    widen_into<std::int8_t>(entry, values);
    const SafetensorsEntry& scales = *scales_of(file, entry);
    const auto columns = static_cast<std::size_t>(entry.shape.back());
    for (std::size_t n = 0; n < count; ++n) {
      float scale = 0;
      std::memcpy(&scale, scales.bytes.data() + n / columns * sizeof scale, sizeof scale);
      values[n] *= scale;
    }
  } else {
    widen_into<float>(entry, values);
  }
  return values;
}

}  // namespace headlight::models
