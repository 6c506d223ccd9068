// The JSON files of a model's folder, whose weights are sound ones of the family that config.json names, a line of ===
// between two: config.json,
// tokenizer_config.json, sentence_bert_config.json, 1_Pooling/config.json, modules.json,
// config_sentence_transformers.json, special_tokens_map.json, added_tokens.json and tokenizer.json. Refused by a
// FileError, or it computes.
#include "fuzz/model_files.h"

namespace headlight::fuzz::config_fuzz {

void run(const std::uint8_t* data, std::size_t size) {
  static const std::string weights = small_weights();
  static const bool every_family_loads = [] {
    for (const models::Family& family : models::families()) load_sound(family);
    return true;
  }();
  must(every_family_loads, "sound folders of every family");
  Bytes input(data, size);
  std::vector<models::FileInMemory> files{{"vocab.txt", as_bytes(kVocabulary)}};
  for (const char* name :
       {"config.json", "tokenizer_config.json", "sentence_bert_config.json", "1_Pooling/config.json", "modules.json",
        "config_sentence_transformers.json", "special_tokens_map.json", "added_tokens.json", "tokenizer.json"}) {
    const std::string_view text = input.until_line("===");
    if (!text.empty()) files.push_back({name, as_bytes(text)});
  }
  const models::Family* const family = family_of(files);
  files.push_back({"model.safetensors", as_bytes(family == nullptr ? weights : weights_of(*family))});
  load_and_embed(files);
}

}  // namespace headlight::fuzz::config_fuzz
