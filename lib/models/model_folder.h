// Where the files of a model come from: a folder, or memory.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "headlight/models/safetensors.h"
#include "headlight/models/text_encoder.h"
#include "models/json_scalars.h"

namespace headlight::models {

inline constexpr const char* kConfigFile = "config.json";
inline constexpr const char* kWeightsFile = "model.safetensors";
inline constexpr const char* kVocabularyFile = "vocab.txt";
inline constexpr const char* kTokenizerConfigFile = "tokenizer_config.json";
inline constexpr const char* kSentenceConfigFile = "sentence_bert_config.json";

// `folder` + '/' + `file`, without doubling the slash.
[[nodiscard]] std::string path_in(const std::string& folder, const char* file);

class ModelFolder {
 public:
  explicit ModelFolder(const std::string& folder) : folder_(folder) {}
  ModelFolder(std::string_view name, std::span<const FileInMemory> files)
      : folder_(name), files_(files), in_memory_(true) {}

  // What names the file in errors.
  [[nodiscard]] std::string path(const char* file) const { return path_in(folder_, file); }
  [[nodiscard]] bool has(const char* file) const;

  // All of it. Throw FileError when it is not there, holds more than `limit` bytes or breaks its format.
  [[nodiscard]] std::string text(const char* file, std::uint64_t limit) const;
  [[nodiscard]] JsonScalars json(const char* file) const;
  [[nodiscard]] SafetensorsFile safetensors(const char* file) const;

 private:
  [[nodiscard]] const FileInMemory* find(const char* file) const;
  [[nodiscard]] const FileInMemory& file_in_memory(const char* file) const;

  std::string folder_;
  std::span<const FileInMemory> files_;
  bool in_memory_ = false;
};

// Writes all five; `metadata` goes into the weights' file. Makes the folder; each file appears whole or not at all.
// Throws FileError.
void write_model_folder(const std::string& folder, const ModelOptions& options, std::span<const std::string> vocabulary,
                        const Weights& weights, std::map<std::string, std::string> metadata,
                        NumberType type = NumberType::float32);

}  // namespace headlight::models
