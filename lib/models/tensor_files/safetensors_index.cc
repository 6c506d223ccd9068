#include "models/tensor_files/safetensors_index.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
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

// Of a shard that holds more tensors than the index says.
[[noreturn]] void fail_by_tensor(const SafetensorsIndex& index, const SafetensorsFile& shard, std::string_view name) {
  // No more than the shard holds.
  std::vector<std::string_view> named;
  for (const auto& [tensor, of] : index.weight_map.members()) {
    if (of.as_string() == name) named.push_back(tensor);
  }
  std::sort(named.begin(), named.end());
  const std::span<const SafetensorsEntry> all = shard.tensors();
  const auto found = std::find_if(all.begin(), all.end(), [&](const SafetensorsEntry& entry) {
    return !std::binary_search(named.begin(), named.end(), std::string_view(entry.name));
  });
  const auto said = index.weight_map.string(found->name);
  throw FileError(shard.path(), "holds the tensor " + in_quotes(found->name) + ", which the index says is " +
                                    (said ? "in " + in_quotes(*said) : std::string("nowhere")));
}

}  // namespace

SafetensorsIndex parse_safetensors_index(const std::string& path, std::string text) {
  const JsonValue index = JsonValue::parse_object(path, std::move(text));
  for (const auto& [key, value] : index.members()) {
    if (key != kWeightMap && key != "metadata") value.fail("is unknown, expected metadata or weight_map");
  }
  (void)index.object("metadata");  // sizes and notes, which files have themselves
  const std::optional<JsonValue> map = index.object(kWeightMap);
  if (!map) index.fail(kWeightMap, "is missing");
  for (const auto& [tensor, shard] : map->members()) {
    const std::optional<std::string_view> name = shard.as_string();
    if (!name || !is_plain_name(*name)) {
      shard.fail("is " + shard.described() + ", expected the plain name of a file in this folder");
    }
  }
  if (map->members().empty()) map->fail("is empty, expected tensors");
  return {path, *map};
}

SafetensorsFile join_shards(const SafetensorsIndex& index,
                            const std::function<SafetensorsFile(const std::string& name)>& open) {
  std::map<std::string_view, std::size_t> numbers;
  std::vector<SafetensorsFile> shards;
  std::vector<std::size_t> named;  // of each shard: how many tensors the index says are in it
  for (const auto& [tensor, value] : index.weight_map.members()) {
    const std::string_view name = *value.as_string();
    const auto [at, is_new] = numbers.emplace(name, shards.size());
    if (is_new) {
      shards.push_back(open(std::string(name)));
      named.push_back(0);
    }
    const SafetensorsFile& shard = shards[at->second];
    if (shard.find(tensor) == nullptr) {
      throw FileError(shard.path(), "lacks the tensor " + in_quotes(tensor) + ", which the index says is in it");
    }
    ++named[at->second];
  }
  // Each of them is another one and was found: a shard that holds as many holds no others.
  for (const auto& [name, number] : numbers) {
    if (named[number] != shards[number].tensors().size()) fail_by_tensor(index, shards[number], name);
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
