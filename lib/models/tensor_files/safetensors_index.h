// Weights in several safetensors files, as `model.safetensors.index.json` says which tensor lies in which:
// {"metadata": {…}, "weight_map": {"a.weight": "model-00001-of-00002.safetensors", …}}.
// https://huggingface.co/docs/transformers/big_models#sharded-checkpoints
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "files/json_value.h"
#include "headlight/models/safetensors.h"

namespace headlight::models {

// Behind the name of the file that the shards stand for.
inline constexpr std::string_view kIndexSuffix = ".index.json";

struct SafetensorsIndex {
  std::string path;
  // The shard of each tensor, the name of a file in the folder of the index: all values are such names.
  files::JsonValue weight_map;
};

// Throws FileError naming `path` and the key: for a text that is no such object, one without tensors, a key beside
// those two, and shards that are no plain name of a file, of at most 255 bytes.
[[nodiscard]] SafetensorsIndex parse_safetensors_index(const std::string& path, std::string text);

// All shards as one file; open(name) opens one, in the order in which the index names them. Throws FileError where a
// shard lacks a tensor that the index says is in it, or holds one that the index says is elsewhere or nowhere.
[[nodiscard]] SafetensorsFile join_shards(const SafetensorsIndex& index,
                                          const std::function<SafetensorsFile(const std::string& name)>& open);

}  // namespace headlight::models
