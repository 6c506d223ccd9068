// Writes a model folder small enough for a test, with a prompt that is left out of the pooling: write_tiny_bert FOLDER.
#include <filesystem>
#include <fstream>

#include "models/tiny_bert.h"

int main(int count, char** arguments) {
  if (count != 2) return 1;
  const std::filesystem::path folder(arguments[1]);
  std::filesystem::create_directories(folder / "1_Pooling");
  const headlight::test::TinyBert model;
  std::ofstream(folder / "config.json") << model.config_text();
  std::ofstream(folder / "vocab.txt") << headlight::test::TinyBert::vocabulary_text();
  std::ofstream(folder / "config_sentence_transformers.json") << R"({"prompts": {"letters": "a b "}})";
  std::ofstream(folder / "1_Pooling/config.json") << R"({"pooling_mode": "mean", "include_prompt": false})";
  headlight::models::write_safetensors((folder / "model.safetensors").string(), model.weights());
}
