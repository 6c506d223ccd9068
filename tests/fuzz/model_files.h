// A small model as the files that load() reads, and texts that stand for such files.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "fuzz/bytes.h"
#include "fuzz/memory_file.h"
#include "headlight/engine.h"
#include "headlight/models/errors.h"
#include "headlight/models/safetensors.h"
#include "headlight/models/text_encoder.h"
#include "models/bert_weights.h"

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

// Loads the model, and where that goes well, computes with it.
inline void load_and_embed(const std::vector<models::FileInMemory>& files) {
  EngineOptions one_thread;
  one_thread.threads = 1;
  static Engine engine(one_thread);
  try {
    const models::TextEncoder model = models::load("fuzz", files);
    must(model.options().max_length >= 2, "room for [CLS] and [SEP]");
    const std::vector<std::string> texts{"a bb [SEP]", ""};
    const models::HiddenStates states = model.encode(engine, texts);
    must(states.hidden.shape()[0] == 2 && states.hidden.shape()[2] == model.options().encoder.width,
         "hidden states of every text");
    if (model.options().unread_pooling.empty()) static_cast<void>(model.embed(engine, texts));
  } catch (const models::FileError&) {
  }
}

}  // namespace headlight::fuzz
