// Small models of every family, as the files that load() reads.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "files/json_value.h"
#include "fuzz/memory_file.h"
#include "headlight/layers/network.h"
#include "headlight/models/safetensors.h"
#include "models/families/family.h"

namespace headlight::fuzz {

// A tokenizer of another kind than BERT's, of 8 tokens, of which the last stands behind texts.
inline constexpr const char* kTokenizerJson =
    R"({"added_tokens": [{"id": 7, "content": "</s>", "single_word": false, "lstrip": false, "rstrip": false,
"normalized": false, "special": true}], "pre_tokenizer": {"type": "WhitespaceSplit"},
"post_processor": {"type": "BertProcessing", "cls": ["</s>", 7], "sep": ["</s>", 7]},
"model": {"type": "BPE", "unk_token": "u", "vocab": {"u": 0, "a": 1, "b": 2, "bb": 3, "c": 4, "[": 5, "]": 6}, "merges": ["b b"]}})";

// The keys of every family, of which each reads its own: 2 layers, 2 heads of 2; behind them some that others refuse.
inline constexpr const char* kFamilyConfig =
    R"("vocab_size": 8, "hidden_size": 4, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 4,
"max_position_embeddings": 8, "hidden_dim": 4, "type_vocab_size": 2, "pad_token_id": 1)";
inline bool has_bert_tokenizer(const models::Family& family) {
  return family.tokenizer_class.find("Bert") != std::string_view::npos;
}
inline std::string family_config(const models::Family& family) {
  const auto refuses = [&](std::string_view key) {
    return std::any_of(family.keys.begin(), family.keys.end(), [&](const models::FolderKey& one) {
      return one.key == key && one.treatment == models::Treatment::refused;
    });
  };
  return "{\"model_type\": \"" + std::string(family.model_type) + "\", " + kFamilyConfig +
         (has_bert_tokenizer(family) ? "" : R"(, "tokenizer_class": "PreTrainedTokenizerFast")") +
         (refuses("head_dim") ? "}" : ", \"head_dim\": 2}");
}

// The family that a text names, null for one that names none.
inline const models::Family* family_in(std::string_view text) {
  for (const models::Family& family : models::families()) {
    if (text.find('"' + std::string(family.model_type) + '"') != std::string_view::npos) return &family;
  }
  return nullptr;
}

// The weights' file of that model, with a head of one label.
inline std::string family_weights(const models::Family& family) {
  const models::FamilyConfig config =
      family.read(files::JsonValue::parse_object(std::string(family.model_type), family_config(family)));
  std::map<std::string, std::pair<std::vector<std::int64_t>, std::vector<float>>> tensors;
  const auto add = [&](const std::string& name, std::vector<std::int64_t> shape) {
    const std::string suffix = name.substr(name.rfind('.'));
    const std::string base = name.substr(0, name.size() - suffix.size());
    for (const models::TensorName& line : family.names) {
      std::string parameter(line.parameter), file(line.file);
      for (std::string* const text : {&parameter, &file}) {
        const std::size_t at = text->find(".N.");
        if (at != std::string::npos && base.starts_with("blocks.")) text->replace(at + 1, 1, base.substr(7, 1));
      }
      if (parameter != base) continue;
      shape[0] *= line.parts;
      std::int64_t count = 1;
      for (const std::int64_t extent : shape) count *= extent;
      std::vector<float> numbers;
      for (std::int64_t n = 0; n < count; ++n) numbers.push_back(0.1f * static_cast<float>(n % 7));
      tensors.emplace(file + suffix, std::pair(shape, std::move(numbers)));
      return;
    }
  };
  for (const ParameterShape& parameter : Network::parameter_shapes(config.network))
    add(parameter.name, parameter.shape);
  const std::int64_t width = config.network.width;
  for (const models::HeadLayer& layer : family.head.layers) {
    const std::int64_t rows = &layer == &family.head.layers.back() ? 1 : width;
    std::vector<std::int64_t> shape{rows, width};
    if (layer.kind != models::VectorLayer::Kind::dense) shape = {width};
    const std::string name(layer.file);
    tensors.emplace(name + ".weight",
                    std::pair(shape, std::vector<float>(static_cast<std::size_t>(rows * width), 0.3f)));
    tensors.emplace(name + ".bias",
                    std::pair(std::vector{rows}, std::vector<float>(static_cast<std::size_t>(rows), 0.1f)));
    auto& [made, numbers] = tensors.at(name + ".weight");
    if (made.size() == 1) numbers.resize(static_cast<std::size_t>(width));
  }
  Weights weights;
  for (const auto& [name, tensor] : tensors) weights.emplace(name, WeightView{tensor.first, tensor.second});
  MemoryFile file;
  file.fill("");
  models::write_safetensors(file.path(), weights);
  return file.text();
}

}  // namespace headlight::fuzz
