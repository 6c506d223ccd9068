// A small model as the files that load() reads, and texts that stand for such files.
#pragma once

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/bytes.h"
#include "fuzz/family_files.h"
#include "fuzz/memory_file.h"
#include "headlight/engine.h"
#include "headlight/models/errors.h"
#include "headlight/models/safetensors.h"
#include "headlight/models/text_encoder.h"
#include "models/bert_weights.h"
#include "models/families/config_values.h"
#include "support/heap_watch.h"
#include "text/table_limit.h"

namespace headlight::fuzz {

inline constexpr const char* kVocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\n##b\n";

// The weights' file of a model whose config.json is the seed of the corpus: 8 words, 4 positions, 2 types of tokens, 2
// heads of 2, 4 in between, 1 layer.
inline std::string small_weights() {
  EncoderOptions options;
  options.vocabulary = 8;
  options.max_positions = 4;
  options.token_types = 2;
  options.width = 4;
  options.heads = 2;
  options.feed_forward_width = 4;
  options.layers = 1;
  headlight::Encoder network(options);
  network.initialize(1);
  MemoryFile file;
  file.fill("");
  models::write_safetensors(file.path(), models::name_as_bert(network));
  return file.text();
}

// The family that config.json names; where its tokenizer is another than BERT's and no file says so, one joins the
// files.
inline const models::Family* family_of(std::vector<models::FileInMemory>& files) {
  const auto text_of = [&](std::string_view name) -> std::string_view {
    for (const models::FileInMemory& file : files) {
      if (file.name == name) return {reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()};
    }
    return {};
  };
  const models::Family* const family = family_in(text_of("config.json"));
  if (family != nullptr && text_of("tokenizer.json").empty() && !has_bert_tokenizer(*family)) {
    files.push_back({"tokenizer.json", as_bytes(kTokenizerJson)});
  }
  return family;
}

inline const std::string& weights_of(const models::Family& family) {
  static std::map<std::string_view, std::string> made;
  std::string& weights = made[family.model_type];
  if (weights.empty()) weights = family_weights(family);
  return weights;
}

// A folder of that family that is as it should be: it loads, or the fuzzer would not reach what lies behind.
inline void load_sound(const models::Family& family) {
  const std::string config = family_config(family);
  std::vector<models::FileInMemory> files{{"vocab.txt", as_bytes(kVocabulary)}, {"config.json", as_bytes(config)}};
  static_cast<void>(family_of(files));
  files.push_back({"model.safetensors", as_bytes(weights_of(family))});
  must(models::load("sound", files).options().model_type == family.model_type, "a sound folder");
}

// Loading takes no more memory than twice the files, and what the sound weights' network, an engine's scratch memory
// and the tables of a tokenizer take; and the specification of as many blocks as there are tensors, which is made
// before anybody looks whether those are the ones.
inline models::TextEncoder load_within(const std::vector<models::FileInMemory>& files) {
  constexpr std::size_t kTimes = 2, kOfBlock = std::size_t{1} << 14, kOfTensor = 24;
  constexpr std::size_t kBeside = (std::size_t{1} << 20) + text::TableLimit::kBeside;
  std::size_t bytes = 0;
  for (const models::FileInMemory& file : files) bytes += file.bytes.size();
  const std::size_t blocks = std::min(bytes / kOfTensor, static_cast<std::size_t>(models::kMostBlocks));
  const test::HeapLimit limit(kTimes * bytes + kBeside + kOfBlock * blocks);
  return models::load("fuzz", files);
}

// Loads the model, and where that goes well, computes with it.
inline void load_and_embed(const std::vector<models::FileInMemory>& files) {
  EngineOptions one_thread;
  one_thread.threads = 1;
  static Engine engine(one_thread);
  try {
    const models::TextEncoder model = load_within(files);
    must(model.options().max_length >= 2, "room for [CLS] and [SEP]");
    const std::vector<std::string> texts{"a bb [SEP]", ""};
    const models::HiddenStates states = model.encode(engine, texts);
    must(states.hidden.shape()[0] == 2 && states.hidden.shape()[2] == model.options().encoder.width,
         "hidden states of every text");
    if (model.options().unread_pooling.empty()) static_cast<void>(model.embed(engine, texts));
    const std::vector<models::TextPair> pairs{{"a bb", "b"}, {"", ""}};
    try {
      must(model.score(engine, pairs).shape()[1] == model.score_width(), "the scores of every pair");
    } catch (const std::invalid_argument&) {  // there is no head, or no room for a pair
    }
  } catch (const models::FileError&) {
  }
}

}  // namespace headlight::fuzz
