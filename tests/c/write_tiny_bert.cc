// Writes a model folder small enough for a test: write_tiny_bert FOLDER.
#include <filesystem>
#include <fstream>

#include "models/tiny_bert.h"

int main(int count, char** arguments) {
  if (count != 2) return 1;
  const std::filesystem::path folder(arguments[1]);
  std::filesystem::create_directories(folder);
  const headlight::test::TinyBert model;
  std::ofstream(folder / "config.json") << model.config_text();
  std::ofstream(folder / "vocab.txt") << headlight::test::TinyBert::vocabulary_text();
  headlight::models::write_safetensors((folder / "model.safetensors").string(), model.weights());
}
