// A model's folder, read.
#include <algorithm>
#include <string>
#include <utility>

#include "headlight/models/errors.h"
#include "headlight/models/safetensors.h"
#include "headlight/models/text_encoder.h"
#include "models/bert_config.h"
#include "models/bert_weights.h"
#include "models/model_folder.h"
#include "models/sentence_modules.h"
#include "models/tokenizer_files.h"

namespace headlight::models {
namespace {

// Tokens after which embed() cuts a text, where sentence_bert_config.json does not say: 512, or 1e30 for no limit.
std::int64_t longest_text(const ModelFolder& folder, const TokenizerFiles& tokenizer, std::int64_t positions) {
  if (!tokenizer.model_max_length) return positions;
  const double most = *tokenizer.model_max_length;
  if (!(most >= 2)) {
    throw FileError(folder.path(kTokenizerConfigFile),
                    "model_max_length is " + std::to_string(most) + ", expected 2 or more");
  }
  return most < static_cast<double>(positions) ? static_cast<std::int64_t>(most) : positions;
}

TextEncoder load(const ModelFolder& folder, const LoadModelOptions& wanted) {
  ModelOptions options;
  const std::vector<Module> modules = read_modules(folder, options.unknown_keys);
  const ModelFolder transformer = transformer_folder(folder, modules);
  const BertConfig config = read_bert_config(transformer, options.unknown_keys);
  options.encoder = config.encoder;
  TokenizerFiles tokens =
      read_tokenizer_files(transformer, config.tokenizer_class, options.encoder.vocabulary, options.unknown_keys);
  const SentenceConfig sentences = read_sentence_config(transformer);
  // sentence-transformers lower-cases before the tokenizer, which then decides by itself about accents.
  if (sentences.lower_case && !tokens.options.lower_case) {
    tokens.options.strip_accents = tokens.options.strip_accents.value_or(false);
    tokens.options.lower_case = true;
  }
  options.max_length = options.encoder.max_positions;
  options.embed_max_length = std::min(
      options.max_length, sentences.max_seq_length.value_or(longest_text(transformer, tokens, options.max_length)));
  read_vectors(folder, modules, wanted.pooling, options);
  if (options.unread_pooling.empty()) options.unread_pooling = sentences.unread_pooling;
  Tokenizer tokenizer(std::move(tokens.vocabulary), tokens.options, tokens.path);
  SafetensorsFile file = transformer.safetensors(kWeightsFile);
  const EncoderWeights found = find_bert_weights(file, options.encoder);
  headlight::Encoder network(options.encoder);
  network.set_precision(wanted.precision);
  network.load(found.weights);
  return {options, std::move(tokenizer), std::move(network)};
}

}  // namespace

TextEncoder load(const std::string& folder, const LoadModelOptions& options) {
  return load(ModelFolder(folder), options);
}

TextEncoder load(std::string_view name, std::span<const FileInMemory> files, const LoadModelOptions& options) {
  return load(ModelFolder(name, files), options);
}

}  // namespace headlight::models
