#include "headlight/models/gguf.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "files/input_file.h"
#include "headlight/models/errors.h"
#include "models/gguf_header.h"
#include "models/gguf_split.h"
#include "models/stored_weight.h"

namespace headlight::models {
namespace {

// f(number of a type) of a value of that type; false of what is no number.
template <class Function>
bool with_number(GgufType type, const std::byte* from, const Function& f) {
  const auto call = [&](auto value) {
    f(read_number<decltype(value)>(from));
    return true;
  };
  switch (type) {
    case GgufType::uint8:
      return call(std::uint8_t());
    case GgufType::int8:
      return call(std::int8_t());
    case GgufType::uint16:
      return call(std::uint16_t());
    case GgufType::int16:
      return call(std::int16_t());
    case GgufType::uint32:
      return call(std::uint32_t());
    case GgufType::int32:
      return call(std::int32_t());
    case GgufType::uint64:
      return call(std::uint64_t());
    case GgufType::int64:
      return call(std::int64_t());
    case GgufType::float32:
      return call(float());
    case GgufType::float64:
      return call(double());
    case GgufType::boolean:
    case GgufType::string:
    case GgufType::array:
      break;
  }
  return false;
}

std::optional<std::int64_t> integer_at(GgufType type, const std::byte* from) {
  std::optional<std::int64_t> found;
  (void)with_number(type, from, [&](auto value) {
    if constexpr (std::is_integral_v<decltype(value)>) {
      if (std::in_range<std::int64_t>(value)) found = static_cast<std::int64_t>(value);
    }
  });
  return found;
}

std::optional<double> number_at(GgufType type, const std::byte* from) {
  std::optional<double> found;
  (void)with_number(type, from, [&](auto value) { found = static_cast<double>(value); });
  return found;
}

constexpr std::size_t kTypeBytes = sizeof(std::uint32_t), kLengthBytes = sizeof(std::uint64_t);

// All elements of an array of `count` from there, by at(type, place); none where one is none.
template <class T, class At>
std::optional<std::vector<T>> elements(GgufType type, std::uint64_t count, const std::byte* from, At at) {
  std::vector<T> found;
  if (count == 0) return found;
  const std::uint64_t each = size_of(type);
  if (each == 0 || !at(type, from)) return std::nullopt;
  found.reserve(static_cast<std::size_t>(count));
  for (std::uint64_t n = 0; n < count; ++n, from += each) {
    const std::optional<T> one = at(type, from);
    if (!one) return std::nullopt;
    found.push_back(*one);
  }
  return found;
}

std::string_view string_from(const std::byte* at) noexcept {
  const auto length = static_cast<std::size_t>(read_number<std::uint64_t>(at));
  return {reinterpret_cast<const char*>(at + kLengthBytes), length};
}

}  // namespace

GgufType GgufValue::type() const noexcept { return static_cast<GgufType>(read_number<std::uint32_t>(at_)); }

GgufType GgufValue::element_type() const noexcept {
  if (type() != GgufType::array) return GgufType::uint8;
  return static_cast<GgufType>(read_number<std::uint32_t>(at_ + kTypeBytes));
}

std::uint64_t GgufValue::size() const noexcept {
  return type() == GgufType::array ? read_number<std::uint64_t>(at_ + 2 * kTypeBytes) : 0;
}

std::optional<std::int64_t> GgufValue::integer() const noexcept { return integer_at(type(), at_ + kTypeBytes); }
std::optional<double> GgufValue::number() const noexcept { return number_at(type(), at_ + kTypeBytes); }

std::optional<bool> GgufValue::boolean() const noexcept {
  if (type() != GgufType::boolean) return std::nullopt;
  return at_[kTypeBytes] == std::byte{1};
}

std::optional<std::string_view> GgufValue::string() const noexcept {
  return type() == GgufType::string ? std::optional(string_from(at_ + kTypeBytes)) : std::nullopt;
}

std::optional<std::vector<std::int64_t>> GgufValue::integers() const {
  if (type() != GgufType::array) return std::nullopt;
  return elements<std::int64_t>(element_type(), size(), at_ + 2 * kTypeBytes + kLengthBytes, integer_at);
}

std::optional<std::vector<double>> GgufValue::numbers() const {
  if (type() != GgufType::array) return std::nullopt;
  return elements<double>(element_type(), size(), at_ + 2 * kTypeBytes + kLengthBytes, number_at);
}

std::optional<std::vector<std::string_view>> GgufValue::strings() const {
  const std::uint64_t count = size();
  if (type() != GgufType::array || (element_type() != GgufType::string && count != 0)) return std::nullopt;
  std::vector<std::string_view> found;
  found.reserve(static_cast<std::size_t>(count));
  const std::byte* at = at_ + 2 * kTypeBytes + kLengthBytes;
  for (std::uint64_t n = 0; n < count; ++n) {
    found.push_back(string_from(at));
    at += kLengthBytes + found.back().size();
  }
  return found;
}

struct GgufFile::State {
  State(std::string path_, std::shared_ptr<files::InputFile> file, std::span<const std::byte> bytes)
      : path(std::move(path_)), files{{std::move(file), bytes}}, header(path, bytes) {}

  // The file that holds a tensor, which keeps its mapping.
  [[nodiscard]] const std::shared_ptr<files::InputFile>& owner_of(const GgufTensor& tensor) const noexcept {
    const auto holds = [&](const Mapped& one) {
      return tensor.bytes.data() >= one.bytes.data() && tensor.bytes.data() < one.bytes.data() + one.bytes.size();
    };
    const auto found = std::find_if(files.begin(), files.end(), holds);
    return (found == files.end() ? files.front() : *found).file;
  }

  struct Mapped {
    std::shared_ptr<files::InputFile> file;  // none where the bytes are somebody else's
    std::span<const std::byte> bytes;
  };
  std::string path;
  std::vector<Mapped> files;
  GgufHeader header;  // of the first, and the tensors of all
  // Of the others: where the shapes of their tensors lie, in memory that moves along.
  std::vector<std::vector<std::int64_t>> more_extents{};
  std::map<std::string_view, std::vector<float>> converted;
};

GgufFile::GgufFile(const std::string& path) {
  auto file = std::make_shared<files::InputFile>(path);
  const std::span<const std::byte> bytes = file->map();
  state_ = std::make_unique<State>(path, std::move(file), bytes);
}

GgufFile::GgufFile(std::string_view name, std::span<const std::byte> bytes)
    : state_(std::make_unique<State>(std::string(name), nullptr, bytes)) {}

GgufFile::GgufFile(std::vector<GgufFile> splits) {
  if (splits.empty()) throw std::invalid_argument("models::GgufFile: splits is empty, expected one file or more");
  std::size_t count = 0;
  for (std::size_t number = 0; number < splits.size(); ++number) {
    if (splits[number].state_ == nullptr) {
      throw std::invalid_argument("models::GgufFile: splits[" + std::to_string(number) +
                                  "] was moved from, expected an open file");
    }
    count += splits[number].tensors().size();
  }
  state_ = std::move(splits.front().state_);
  std::vector<GgufTensor>& tensors = state_->header.tensors;
  tensors.reserve(count);
  for (std::size_t number = 1; number < splits.size(); ++number) {
    State& other = *splits[number].state_;
    tensors.insert(tensors.end(), other.header.tensors.begin(), other.header.tensors.end());
    other.header.tensors = {};
    std::move(other.files.begin(), other.files.end(), std::back_inserter(state_->files));
    state_->more_extents.push_back(std::move(other.header.extents));
    std::move(other.more_extents.begin(), other.more_extents.end(), std::back_inserter(state_->more_extents));
  }
  std::sort(tensors.begin(), tensors.end(), [](const GgufTensor& a, const GgufTensor& b) { return a.name < b.name; });
  const auto twice = std::adjacent_find(tensors.begin(), tensors.end(),
                                        [](const GgufTensor& a, const GgufTensor& b) { return a.name == b.name; });
  if (twice != tensors.end()) {
    throw FileError(path(), "holds the tensor " + in_quotes(twice->name) + " in two of its files");
  }
}

GgufFile GgufFile::whole(const std::string& path) {
  return join_splits(GgufFile(path), [](const std::string& other) { return GgufFile(other); });
}

GgufFile::~GgufFile() = default;
GgufFile::GgufFile(GgufFile&&) noexcept = default;
GgufFile& GgufFile::operator=(GgufFile&&) noexcept = default;

const std::string& GgufFile::path() const noexcept { return state_->path; }
std::span<const GgufEntry> GgufFile::metadata() const noexcept { return state_->header.metadata; }
std::span<const GgufTensor> GgufFile::tensors() const noexcept { return state_->header.tensors; }

const GgufValue* GgufFile::find_value(std::string_view key) const noexcept {
  const std::vector<GgufEntry>& all = state_->header.metadata;
  const auto found = std::lower_bound(all.begin(), all.end(), key,
                                      [](const GgufEntry& entry, std::string_view of) { return entry.key < of; });
  return found == all.end() || found->key != key ? nullptr : &found->value;
}

const GgufTensor* GgufFile::find(std::string_view name) const noexcept {
  const std::vector<GgufTensor>& all = state_->header.tensors;
  const auto found = std::lower_bound(all.begin(), all.end(), name,
                                      [](const GgufTensor& tensor, std::string_view of) { return tensor.name < of; });
  return found == all.end() || found->name != name ? nullptr : &*found;
}

namespace {

const GgufTensor& readable(const GgufFile& file, std::string_view name) {
  const GgufTensor* const tensor = file.find(name);
  if (tensor == nullptr) throw FileError(file.path(), "lacks the tensor " + in_quotes(name));
  if (tensor->format) return *tensor;
  std::string known;
  for (const StorageFormatInfo& of : storage_formats()) {
    if (of.gguf >= 0) known.append(known.empty() ? "" : ", ").append(of.gguf_name);
  }
  throw FileError(file.path(), "tensor " + in_quotes(name) + " has the type " + std::to_string(tensor->type) +
                                   ", expected one of " + known);
}

StoredNumbers numbers_of(const GgufTensor& tensor) noexcept {
  const StorageFormatInfo& of = info(*tensor.format);
  return {*tensor.format, tensor.bytes.data(), static_cast<std::int64_t>(tensor.bytes.size()) / of.bytes * of.numbers};
}

std::vector<std::int64_t> shape_of(const GgufTensor& tensor) { return {tensor.shape().begin(), tensor.shape().end()}; }

bool is_aligned(const StoredNumbers& numbers) noexcept {
  return reinterpret_cast<std::uintptr_t>(numbers.data) % info(numbers.format).alignment == 0;
}

}  // namespace

WeightView GgufFile::stored(std::string_view name) {
  const GgufTensor& tensor = readable(*this, name);
  const StoredNumbers numbers = numbers_of(tensor);
  if (numbers.format == StorageFormat::float32 || !is_aligned(numbers)) return float32(name);
  return {.shape = shape_of(tensor),
          .owner = state_->owner_of(tensor),
          .stored = numbers,
          .let_go = state_->owner_of(tensor) != nullptr ? &files::let_go : nullptr};
}

WeightView GgufFile::float32(std::string_view name) {
  const GgufTensor& tensor = readable(*this, name);
  const StoredNumbers numbers = numbers_of(tensor);
  if (numbers.format == StorageFormat::float32 && is_aligned(numbers)) {
    const auto* const values = static_cast<const float*>(numbers.data);
    return {shape_of(tensor),
            {values, static_cast<std::size_t>(numbers.count)},
            state_->owner_of(tensor),
            {},
            state_->owner_of(tensor) != nullptr ? &files::let_go : nullptr};
  }
  auto found = state_->converted.find(tensor.name);
  if (found == state_->converted.end()) {
    const std::int64_t columns = tensor.shape().empty() ? 1 : tensor.shape().back();
    found = state_->converted.emplace(tensor.name, floats_of(numbers, columns)).first;
  }
  return {shape_of(tensor), found->second};
}

Weights GgufFile::weights() {
  Weights all;
  for (const GgufTensor& tensor : tensors()) {
    if (tensor.format) all.emplace(tensor.name, stored(tensor.name));
  }
  return all;
}

}  // namespace headlight::models
