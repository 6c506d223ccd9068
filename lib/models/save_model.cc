// A model's folder, written.
#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "headlight/models/atomic_file.h"
#include "headlight/models/errors.h"
#include "headlight/models/safetensors.h"
#include "headlight/models/text_encoder.h"
#include "models/bert_config.h"
#include "models/bert_weights.h"
#include "models/families/config_values.h"
#include "models/json_text.h"
#include "models/model_folder.h"
#include "models/saved_tokenizer.h"
#include "models/saved_vectors.h"
#include "models/vocabulary.h"

namespace headlight::models {
namespace {

// Throws for an activation that no file can name: no encoder that was read has one.
const char* name_of(Activation activation) {
  for (const ActivationName& known : kActivationNames) {
    if (known.activation == activation) return known.name;
  }
  throw std::invalid_argument("models::TextEncoder: save: config.json has no name for the encoder's activation");
}

// The shortest decimal that is the same float32: 1e-12, not the 9.999999960041972e-13 of its double.
double shortest(float value) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  double same = 0;
  std::from_chars(digits.data(), end, same);
  return same;
}

std::string config_text(const EncoderOptions& encoder) {
  JsonObject config(": ", ",\n  ");
  config.add_text("architectures", "[\"BertModel\"]");
  config.add("model_type", "bert");
  config.add("vocab_size", encoder.vocabulary);
  config.add("max_position_embeddings", encoder.max_positions);
  config.add("type_vocab_size", encoder.token_types);
  config.add("hidden_size", encoder.width);
  config.add("num_hidden_layers", encoder.layers);
  config.add("num_attention_heads", encoder.heads);
  config.add("intermediate_size", encoder.feed_forward_width);
  config.add("hidden_act", name_of(encoder.activation));
  config.add("layer_norm_eps", shortest(encoder.layer_norm_epsilon));
  config.add("hidden_dropout_prob", shortest(encoder.dropout));
  config.add("attention_probs_dropout_prob", shortest(encoder.dropout));
  config.add("position_embedding_type", "absolute");
  if (encoder.merge != Merge::concatenate) config.add("head_merge", name(encoder.merge));
  return config.document();
}

std::string sentence_config_text(const ModelOptions& options) {
  JsonObject sentences(": ", ",\n  ");
  sentences.add("max_seq_length", options.embed_max_length);
  sentences.add("do_lower_case", false);
  return sentences.document();
}

void write_text(const std::string& path, const std::string& text) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::filesystem::create_directories(folder, error);
  if (error) throw FileError(folder.string(), "cannot make the folder: " + error.message());
  AtomicFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

// What load() would read beside the files of this model.
void remove_others(const std::string& folder, const SavedFiles& written) {
  for (const char* const name : {kTokenizerFile, kSpecialTokensFile, kAddedTokensFile, kModulesFile, kPromptsFile,
                                 "1_Pooling/config.json", "2_Dense/config.json"}) {
    if (written.contains(name)) continue;
    const std::string path = path_in(folder, name);
    std::error_code error;
    std::filesystem::remove(path, error);
    // A part of the path that is a file holds none of ours.
    if (error && error != std::errc::not_a_directory) throw FileError(path, "cannot be removed: " + error.message());
  }
}

// Throws where load() would read another model than this one.
void check_can_be_saved(const TextEncoder& model) {
  const ModelOptions& options = model.options();
  const bool has_tokenizer = model.has_tokenizer();
  if (options.model_type != "bert" || !has_tokenizer) {
    throw std::invalid_argument("models::TextEncoder: save: the model_type is " + in_quotes(options.model_type) +
                                (has_tokenizer ? "" : " with a tokenizer.json of another kind") +
                                ", expected bert with its tokenizer");
  }
  if (options.encoder.norm != Norm::post) {
    throw std::invalid_argument(
        "models::TextEncoder: save: the network normalises before its halves, which a BERT folder cannot say");
  }
  if (!options.unread_pooling.empty()) {
    throw std::invalid_argument("models::TextEncoder: save: what is not read would be lost, " + options.unread_pooling);
  }
}

}  // namespace

void TextEncoder::save(const std::string& folder) const {
  check_can_be_saved(*this);
  write_model_folder(folder, options_, tokenizer().vocabulary(), name_as_bert(network()), {}, std::nullopt);
}

void TextEncoder::save(const std::string& folder, NumberType type) const {
  check_can_be_saved(*this);
  write_model_folder(folder, options_, tokenizer().vocabulary(), name_as_bert(network()), {}, type);
}

void write_model_folder(const std::string& folder, const ModelOptions& options, std::span<const std::string> vocabulary,
                        const Weights& weights, std::map<std::string, std::string> metadata,
                        std::optional<NumberType> type) {
  SavedFiles texts;
  texts[kVocabularyFile] = vocabulary_text(vocabulary, path_in(folder, kVocabularyFile));
  texts[kConfigFile] = config_text(options.encoder);
  texts[kSentenceConfigFile] = sentence_config_text(options);
  add_tokenizer_files(options, vocabulary, texts);
  add_vector_files(options, texts);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw FileError(folder, "cannot make the folder: " + error.message());
  metadata.emplace("format", "pt");
  const std::string path = path_in(folder, kWeightsFile);
  type ? write_safetensors(path, weights, metadata, *type) : write_safetensors_as_stored(path, weights, metadata);
  for (const auto& [name, text] : texts) write_text(path_in(folder, name), text);
  write_layer_weights(options, folder);
  remove_others(folder, texts);
}

}  // namespace headlight::models
