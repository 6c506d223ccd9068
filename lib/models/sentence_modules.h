// How a published folder makes one vector of a text's hidden states: the files of sentence-transformers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headlight/models/text_encoder.h"
#include "models/model_folder.h"
#include "models/score_head.h"

namespace headlight::models {

// An entry of modules.json.
struct Module {
  std::string
      type;  // "Transformer", the last part of its class; the whole name of a class that is not sentence-transformers'
  std::string path;   // the folder of its files, "1_Pooling"
  std::string place;  // file and key, for errors
};

// All entries of modules.json in its order; none where that is not there. Appends keys that nobody knows. Throws
// FileError.
[[nodiscard]] std::vector<Module> read_modules(const ModelFolder& folder, std::vector<std::string>& unknown);

// The folder of the files of the network and its tokenizer.
[[nodiscard]] ModelFolder transformer_folder(const ModelFolder& folder, const std::vector<Module>& modules);

// What the other modules and config_sentence_transformers.json say: poolings, layers behind them and prompts of `into`,
// whose network is set; or, where something is not built, into.unread_pooling. `pooling`, where given, stands in the
// place of the folder's. Throws FileError for files that are malformed.
void read_vectors(const ModelFolder& folder, const std::vector<Module>& modules,
                  const std::optional<std::vector<PoolingMode>>& pooling, ModelOptions& into);

// Of a folder without modules.json, whose config.json is `config`: the pooling that sentence-transformers takes, where
// neither 1_Pooling nor the caller names one (`has_pooling`); or `into.unread_pooling` where it would put texts through
// a chat's template.
void read_defaults_of_vectors(const ModelFolder& folder, const files::JsonValue& config, bool has_pooling,
                              ModelOptions& into);
// Throws FileError where a processor is named: sentence-transformers takes one, of images too, in place of the
// tokenizer, and for one a tokenizer that stands where a processor should. The name of a processor alone, in the files
// of text, is passed over.
void check_processor_classes(const ModelFolder& transformer);
// Where a chat's template is, "tokenizer_config.json: chat_template", or "".
[[nodiscard]] std::string chat_template_of(const ModelFolder& folder);
// Whether config_sentence_transformers.json says that the folder is a CrossEncoder's.
[[nodiscard]] bool is_cross_encoder(const ModelFolder& folder);

// sentence_bert_config.json.
struct SentenceConfig {
  std::optional<std::int64_t> max_seq_length;
  bool lower_case = false;     // before the tokenizer sees the text
  std::string unread_pooling;  // as that of ModelOptions
  std::string unread_scores;   // as ScoreHead::unread, for a CrossEncoder
};
[[nodiscard]] SentenceConfig read_sentence_config(const ModelFolder& transformer);

// What the folder of a CrossEncoder of sentence-transformers 6 says of scores beside config.json: their function, or,
// where something is not built, into.unread. Throws FileError for files that are malformed.
void read_score_options(const ModelFolder& folder, const std::vector<Module>& modules, const SentenceConfig& sentences,
                        ScoreHead& into);

}  // namespace headlight::models
