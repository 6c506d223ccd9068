// A model's folder, written.
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "headlight/models/atomic_file.h"
#include "headlight/models/errors.h"
#include "headlight/models/text_encoder.h"
#include "models/bert_weights.h"
#include "models/json_text.h"
#include "models/model_folder.h"
#include "models/saving/saved_config.h"
#include "models/saving/saved_source.h"
#include "models/saving/saved_tokenizer.h"
#include "models/saving/saved_vectors.h"
#include "models/score_head.h"
#include "models/tensor_files/stored_weight.h"
#include "models/text_network.h"
#include "models/tokenizers/text_tokenizer.h"
#include "models/tokenizers/vocabulary.h"

namespace headlight::models {
namespace {

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
  for (const char* const name :
       {kVocabularyFile, kTokenizerFile, kTokenizerConfigFile, kSpecialTokensFile, kAddedTokensFile, kModulesFile,
        kPromptsFile, "1_Pooling/config.json", "2_Dense/config.json"}) {
    if (written.contains(name)) continue;
    const std::string path = path_in(folder, name);
    std::error_code error;
    std::filesystem::remove(path, error);
    // A part of the path that is a file holds none of ours.
    if (error && error != std::errc::not_a_directory) throw FileError(path, "cannot be removed: " + error.message());
  }
}

void write_files(const std::string& folder, const ModelOptions& options, SavedFiles& texts,
                 const StoredTensors& tensors, std::map<std::string, std::string> metadata,
                 std::optional<NumberType> type) {
  texts[kSentenceConfigFile] = sentence_config_text(options);
  add_vector_files(options, texts);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw FileError(folder, "cannot make the folder: " + error.message());
  metadata.emplace("format", "pt");
  write_tensors(path_in(folder, kWeightsFile), tensors, metadata, type);
  for (const auto& [name, text] : texts) write_text(path_in(folder, name), text);
  write_layer_weights(options, folder);
  remove_others(folder, texts);
}

void add_vocabulary(const std::string& folder, const ModelOptions& options, std::span<const std::string> vocabulary,
                    SavedFiles& texts) {
  texts[kVocabularyFile] = vocabulary_text(vocabulary, path_in(folder, kVocabularyFile));
  add_tokenizer_files(options, vocabulary, texts);
}

void add_head(const ScoreHead& head, StoredTensors& tensors) {
  std::size_t number = 0;
  for (const std::vector<VectorLayer>* const layers : {&head.of_tokens, &head.pooled.vector_layers}) {
    for (const VectorLayer& layer : *layers) {
      const std::string& name = head.names[number++];
      const auto count = static_cast<std::int64_t>(layer.weight.size());
      const bool dense = layer.kind == VectorLayer::Kind::dense;
      tensors[name + ".weight"] = {
          {dense ? std::vector{layer.width, count / layer.width} : std::vector{count}, layer.weight}};
      if (!layer.bias.empty()) tensors[name + ".bias"] = {{{layer.width}, layer.bias}};
    }
  }
}

}  // namespace

// Throws where load() would read another model than this one.
void TextEncoder::check_can_be_saved() const {
  const auto fail = [](const std::string& message) {
    throw std::invalid_argument("models::TextEncoder: save: " + message);
  };
  const SavedSource* const source = network_->source();
  if (source == nullptr && options_.model_type != "bert") {
    fail("the model_type is " + in_quotes(options_.model_type) + " of parts made elsewhere, expected bert");
  }
  if (source == nullptr && options_.encoder.norm != Norm::post) {
    fail("the network normalises before its halves, which a BERT folder cannot say");
  }
  if (source != nullptr && !source->refusal.empty()) fail(source->refusal);
  if (head_ != nullptr && head_->names.empty())
    fail("the head of scores is of a GGUF file, and no folder has such a one");
  const bool pools_for_scores = head_ != nullptr && head_->of_gguf;
  if (!options_.unread_pooling.empty() && !pools_for_scores)
    fail("what is not read would be lost, " + options_.unread_pooling);
}

void TextEncoder::save_as(const std::string& folder, std::optional<NumberType> type) const {
  check_can_be_saved();
  const SavedSource* const source = network_->source();
  SavedFiles texts;
  texts[kConfigFile] = source != nullptr ? source->config : config_text(options_.encoder);
  if (has_tokenizer()) {
    add_vocabulary(folder, options_, tokenizer().vocabulary(), texts);
  } else {
    for (const auto& [name, text] : source->tokenizer) texts[name] = text();
  }
  const bool bert = options_.model_type == "bert";
  std::deque<std::vector<float>> numbers;
  StoredTensors tensors =
      bert ? one_by_one(name_as_bert(network(), source != nullptr ? source->prefix : ""))
           : tensors_as_before(source->converted, source->tensors, network_->weights_as_stored(), numbers);
  if (head_ != nullptr) add_head(*head_, tensors);
  write_files(folder, options_, texts, tensors, {}, type);
}

void TextEncoder::save(const std::string& folder) const { save_as(folder, std::nullopt); }

void TextEncoder::save(const std::string& folder, NumberType type) const { save_as(folder, type); }

void write_model_folder(const std::string& folder, const ModelOptions& options, std::span<const std::string> vocabulary,
                        const Weights& weights, std::map<std::string, std::string> metadata,
                        std::optional<NumberType> type) {
  SavedFiles texts;
  texts[kConfigFile] = config_text(options.encoder);
  add_vocabulary(folder, options, vocabulary, texts);
  write_files(folder, options, texts, one_by_one(weights), std::move(metadata), type);
}

}  // namespace headlight::models
