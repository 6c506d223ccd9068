#include "models/safetensors_index.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "files/input_file.h"
#include "files/json_value.h"
#include "headlight/models/errors.h"

namespace headlight::models {
namespace {

using files::JsonValue;

constexpr const char* kWeightMap = "weight_map";
constexpr std::size_t kLongestName = 255;

// A name within the folder, and nothing that leads out of it.
bool is_plain_name(std::string_view name) noexcept {
  const auto is_special = [](char byte) {
    return byte == '/' || byte == '\\' || static_cast<unsigned char>(byte) < 0x20;
  };
  return !name.empty() && name.size() <= kLongestName && name != "." && name != ".." &&
         std::none_of(name.begin(), name.end(), is_special);
}

}  // namespace

SafetensorsIndex parse_safetensors_index(const std::string& path, const std::string& text) {
  const JsonValue index = JsonValue::parse_object(path, text);
  for (const auto& [key, value] : index.members()) {
    if (key != kWeightMap && key != "metadata") value.fail("is unknown, expected metadata or weight_map");
  }
  (void)index.object("metadata");  // sizes and notes, which files have themselves
  const std::optional<JsonValue> map = index.object(kWeightMap);
  if (!map) index.fail(kWeightMap, "is missing");
  SafetensorsIndex found{path, {}};
  for (const auto& [tensor, shard] : map->members()) {
    const std::optional<std::string_view> name = shard.as_string();
    if (!name || !is_plain_name(*name)) {
      shard.fail("is " + shard.described() + ", expected the plain name of a file in this folder");
    }
    found.shard_of.emplace(tensor, *name);
  }
  if (found.shard_of.empty()) map->fail("is empty, expected tensors");
  return found;
}

SafetensorsFile join_shards(const SafetensorsIndex& index,
                            const std::function<SafetensorsFile(const std::string& name)>& open) {
  std::map<std::string_view, std::size_t> numbers;
  std::vector<SafetensorsFile> shards;
  for (const auto& [tensor, name] : index.shard_of) {
    const auto [at, is_new] = numbers.emplace(name, shards.size());
    if (is_new) shards.push_back(open(name));
    const SafetensorsFile& shard = shards[at->second];
    if (shard.find(tensor) == nullptr) {
      throw FileError(shard.path(), "lacks the tensor " + in_quotes(tensor) + ", which the index says is in it");
    }
  }
  for (const auto& [name, number] : numbers) {
    for (const SafetensorsEntry& entry : shards[number].tensors()) {
      const auto said = index.shard_of.find(entry.name);
      if (said != index.shard_of.end() && said->second == name) continue;
      throw FileError(shards[number].path(),
                      "holds the tensor " + in_quotes(entry.name) + ", which the index says is " +
                          (said == index.shard_of.end() ? std::string("nowhere") : "in " + in_quotes(said->second)));
    }
  }
  return {index.path, std::move(shards)};
}

SafetensorsFile SafetensorsFile::sharded(const std::string& index) {
  const std::size_t slash = index.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : index.substr(0, slash + 1);
  return join_shards(parse_safetensors_index(index, files::read_text(index, JsonValue::kLargestFile)),
                     [&](const std::string& name) { return SafetensorsFile(folder + name); });
}

}  // namespace headlight::models
