// What stands on a network for classification: from the hidden states of two texts to their scores.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "files/json_value.h"
#include "headlight/models/safetensors.h"
#include "headlight/models/text_encoder.h"
#include "models/families/family.h"

namespace headlight::models {

struct ScoreHead {
  // Dense ones that each token goes through before the pooling.
  std::vector<VectorLayer> of_tokens{};
  // Width of the network, pooling and layers, as make_vectors() takes them.
  ModelOptions pooled;
  // Where the last token is pooled: the last one that has another id than this, or the first of all.
  std::int64_t padding = -1;
  // What is done to each score at last.
  VectorLayer::Function function = VectorLayer::Function::identity;
  std::int64_t labels = 0;
  // Of the tensors of each layer, of_tokens first, without ".weight" and ".bias"; empty: no folder has this head.
  std::vector<std::string> names{};
  // Whether it is that of a GGUF file, whose pooling is then no other than the head's.
  bool of_gguf = false;
  // What the folder asks of scores that is not built, as a sentence; empty: nothing.
  std::string unread{};
};

// That of a model whose `architectures` end in ForSequenceClassification; nothing for another. Scores are those of
// sentence-transformers' CrossEncoder: through the function that config.json names, else the logistic function where
// there is one label alone. Throws FileError for tensors that are missing or do not fit together.
[[nodiscard]] std::optional<ScoreHead> read_score_head(const files::JsonValue& config, const Head& head,
                                                       std::span<const std::string_view> prefixes, std::int64_t width,
                                                       SafetensorsFile& file);

}  // namespace headlight::models
