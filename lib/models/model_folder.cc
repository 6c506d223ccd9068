#include "models/model_folder.h"

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "files/input_file.h"
#include "headlight/models/errors.h"
#include "models/tensor_files/safetensors_index.h"

namespace headlight::models {

using files::JsonValue;

std::string path_in(const std::string& folder, const std::string& file) {
  return folder.empty() || folder.ends_with('/') ? folder + file : folder + "/" + file;
}

ModelFolder ModelFolder::within(const std::string& folder) const {
  ModelFolder inner = *this;
  if (folder.empty()) return inner;
  inner.folder_ = path_in(folder_, folder);
  inner.within_ = within_ + folder + "/";
  return inner;
}

const FileInMemory* ModelFolder::find(const std::string& file) const {
  const std::string name = within_ + file;
  for (const FileInMemory& each : files_) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

const FileInMemory& ModelFolder::file_in_memory(const std::string& file) const {
  const FileInMemory* const found = find(file);
  if (found == nullptr) throw FileError(path(file), "is not there");
  return *found;
}

bool ModelFolder::has(const std::string& file) const {
  if (in_memory_) return find(file) != nullptr;
  std::error_code error;
  const bool is_there = std::filesystem::exists(path(file), error);
  if (error) throw FileError(path(file), "cannot be looked for: " + error.message());
  return is_there;
}

void ModelFolder::fail(const std::string& message) const { throw FileError(folder_.empty() ? "." : folder_, message); }

std::string ModelFolder::text(const std::string& file, std::uint64_t limit) const {
  if (!in_memory_) return files::read_text(path(file), limit);
  const std::span<const std::byte> bytes = file_in_memory(file).bytes;
  if (bytes.size() > limit) {
    throw FileError(path(file),
                    "has " + std::to_string(bytes.size()) + " bytes, expected at most " + std::to_string(limit));
  }
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::function<std::string()> ModelFolder::kept_text(const std::string& file) const {
  if (in_memory_) return [copy = text(file, JsonValue::kLargestFile)] { return copy; };
  auto mapped = std::make_shared<files::InputFile>(path(file));
  const std::span<const std::byte> bytes = mapped->map();
  return [mapped = std::move(mapped), bytes] {
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
}

JsonValue ModelFolder::json(const std::string& file, std::uint64_t limit) const {
  return JsonValue::parse_object(path(file), text(file, limit));
}

JsonValue ModelFolder::json_array(const std::string& file) const {
  return JsonValue::parse_array(path(file), text(file, kLargestConfig));
}

SafetensorsFile ModelFolder::safetensors(const std::string& file) const {
  const std::string index = file + std::string(kIndexSuffix);
  if (has(file)) return one_safetensors(file);
  if (!has(index)) {
    constexpr const char* kOfPyTorch = "pytorch_model.bin";
    fail("holds no " + file + " and no " + index + ", expected one of them" +
         (has(kOfPyTorch) ? std::string("; ") + kOfPyTorch + " is not read" : ""));
  }
  return join_shards(parse_safetensors_index(path(index), text(index, JsonValue::kLargestFile)),
                     [this](const std::string& shard) { return one_safetensors(shard); });
}

SafetensorsFile ModelFolder::one_safetensors(const std::string& file) const {
  if (!in_memory_) return SafetensorsFile(path(file));
  return {path(file), file_in_memory(file).bytes};
}

}  // namespace headlight::models
