// Where the files of a model come from: a folder, or memory.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "files/json_value.h"
#include "headlight/models/safetensors.h"
#include "headlight/models/text_encoder.h"

namespace headlight::models {

inline constexpr const char* kConfigFile = "config.json";
inline constexpr const char* kWeightsFile = "model.safetensors";
inline constexpr const char* kVocabularyFile = "vocab.txt";
inline constexpr const char* kTokenizerConfigFile = "tokenizer_config.json";
inline constexpr const char* kSpecialTokensFile = "special_tokens_map.json";
inline constexpr const char* kAddedTokensFile = "added_tokens.json";
inline constexpr const char* kTokenizerFile = "tokenizer.json";
inline constexpr const char* kSentenceConfigFile = "sentence_bert_config.json";
inline constexpr const char* kPromptsFile = "config_sentence_transformers.json";
inline constexpr const char* kModulesFile = "modules.json";

// `folder` + '/' + `file`, without doubling the slash.
[[nodiscard]] std::string path_in(const std::string& folder, const std::string& file);

class ModelFolder {
 public:
  explicit ModelFolder(const std::string& folder) : folder_(folder) {}
  ModelFolder(std::string_view name, std::span<const FileInMemory> files)
      : folder_(name), files_(files), in_memory_(true) {}

  // A folder within this one, "1_Pooling"; "" is this one itself.
  [[nodiscard]] ModelFolder within(const std::string& folder) const;

  // What names the file in errors.
  [[nodiscard]] std::string path(const std::string& file) const { return path_in(folder_, file); }
  [[nodiscard]] bool has(const std::string& file) const;
  // Throws a FileError of the folder itself.
  [[noreturn]] void fail(const std::string& message) const;

  // All of it. Throw FileError when it is not there, holds more than `limit` bytes or breaks its format.
  [[nodiscard]] std::string text(const std::string& file, std::uint64_t limit) const;
  // The same of now, whenever it is asked for: of a folder the file is mapped until then. Throw as text().
  [[nodiscard]] std::function<std::string()> kept_text(const std::string& file) const;
  [[nodiscard]] files::JsonValue json(const std::string& file, std::uint64_t limit = kLargestConfig) const;
  [[nodiscard]] files::JsonValue json_array(const std::string& file) const;
  // Where it is missing, the files that its index names, as one. Throws FileError.
  [[nodiscard]] SafetensorsFile safetensors(const std::string& file) const;

  static constexpr std::uint64_t kLargestConfig = std::uint64_t{16} << 20;

 private:
  [[nodiscard]] SafetensorsFile one_safetensors(const std::string& file) const;
  [[nodiscard]] const FileInMemory* find(const std::string& file) const;
  [[nodiscard]] const FileInMemory& file_in_memory(const std::string& file) const;

  std::string folder_;
  std::span<const FileInMemory> files_;
  std::string within_;  // of files in memory: what the names of this folder's begin with
  bool in_memory_ = false;
};

// Writes what save() of a model writes; `metadata` goes into the weights' file. Makes the folder; each file appears
// whole or not at all. No type: each weight's own. Throws FileError.
void write_model_folder(const std::string& folder, const ModelOptions& options, std::span<const std::string> vocabulary,
                        const Weights& weights, std::map<std::string, std::string> metadata,
                        std::optional<NumberType> type = NumberType::float32);

}  // namespace headlight::models
