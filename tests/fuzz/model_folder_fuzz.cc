// A model's folder of any bytes: config.json, vocab.txt, tokenizer_config.json and the weights' file, a line of ===
// between two; beside a family whose tokenizer is another than BERT's, a sound tokenizer.json. Refused by a FileError,
// or it computes.
#include "fuzz/model_files.h"

namespace headlight::fuzz::model_folder_fuzz {

void run(const std::uint8_t* data, std::size_t size) {
  Bytes input(data, size);
  std::vector<models::FileInMemory> files;
  for (const char* name : {"config.json", "vocab.txt", "tokenizer_config.json"}) {
    const std::string_view text = input.until_line("===");
    if (!text.empty()) files.push_back({name, as_bytes(text)});
  }
  static_cast<void>(family_of(files));
  files.push_back({"model.safetensors", as_bytes(input.rest())});
  load_and_embed(files);
}

}  // namespace headlight::fuzz::model_folder_fuzz
