#include "headlight/models/gguf.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <stdexcept>
#include <utility>

#include "files/input_file.h"
#include "headlight/models/errors.h"
#include "models/gguf/array.h"
#include "models/gguf/header.h"
#include "models/gguf/split.h"
#include "models/tensor_files/stored_weight.h"
#include "runtime/list_text.h"

namespace headlight::models {
GgufType GgufValue::type() const noexcept { return static_cast<GgufType>(read_number<std::uint32_t>(bytes_.data())); }

std::span<const std::byte> GgufValue::behind_type() const noexcept { return bytes_.subspan(sizeof(std::uint32_t)); }

GgufType GgufValue::element_type() const noexcept { return GgufArray(*this).type(); }
std::uint64_t GgufValue::size() const noexcept { return GgufArray(*this).size(); }

std::optional<std::int64_t> GgufValue::integer() const noexcept { return gguf_integer(type(), behind_type()); }
std::optional<double> GgufValue::number() const noexcept { return gguf_number(type(), behind_type()); }

std::optional<bool> GgufValue::boolean() const noexcept {
  if (type() != GgufType::boolean) return std::nullopt;
  return behind_type()[0] == std::byte{1};
}

std::optional<std::string_view> GgufValue::string() const noexcept {
  return type() == GgufType::string ? std::optional(gguf_string(behind_type())) : std::nullopt;
}

std::optional<std::vector<std::int64_t>> GgufValue::integers() const {
  const GgufArray array(*this);
  if (type() != GgufType::array || !array.has_integers()) return std::nullopt;
  std::vector<std::int64_t> found;
  found.reserve(array.size());
  for (std::size_t n = 0; n < array.size(); ++n) found.push_back(array.integer(n).value_or(0));
  return found;
}

std::optional<std::vector<double>> GgufValue::numbers() const {
  const GgufArray array(*this);
  if (type() != GgufType::array || !array.has_numbers()) return std::nullopt;
  std::vector<double> found;
  found.reserve(array.size());
  for (std::size_t n = 0; n < array.size(); ++n) found.push_back(*array.number(n));
  return found;
}

std::optional<std::vector<std::string_view>> GgufValue::strings() const {
  const GgufArray array(*this);
  if (type() != GgufType::array || !array.has_strings()) return std::nullopt;
  std::vector<std::string_view> found;
  found.reserve(array.size());
  for (const std::string_view one : array.strings()) found.push_back(one);
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
std::uint64_t GgufFile::bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (const State::Mapped& one : state_->files) bytes += one.bytes.size();
  return bytes;
}
std::span<const GgufEntry> GgufFile::metadata() const noexcept { return state_->header.metadata; }
std::span<const GgufTensor> GgufFile::tensors() const noexcept { return state_->header.tensors; }

std::optional<GgufValue> GgufFile::find_value(std::string_view key) const noexcept {
  const std::vector<GgufEntry>& all = state_->header.metadata;
  const auto found = std::lower_bound(all.begin(), all.end(), key,
                                      [](const GgufEntry& entry, std::string_view of) { return entry.key() < of; });
  return found == all.end() || found->key() != key ? std::nullopt : std::optional(found->value());
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
    if (of.gguf >= 0) runtime::append_item(known, of.gguf_name);
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
