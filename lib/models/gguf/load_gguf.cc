#include "models/gguf/load_gguf.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "headlight/models/errors.h"
#include "models/gguf/metadata.h"
#include "models/gguf/network.h"
#include "models/gguf/score.h"
#include "models/gguf/split.h"
#include "models/gguf/tokenizer.h"
#include "models/gguf/tokenizer_entries.h"
#include "models/json_text.h"
#include "models/load_network.h"
#include "models/model_folder.h"
#include "models/saving/saved_source.h"
#include "models/score_head.h"
#include "models/text_network.h"
#include "models/tokenizers/text_tokenizer.h"

namespace headlight::models {

std::optional<std::string> gguf_path(const std::string& path) {
  constexpr std::string_view kExtension = ".gguf";
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    return path.ends_with(kExtension) ? std::optional(path) : std::nullopt;
  }
  if (std::filesystem::exists(path_in(path, kConfigFile), error)) return std::nullopt;
  std::vector<std::string> found;
  for (std::filesystem::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.ends_with(kExtension)) found.push_back(name);
  }
  if (found.empty()) return std::nullopt;
  if (found.size() > 1) {
    std::sort(found.begin(), found.end());
    if (const std::string first = first_of_splits(found); !first.empty()) return path_in(path, first);
    throw FileError(path, "holds several GGUF files, " + in_quotes(found[0]) + " and " + in_quotes(found[1]) +
                              " among them, expected one, or those of one model, or the path of a file");
  }
  return path_in(path, found.front());
}

namespace {

// The files of a tokenizer that vocab.txt does not say, of which the metadata say all; types of tokens are not among
// it. The text of a tokenizer.json is made of them where it is asked for; where the file does not last, of a copy.
void keep_tokenizer(const std::shared_ptr<const GgufFile>& file, bool lasts, const ModelOptions& options,
                    SavedSource& into) {
  const std::int64_t rows = options.encoder.vocabulary;
  if (lasts) {
    into.tokenizer[kTokenizerFile] = [file, rows] { return gguf_tokenizer_text(GgufMetadata(*file), rows); };
  } else {
    into.tokenizer[kTokenizerFile] = [path = file->path(), rows, copy = gguf_tokenizer_entries(*file)] {
      const GgufFile kept(path, std::as_bytes(std::span(copy)));
      return gguf_tokenizer_text(GgufMetadata(kept), rows);
    };
  }
  into.tokenizer[kTokenizerConfigFile] = [longest = options.max_length] {
    JsonObject config(": ", ",\n  ");
    config.add("tokenizer_class", "PreTrainedTokenizerFast");
    config.add("model_max_length", longest);
    config.add_text("model_input_names", R"(["input_ids", "attention_mask"])");
    return config.document();
  };
}

std::unique_ptr<SavedSource> source_of(const GgufNetwork& network, const ScoreHead* head,
                                       std::span<const ParameterShape> parameters) {
  auto source = std::make_unique<SavedSource>();
  source->converted = network.converted;
  source->refusal = network.refusal;
  JsonObject config = network.written;
  if (head != nullptr) {
    add_gguf_head(*head, config);
    source->prefix = prefix_beside_head(*head);
  }
  source->config = config.document();
  if (const Family* const family = find_family(network.model_type)) {
    for (auto& [name, shares] : tensors_of(*family, parameters)) source->tensors[source->prefix + name] = shares;
  }
  return source;
}

std::unique_ptr<TextTokenizer> read_tokenizer(const GgufMetadata& metadata, const EncoderOptions& sizes,
                                              std::size_t held) {
  std::unique_ptr<TextTokenizer> tokenizer = read_gguf_tokenizer(metadata, sizes.vocabulary, held);
  if (const std::int64_t around = tokenizer->tokens_around(false); around > sizes.max_positions) {
    metadata.fail("context_length", "is less than the tokens around a text, " + std::to_string(around));
  }
  return tokenizer;
}

}  // namespace

LoadedTokenizer load_gguf_tokenizer(GgufFile file) {
  const GgufMetadata metadata(file);
  ModelOptions options;
  options.encoder = sizes_of(read_gguf_network(metadata, file).config);
  read_gguf_pooling(metadata, options);
  std::unique_ptr<TextTokenizer> tokenizer = read_tokenizer(metadata, options.encoder, 0);
  return {std::move(tokenizer), options.encoder.max_positions, metadata.unread()};
}

TextEncoder load_gguf(GgufFile opened, const LoadModelOptions& wanted, bool lasts) {
  const auto shared = std::make_shared<GgufFile>(std::move(opened));
  GgufFile& file = *shared;
  const GgufMetadata metadata(file);
  const GgufNetwork network = read_gguf_network(metadata, file);
  ModelOptions options;
  options.model_type = network.model_type;
  options.encoder = sizes_of(network.config);
  read_gguf_pooling(metadata, options);
  read_gguf_vector_layers(file, options);
  if (wanted.pooling) {
    options.pooling = *wanted.pooling;
    options.unread_pooling.clear();
  }
  const std::size_t kept = lasts ? 0 : gguf_tokenizer_bytes(file);
  std::unique_ptr<TextTokenizer> tokenizer = read_tokenizer(metadata, options.encoder, kept);
  options.max_length = options.embed_max_length = options.encoder.max_positions;
  std::unique_ptr<ScoreHead> head = read_gguf_head(metadata, file, options.encoder.width);
  options.unknown_keys = metadata.unread();
  const std::vector<ParameterShape> parameters = parameters_of(network.config.network, file.path());
  const Weights found = find_gguf_weights(file, network, parameters);
  std::unique_ptr<SavedSource> source = source_of(network, head.get(), parameters);
  const bool is_saved = head == nullptr ? options.unread_pooling.empty() : !head->names.empty();
  if (is_saved && tokenizer->bert() == nullptr) {
    keep_tokenizer(shared, lasts, options, *source);
  }
  std::unique_ptr<TextNetwork> loaded = load_network(network.config, found, wanted.precision);
  loaded->set_source(std::move(source));
  return {options, std::move(tokenizer), std::move(loaded), std::move(head)};
}

}  // namespace headlight::models
