#include "headlight/models/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "files/input_file.h"
#include "headlight/models/atomic_file.h"
#include "headlight/models/errors.h"
#include "models/json_text.h"
#include "models/tensor_files/safetensors_header.h"
#include "models/tensor_files/stored_weight.h"

namespace headlight::models {
namespace {

static_assert(std::endian::native == std::endian::little, "the mapped bytes are used as they are");

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kLongestHeader = 100'000'000;  // what the reference implementation allows

// Written data begins at a multiple of this, so that a map of the file gives aligned vectors.
constexpr std::size_t kDataAlignment = 64;

}  // namespace

struct SafetensorsFile::State {
  std::string path;
  std::vector<SafetensorsEntry> entries;
  // What keeps the bytes of entries, from one on, and the path of their file; no file where they are somebody else's.
  struct Shard {
    std::size_t first;
    std::shared_ptr<files::InputFile> file;
    std::string path;
  };
  std::vector<Shard> shards;           // by `first`, which begins with 0
  std::vector<std::uint32_t> by_name;  // places in `entries`

  [[nodiscard]] const Shard& shard_of(std::size_t place) const noexcept {
    return *std::prev(std::upper_bound(shards.begin(), shards.end(), place,
                                       [](std::size_t wanted, const Shard& shard) { return wanted < shard.first; }));
  }
  std::map<std::string, std::string> metadata;
  std::map<std::string_view, std::vector<float>> converted;
};

SafetensorsFile::SafetensorsFile(const std::string& path) : state_(std::make_unique<State>()) {
  state_->path = path;
  const auto file = std::make_shared<files::InputFile>(path);
  parse(file->map());
  state_->shards.push_back({0, file, path});
}

SafetensorsFile::SafetensorsFile(std::string_view name, std::span<const std::byte> bytes)
    : state_(std::make_unique<State>()) {
  state_->path = name;
  parse(bytes);
  state_->shards.push_back({0, nullptr, state_->path});
}

SafetensorsFile::SafetensorsFile(std::string_view name, std::vector<SafetensorsFile> shards)
    : state_(std::make_unique<State>()) {
  state_->path = name;
  std::size_t count = 0;
  for (const SafetensorsFile& shard : shards) count += shard.tensors().size();
  state_->entries.reserve(count);  // which stay where they are
  for (SafetensorsFile& shard : shards) {
    State& of = *shard.state_;
    if (&shard == shards.data()) state_->metadata = std::move(of.metadata);
    for (State::Shard& one : of.shards) {
      state_->shards.push_back({state_->entries.size() + one.first, std::move(one.file), std::move(one.path)});
    }
    std::move(of.entries.begin(), of.entries.end(), std::back_inserter(state_->entries));
  }
  const std::vector<SafetensorsEntry>& all = state_->entries;
  state_->by_name = places_by_name(all);
  const auto twice = std::adjacent_find(state_->by_name.begin(), state_->by_name.end(),
                                        [&](std::uint32_t a, std::uint32_t b) { return all[a].name == all[b].name; });
  if (twice != state_->by_name.end()) {
    const std::size_t second = *std::next(twice);
    throw FileError(state_->shard_of(second).path,
                    "holds the tensor " + in_quotes(all[second].name) + ", which another file holds, too");
  }
}

void SafetensorsFile::parse(std::span<const std::byte> bytes) {
  const std::string& path = state_->path;
  const std::uint64_t size = bytes.size();
  if (size < kLengthBytes) {
    throw FileError(path, "has " + std::to_string(size) + " bytes, expected at least the 8 of the header length");
  }
  std::uint64_t header_size = 0;
  std::memcpy(&header_size, bytes.data(), kLengthBytes);
  if (header_size > kLongestHeader) {
    throw FileError(path, "the header length is " + std::to_string(header_size) + ", expected at most " +
                              std::to_string(kLongestHeader));
  }
  if (header_size > size - kLengthBytes) {
    throw FileError(path, "the header length is " + std::to_string(header_size) + ", but only " +
                              std::to_string(size - kLengthBytes) + " bytes follow");
  }
  const auto* json = reinterpret_cast<const char*>(bytes.data() + kLengthBytes);
  const auto data = bytes.subspan(static_cast<std::size_t>(kLengthBytes + header_size));
  SafetensorsHeader header = parse_safetensors_header(path, {json, static_cast<std::size_t>(header_size)}, data);
  state_->metadata = std::move(header.metadata);
  state_->entries = std::move(header.entries);
  state_->by_name = std::move(header.by_name);
}

SafetensorsFile::~SafetensorsFile() = default;
SafetensorsFile::SafetensorsFile(SafetensorsFile&&) noexcept = default;
SafetensorsFile& SafetensorsFile::operator=(SafetensorsFile&&) noexcept = default;

const std::string& SafetensorsFile::path() const noexcept { return state_->path; }
std::span<const SafetensorsEntry> SafetensorsFile::tensors() const noexcept { return state_->entries; }
const std::map<std::string, std::string>& SafetensorsFile::metadata() const noexcept { return state_->metadata; }

const SafetensorsEntry* SafetensorsFile::find(std::string_view name) const noexcept {
  const std::vector<SafetensorsEntry>& all = state_->entries;
  const auto found =
      std::lower_bound(state_->by_name.begin(), state_->by_name.end(), name,
                       [&](std::uint32_t place, std::string_view wanted) { return all[place].name < wanted; });
  return found == state_->by_name.end() || all[*found].name != name ? nullptr : &all[*found];
}

std::shared_ptr<const void> SafetensorsFile::owner_of(const SafetensorsEntry& entry) const noexcept {
  return state_->shard_of(static_cast<std::size_t>(&entry - state_->entries.data())).file;
}

WeightView SafetensorsFile::float32(std::string_view name) {
  const SafetensorsEntry* entry = find(name);
  if (entry == nullptr) throw FileError(path(), "lacks the tensor " + in_quotes(name));
  const std::optional<StorageFormat> format = format_in(*this, *entry);
  if (!format) {
    throw FileError(path(),
                    "tensor " + in_quotes(name) + " has dtype " + entry->dtype +
                        ", expected F32, F16, BF16, or I8 or U8 with what write_safetensors() puts beside it, " +
                        in_quotes(entry->name + std::string(kScaleSuffix)) + " (and of U8 " +
                        in_quotes(entry->name + std::string(kShapeSuffix)) + ")");
  }
  const auto address = reinterpret_cast<std::uintptr_t>(entry->bytes.data());
  if (format == StorageFormat::float32 && address % alignof(float) == 0) {
    return {entry->shape,
            {reinterpret_cast<const float*>(entry->bytes.data()), entry->bytes.size() / sizeof(float)},
            owner_of(*entry),
            {},
            owner_of(*entry) != nullptr ? &files::let_go : nullptr};
  }
  auto found = state_->converted.find(entry->name);
  if (found == state_->converted.end())
    found = state_->converted.emplace(entry->name, widened(*this, *entry, *format)).first;
  return {shape_in(*this, *entry), found->second};
}

WeightView SafetensorsFile::stored(std::string_view name) {
  const SafetensorsEntry* entry = find(name);
  const std::optional<StorageFormat> format = entry == nullptr ? std::nullopt : format_in(*this, *entry);
  if (!format || format == StorageFormat::float32) return float32(name);
  if (reinterpret_cast<std::uintptr_t>(entry->bytes.data()) % info(*format).alignment != 0) return float32(name);
  return {.shape = shape_in(*this, *entry),
          .owner = owner_of(*entry),
          .stored = numbers_in(*this, *entry, *format),
          .let_go = owner_of(*entry) != nullptr ? &files::let_go : nullptr};
}

Weights SafetensorsFile::weights() {
  Weights all;
  for (const auto& entry : state_->entries) {
    if (format_in(*this, entry) && !belongs_to_another(*this, entry)) all.emplace(entry.name, float32(entry.name));
  }
  return all;
}

namespace {

std::string metadata_text(const std::map<std::string, std::string>& metadata) {
  JsonObject members(":", ",");
  for (const auto& [key, value] : metadata) members.add(key, value);
  return std::string("{").append(members.members()).append("}");
}

// {"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}
std::string entry_text(const StoredWeight::Part& part, std::uint64_t begin) {
  std::string text = std::string(R"({"dtype":")").append(part.dtype).append(R"(","shape":[)");
  const char* comma = "";
  for (const std::int64_t extent : part.shape) {
    text.append(comma).append(std::to_string(extent));
    comma = ",";
  }
  text.append(R"(],"data_offsets":[)").append(std::to_string(begin)).append(",");
  return text.append(std::to_string(begin + part.bytes)).append("]}");
}

// The whole header: names, types and places of all tensors.
std::string header_text(std::span<const StoredTensor> tensors, const std::map<std::string, std::string>& metadata) {
  JsonObject header(":", ",");
  std::uint64_t offset = 0;
  try {
    if (!metadata.empty()) header.add_text("__metadata__", metadata_text(metadata));
    for (const StoredTensor& tensor : tensors) {
      for (const StoredWeight::Part& part : tensor.parts()) {
        header.add_text(part.name, entry_text(part, offset));
        offset += part.bytes;
      }
    }
  } catch (const nlohmann::json::exception&) {
    throw std::invalid_argument("write_safetensors: a name or a metadata entry is not UTF-8");
  }
  std::string text = "{";
  text.append(header.members()).append("}");
  text.append((kDataAlignment - (kLengthBytes + text.size()) % kDataAlignment) % kDataAlignment, ' ');
  return text;
}

}  // namespace

void write_tensors(const std::string& path, const StoredTensors& tensors,
                   const std::map<std::string, std::string>& metadata, std::optional<NumberType> type) {
  std::vector<StoredTensor> stored;
  for (const auto& [name, weights] : tensors) {
    stored.emplace_back(name, weights, type);
    for (const StoredWeight::Part& part : stored.back().parts().subspan(1)) {
      if (!tensors.contains(part.name)) continue;
      throw std::invalid_argument("write_safetensors: tensor " + in_quotes(part.name) +
                                  " has the name of the scales or the shape of another");
    }
  }
  const std::string text = header_text(stored, metadata);
  const std::uint64_t length = text.size();
  if (length > kLongestHeader) {
    throw std::invalid_argument("write_safetensors: the header has " + std::to_string(length) +
                                " bytes, expected at most " + std::to_string(kLongestHeader));
  }
  AtomicFile file(path);
  file.write(&length, sizeof length);
  file.write(text.data(), text.size());
  for (const StoredTensor& tensor : stored) tensor.write(file);
  file.commit();
}

void write_safetensors(const std::string& path, const Weights& weights,
                       const std::map<std::string, std::string>& metadata, NumberType type) {
  write_tensors(path, one_by_one(weights), metadata, type);
}

void write_safetensors_as_stored(const std::string& path, const Weights& weights,
                                 const std::map<std::string, std::string>& metadata) {
  write_tensors(path, one_by_one(weights), metadata, std::nullopt);
}

}  // namespace headlight::models
