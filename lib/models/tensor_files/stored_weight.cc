#include "models/tensor_files/stored_weight.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <utility>

#include "headlight/models/errors.h"
#include "headlight/storage_types.h"

namespace headlight::models {
namespace {

// The largest integers of int8 and of int4, and so many numbers of int4 share a scale.
constexpr float kMost8 = 127.0f, kMost4 = 7.0f;
constexpr std::int64_t kGroup = 32;
constexpr int kZeroOf4 = 8;  // which a stored number of int4 is more than the integer that it stands for
constexpr float kLeastScale = 0x1p-126f;

[[noreturn]] void fail(const std::string& name, const std::string& what) {
  throw std::invalid_argument("write_safetensors: tensor " + in_quotes(name) + " " + what);
}

// How many numbers it has; throws where its shape says another number.
std::size_t checked_count(const std::string& name, const WeightView& weight) {
  std::uint64_t count = 1;
  bool fits = name != "__metadata__";
  for (const std::int64_t extent : weight.shape) {
    fits = fits && extent >= 0 && !__builtin_mul_overflow(count, static_cast<std::uint64_t>(extent), &count);
  }
  const auto there = weight.stored ? static_cast<std::size_t>(weight.stored.count) : weight.values.size();
  if (fits && count == there) return there;
  fail(name, "has " + std::to_string(there) + " values, which its shape does not say, or a reserved name");
}

// Its numbers by their place, in ascending order, wherever they lie.
class Numbers {
 public:
  Numbers(const WeightView& weight, std::int64_t columns)
      : stored_(weight.stored), columns_(columns), values_(weight.values), end_(values_.size()) {
    if (stored_) row_.resize(static_cast<std::size_t>(columns));
  }

  float operator[](std::size_t n) {
    if (n >= end_) read(n);
    return values_[n - begin_];
  }
  // Those of a row.
  std::span<const float> row(std::size_t number) {
    const auto columns = static_cast<std::size_t>(columns_);
    if (!stored_) return values_.subspan(number * columns, columns);
    if (columns > 0) read(number * columns);
    return values_;
  }

 private:
  void read(std::size_t n) {
    const auto columns = static_cast<std::size_t>(columns_);
    widen_rows(stored_, columns_, static_cast<std::int64_t>(n / columns), 1, row_.data());
    begin_ = n / columns * columns;
    end_ = begin_ + columns;
    values_ = row_;
  }

  StoredNumbers stored_;
  std::int64_t columns_;
  std::vector<float> row_;
  std::span<const float> values_;
  std::size_t begin_ = 0, end_;
};

std::string_view dtype_of(NumberType type) {
  if (static_cast<std::size_t>(type) < std::size(kNumberTypes)) return info(format_of(type)).safetensors;
  throw std::invalid_argument("write_safetensors: weights are of type " + std::string(name(type)) +
                              ", expected float32, bfloat16, float16, int8 or int4");
}

constexpr std::int64_t divide_up(std::int64_t count, std::int64_t by) { return count / by + (count % by != 0 ? 1 : 0); }

// With another last extent.
std::vector<std::int64_t> with_last(std::vector<std::int64_t> shape, std::int64_t last) {
  shape.back() = last;
  return shape;
}

// Of numbers that share a scale: that scale, as PackedMatrix has it.
float scale_of(std::span<const float> numbers, NumberType type) {
  float most = 0;
  for (const float value : numbers) most = std::max(most, std::abs(value));
  if (type == NumberType::int8) return std::max(most / kMost8, kLeastScale);
  return static_cast<float>(BFloat16(std::max(most / kMost4, kLeastScale)));
}

// As it is written. Of a row that is read again the largest number is 127 scales, and 127 scales / 127 are, rounded, in
// one case of 129 the scale's neighbour (of all floats), which is what this gives; it gives that one itself again. So
// the numbers of a file, rounded to integers again, have the integers and the scales of the file.
float stable(float scale) {
  const float most = scale * kMost8;
  return std::isfinite(most) ? most / kMost8 : std::nextafter(scale, 0.0f);
}

// Hands `count` of them over in pieces, each made of some of the values.
template <class Stored, class Make>
void write_in_pieces(AtomicFile& file, std::size_t count, Make make) {
  std::array<Stored, 4096> piece;
  for (std::size_t at = 0; at < count; at += piece.size()) {
    const std::size_t some = std::min(piece.size(), count - at);
    for (std::size_t n = 0; n < some; ++n) piece[n] = make(at + n);
    file.write(piece.data(), some * sizeof(Stored));
  }
}

template <class Stored>
Stored stored_at(const SafetensorsEntry& entry, std::size_t n) {
  Stored stored;
  std::memcpy(&stored, entry.bytes.data() + n * sizeof stored, sizeof stored);
  return stored;
}

// A tensor beside another one.
const SafetensorsEntry* beside(const SafetensorsFile& file, const SafetensorsEntry& entry, std::string_view suffix) {
  return file.find(entry.name + std::string(suffix));
}

// Whether the tensor of scales has that type and shape.
bool has_scales(const SafetensorsFile& file, const SafetensorsEntry& entry, std::string_view dtype,
                const std::vector<std::int64_t>& shape) {
  const SafetensorsEntry* const scales = beside(file, entry, kScaleSuffix);
  return scales != nullptr && scales->dtype == dtype && scales->shape == shape;
}

// The shape of a weight of int4, as the tensor beside it says; none where that and the bytes do not agree.
std::optional<std::vector<std::int64_t>> shape_of_int4(const SafetensorsFile& file, const SafetensorsEntry& entry) {
  const SafetensorsEntry* const said = beside(file, entry, kShapeSuffix);
  if (entry.dtype != "U8" || entry.shape.empty() || said == nullptr || said->dtype != "I64") return std::nullopt;
  if (said->shape != std::vector<std::int64_t>{static_cast<std::int64_t>(entry.shape.size())}) return std::nullopt;
  std::vector<std::int64_t> shape;
  for (std::size_t axis = 0; axis < entry.shape.size(); ++axis) shape.push_back(stored_at<std::int64_t>(*said, axis));
  if (shape.back() < 0 || with_last(shape, divide_up(shape.back(), 2)) != entry.shape) return std::nullopt;
  if (!has_scales(file, entry, "BF16", with_last(shape, divide_up(shape.back(), kGroup)))) return std::nullopt;
  return shape;
}

}  // namespace

StoredWeight::StoredWeight(const std::string& name, const WeightView& weight, std::optional<NumberType> type)
    : weight_(weight), type_(weight.shape.size() < 2 ? NumberType::float32 : type.value_or(NumberType::float32)) {
  count_ = checked_count(name, weight);
  const auto add = [&](std::string_view suffix, std::string_view dtype, std::vector<std::int64_t> shape,
                       std::size_t bytes_of_number) {
    std::uint64_t bytes = bytes_of_number;
    for (const std::int64_t extent : shape) bytes *= static_cast<std::uint64_t>(extent);
    parts_.push_back({name + std::string(suffix), dtype, std::move(shape), bytes});
  };
  if (!weight.shape.empty()) columns_ = weight.shape.back();
  if (!type && weight.stored && !info(weight.stored.format).safetensors.empty()) {
    as_it_is_ = true;  // the first formats are those types
    type_ = static_cast<NumberType>(weight.stored.format);
  }
  if (type_ != NumberType::int8 && type_ != NumberType::int4) {
    add("", dtype_of(type_), weight.shape, bytes_of(type_));
    return;
  }
  if (weight.shape.empty()) fail(name, "has no axis, expected one or more for " + std::string(headlight::name(type_)));
  if (type_ == NumberType::int8) {  // a row without numbers has a scale all the same
    per_scale_ = std::max<std::int64_t>(columns_, 1);
    scales_of_row_ = 1;
    add("", dtype_of(type_), weight.shape, 1);
    add(kScaleSuffix, "F32", with_last(weight.shape, 1), sizeof(float));
  } else {
    per_scale_ = kGroup;
    scales_of_row_ = divide_up(columns_, kGroup);
    add("", dtype_of(type_), with_last(weight.shape, divide_up(columns_, 2)), 1);
    add(kScaleSuffix, "BF16", with_last(weight.shape, scales_of_row_), sizeof(BFloat16));
    add(kShapeSuffix, "I64", {static_cast<std::int64_t>(weight.shape.size())}, sizeof(std::int64_t));
  }
  if (!as_it_is_) find_scales();
}

void StoredWeight::find_scales() {
  std::int64_t rows = 1;
  for (std::size_t axis = 0; axis + 1 < weight_.shape.size(); ++axis) rows *= weight_.shape[axis];
  Numbers numbers(weight_, columns_);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::span<const float> values = numbers.row(static_cast<std::size_t>(row));
    if (!std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); })) {
      fail(parts_.front().name, "holds a NaN or an infinity in row " + std::to_string(row) + ", which " +
                                    std::string(name(type_)) + " has not");
    }
    for (std::int64_t scale = 0; scale < scales_of_row_; ++scale) {
      const auto first = static_cast<std::size_t>(scale * per_scale_);
      const std::size_t count = std::min(static_cast<std::size_t>(per_scale_), values.size() - first);
      scales_.push_back(scale_of(values.subspan(first, count), type_));
    }
  }
}

// Number k of a row, in units of its scale.
int StoredWeight::integer(float value, std::size_t row, std::int64_t k) const {
  const float scale =
      scales_[row * static_cast<std::size_t>(scales_of_row_) + static_cast<std::size_t>(k / per_scale_)];
  const float integer = std::nearbyint(value * (1 / scale));
  return static_cast<int>(type_ == NumberType::int4 ? std::clamp(integer, -kMost4, kMost4) : integer);
}

void StoredWeight::write_as_it_is(AtomicFile& file, std::size_t part) const {
  const StoredNumbers& stored = weight_.stored;
  file.write(part == 0 ? stored.data : stored.scales, parts_[part].bytes);
}

void StoredWeight::write(AtomicFile& file, std::size_t part) const {
  if (as_it_is_) return write_as_it_is(file, part);
  if (part == 0) return write_numbers(file);
  if (type_ == NumberType::int8) {
    return write_in_pieces<float>(file, scales_.size(), [&](std::size_t row) { return stable(scales_[row]); });
  }
  write_in_pieces<BFloat16>(file, scales_.size(), [&](std::size_t n) { return BFloat16(scales_[n]); });
}

void StoredWeight::write_numbers(AtomicFile& file) const {
  Numbers values(weight_, columns_);
  const auto columns = static_cast<std::size_t>(columns_);
  switch (type_) {
    case NumberType::float32:
      if (!weight_.stored) return file.write(weight_.values.data(), weight_.values.size_bytes());
      return write_in_pieces<float>(file, count_, [&](std::size_t n) { return values[n]; });
    case NumberType::bfloat16:
      return write_in_pieces<BFloat16>(file, count_, [&](std::size_t n) { return BFloat16(values[n]); });
    case NumberType::float16:
      return write_in_pieces<Float16>(file, count_, [&](std::size_t n) { return Float16(values[n]); });
    case NumberType::int8:
      return write_in_pieces<std::int8_t>(file, count_, [&](std::size_t n) {
        return static_cast<std::int8_t>(integer(values[n], n / columns, static_cast<std::int64_t>(n % columns)));
      });
    case NumberType::int4:
      break;
  }
  write_in_pieces<std::uint8_t>(file, parts_[0].bytes, [&](std::size_t n) {
    const auto row_bytes = static_cast<std::size_t>(parts_[0].shape.back());
    const std::size_t row = n / row_bytes, first = row * columns + n % row_bytes * 2;
    const auto k = static_cast<std::int64_t>(n % row_bytes * 2);
    const int lower = integer(values[first], row, k);
    const int upper = k + 1 < columns_ ? integer(values[first + 1], row, k + 1) : 0;
    return static_cast<std::uint8_t>((lower + kZeroOf4) | (upper + kZeroOf4) << 4);
  });
}

StoredTensor::StoredTensor(const std::string& name, std::span<const WeightView> weights,
                           std::optional<NumberType> type) {
  const WeightView& first = weights.front();
  const auto is_like_first = [&](const WeightView& weight) {
    return static_cast<bool>(weight.stored) == static_cast<bool>(first.stored) &&
           weight.stored.format == first.stored.format;
  };
  if (!std::all_of(weights.begin(), weights.end(), is_like_first)) type = type.value_or(NumberType::float32);
  for (const WeightView& weight : weights) {
    weights_.emplace_back(name, weight, type);
    if (weights_.size() == 1) {
      shape_ = weight.shape;
      parts_.assign(weights_[0].parts().begin(), weights_[0].parts().end());
      continue;
    }
    if (shape_.empty() || weight.shape.empty() ||
        !std::equal(shape_.begin() + 1, shape_.end(), weight.shape.begin() + 1, weight.shape.end())) {
      fail(name, "is put together of rows that differ in shape");
    }
    shape_[0] += weight.shape[0];
    for (std::size_t part = 0; part < std::min<std::size_t>(parts_.size(), 2); ++part) {
      parts_[part].shape[0] += weights_.back().parts()[part].shape[0];
      parts_[part].bytes += weights_.back().parts()[part].bytes;
    }
  }
}

void StoredTensor::write(AtomicFile& file) const {
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    if (part == 2) {  // of int4: the shape of all of it
      file.write(shape_.data(), parts_[part].bytes);
      continue;
    }
    for (const StoredWeight& weight : weights_) weight.write(file, part);
  }
}

StoredTensors one_by_one(const Weights& weights) {
  StoredTensors tensors;
  for (const auto& [name, weight] : weights) tensors[name] = {weight};
  return tensors;
}

std::vector<std::int64_t> shape_in(const SafetensorsFile& file, const SafetensorsEntry& entry) {
  return shape_of_int4(file, entry).value_or(entry.shape);
}

namespace {

bool is_int8(const SafetensorsFile& file, const SafetensorsEntry& entry) {
  return entry.dtype == "I8" && !entry.shape.empty() && has_scales(file, entry, "F32", with_last(entry.shape, 1));
}

}  // namespace

bool belongs_to_another(const SafetensorsFile& file, const SafetensorsEntry& entry) {
  const auto belongs = [&](std::string_view suffix, bool to_int8) {
    if (!entry.name.ends_with(suffix)) return false;
    const SafetensorsEntry* const other = file.find(entry.name.substr(0, entry.name.size() - suffix.size()));
    return other != nullptr && ((to_int8 && is_int8(file, *other)) || shape_of_int4(file, *other).has_value());
  };
  return belongs(kScaleSuffix, true) || belongs(kShapeSuffix, false);
}

std::optional<StorageFormat> format_in(const SafetensorsFile& file, const SafetensorsEntry& entry) {
  for (const StorageFormatInfo& of : storage_formats()) {
    if (of.safetensors.empty() || of.safetensors != entry.dtype) continue;
    const bool is_whole = of.format == StorageFormat::int8   ? is_int8(file, entry)
                          : of.format == StorageFormat::int4 ? shape_of_int4(file, entry).has_value()
                                                             : true;
    if (is_whole) return of.format;
  }
  return std::nullopt;
}

StoredNumbers numbers_in(const SafetensorsFile& file, const SafetensorsEntry& entry, StorageFormat format) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape_in(file, entry)) count *= extent;
  const bool has_scales = info(format).beside.has_value();
  return {format, entry.bytes.data(), count, has_scales ? beside(file, entry, kScaleSuffix)->bytes.data() : nullptr};
}

std::vector<float> floats_of(const StoredNumbers& numbers, std::int64_t columns) {
  std::vector<float> values(static_cast<std::size_t>(numbers.count));
  if (values.empty()) return values;
  const StorageFormatInfo& of = info(numbers.format);
  if (reinterpret_cast<std::uintptr_t>(numbers.data) % of.alignment == 0) {
    widen_rows(numbers, columns, 0, numbers.count / columns, values.data());
    return values;
  }
  // In pieces, from memory where they may lie.
  const auto* const from = static_cast<const std::byte*>(numbers.data);
  const auto bytes = static_cast<std::size_t>(of.bytes);
  alignas(float) std::array<std::byte, 4096> piece;
  const std::size_t most = piece.size() / bytes;
  for (std::size_t first = 0; first < values.size(); first += most) {
    const std::size_t count = std::min(most, values.size() - first);
    std::memcpy(piece.data(), from + first * bytes, count * bytes);
    widen_rows({numbers.format, piece.data()}, static_cast<std::int64_t>(count), 0, 1, &values[first]);
  }
  return values;
}

std::vector<float> widened(const SafetensorsFile& file, const SafetensorsEntry& entry, StorageFormat format) {
  const std::vector<std::int64_t> shape = shape_in(file, entry);
  return floats_of(numbers_in(file, entry, format), shape.empty() ? 1 : shape.back());
}

}  // namespace headlight::models
