// A model's folder, read.
#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "headlight/models/errors.h"
#include "headlight/models/safetensors.h"
#include "headlight/models/text_encoder.h"
#include "models/bert_config.h"
#include "models/bert_weights.h"
#include "models/families/family.h"
#include "models/families/family_weights.h"
#include "models/families/tables.h"
#include "models/gguf/load_gguf.h"
#include "models/gguf/split.h"
#include "models/load_network.h"
#include "models/load_tokenizer.h"
#include "models/model_folder.h"
#include "models/saving/saved_config.h"
#include "models/saving/saved_source.h"
#include "models/score_head.h"
#include "models/sentence_modules.h"
#include "models/text_network.h"
#include "models/tokenizers/text_tokenizer.h"
#include "models/tokenizers/text_tokenizer_files.h"
#include "models/tokenizers/tokenizer_files.h"
#include "runtime/list_text.h"

namespace headlight::models {
namespace {

using files::JsonValue;

// config.json, by its family; `family` is null for BERT's.
struct Config {
  const Family* family = nullptr;
  FamilyConfig of_family{};
  EncoderOptions encoder{};
  std::optional<std::string> tokenizer_class;
  std::string text;  // as save() writes it
};

std::string known_families() {
  std::string names = "bert";
  for (const Family& family : families()) runtime::append_item(names, family.model_type);
  return names;
}

// A block takes memory before anybody looks for its weights, and a file few bytes to ask for many. `keys`: spellings of
// the one that says how many there are, of which the first that is there counts. `weights`: null where none are read.
void expect_tensors_of_blocks(const JsonValue& document, std::span<const std::string_view> keys,
                              const SafetensorsFile* weights) {
  if (weights == nullptr) return;
  for (const std::string_view key : keys) {
    const auto value = document.find(key);
    if (!value) continue;
    const std::int64_t blocks = value->as_integer().value_or(0), tensors = std::ssize(weights->tensors());
    if (blocks <= tensors) return;
    document.fail(key, "is " + std::to_string(blocks) + ", expected at most as many as there are tensors in " +
                           printable(weights->path()) + ", " + std::to_string(tensors));
  }
}

// Those of config.json that a family reads; of BERT's, which has no family, the one.
std::vector<std::string_view> keys_of_blocks(const Family* family) {
  if (family == nullptr) return {"num_hidden_layers"};
  std::vector<std::string_view> found;
  for (const std::string_view key : {"n_layers", "n_layer", "num_hidden_layers"}) {
    const auto reads = [&](const FolderKey& one) { return one.key == key && one.treatment == Treatment::read; };
    if (std::any_of(family->keys.begin(), family->keys.end(), reads)) found.push_back(key);
  }
  return found;
}

// The oldest files do not say.
std::string model_type_of(const JsonValue& document) { return document.string("model_type").value_or("bert"); }

// Null for BERT's. Throws FileError where that of the file is not read.
const Family* family_of(const JsonValue& document) {
  const std::string model_type = model_type_of(document);
  const Family* const family = find_family(model_type);
  if (family != nullptr || model_type == "bert") return family;
  const std::string_view why = why_not_read(model_type);
  document.fail("model_type", "is " + in_quotes(model_type) + (why.empty() ? "" : " (" + std::string(why) + ")") +
                                  ", expected one of " + known_families());
}

constexpr const char* kModelExpected =
    "expected a model's folder (config.json, model.safetensors, and vocab.txt or tokenizer.json) or a .gguf file";

// config.json, and its family.
struct Document {
  JsonValue json;
  const Family* family;  // null for BERT's
};

// Of a family that is read, which is known before the weights, gigabytes maybe, are there.
Document read_document(const ModelFolder& transformer) {
  if (!transformer.has(kConfigFile)) transformer.fail(std::string("holds no config.json, ") + kModelExpected);
  JsonValue json = transformer.json(kConfigFile);
  const Family* const family = family_of(json);
  return {std::move(json), family};
}

Config read_config(const Document& from, const SafetensorsFile* weights, ModelOptions& options) {
  const JsonValue& document = from.json;
  options.model_type = model_type_of(document);
  Config config;
  config.text = config_text(document);
  config.family = from.family;
  if (config.family == nullptr) {
    expect_tensors_of_blocks(document, keys_of_blocks(nullptr), weights);
    const BertConfig bert = read_bert_config(document, options.unknown_keys);
    config.encoder = bert.encoder;
    config.tokenizer_class = bert.tokenizer_class;
    return config;
  }
  check_keys(document, kConfigFile, "", options.unknown_keys, config.family->keys);
  expect_tensors_of_blocks(document, keys_of_blocks(config.family), weights);
  config.of_family = config.family->read(document);
  config.encoder = sizes_of(config.of_family);
  config.tokenizer_class = document.string("tokenizer_class");
  return config;
}

// The tokenizer, and what tokenizer_config.json says of it.
struct TokenizerParts {
  std::unique_ptr<TextTokenizer> tokenizer;
  std::optional<double> model_max_length;
  std::string unread_pairs;  // why scores of pairs are not computed, or ""
};

// Of a folder that does not say whether a network is told types of tokens: "" where that is all the same.
std::string why_types_are_unclear(const ModelFolder& folder, const Config& config, const TextTokenizer& tokenizer) {
  if (config.encoder.token_types < 2) return "";
  std::vector<std::int64_t> ids, types;
  text::Scratch scratch;
  constexpr std::int64_t kAnyLength = 1 << 20;
  tokenizer.append_pair("a", "a", kAnyLength, scratch, ids, types);
  if (std::all_of(types.begin(), types.end(), [](std::int64_t type) { return type == 0; })) return "";
  return printable(folder.path(kTokenizerConfigFile)) +
         ": model_input_names is missing, expected it for scores: versions of Transformers disagree whether "
         "token_type_ids are among them";
}

TokenizerParts read_tokenizer(const ModelFolder& folder, const Config& config, SentenceConfig& sentences,
                              ModelOptions& options) {
  const std::string_view of_family = config.family != nullptr ? config.family->tokenizer_class : "BertTokenizer";
  const bool whole_file = config.family != nullptr && config.family->whole_tokenizer_file;
  const std::int64_t rows = config.encoder.vocabulary;
  if (!has_bert_tokenizer(folder, config.tokenizer_class, of_family)) {
    TextTokenizerFiles files =
        read_text_tokenizer_files(folder, {config.tokenizer_class, of_family, whole_file}, rows, options.unknown_keys);
    if (sentences.lower_case) {
      const std::string refusal = printable(folder.path(kSentenceConfigFile)) +
                                  ": do_lower_case is true, expected false beside such a tokenizer.json";
      for (std::string* const unread : {&sentences.unread_pooling, &sentences.unread_scores}) {
        if (unread->empty()) *unread = refusal;
      }
    }
    auto tokenizer =
        make_text_tokenizer(std::move(files.tokenizer), files.types.value_or(true), std::move(files.special));
    std::string unread = files.types ? "" : why_types_are_unclear(folder, config, *tokenizer);
    return {std::move(tokenizer), files.model_max_length, std::move(unread)};
  }
  const auto name = config.tokenizer_class ? config.tokenizer_class : std::string(of_family);
  TokenizerFiles tokens = read_tokenizer_files(folder, name, whole_file, rows, options.unknown_keys);
  // sentence-transformers lower-cases before the tokenizer, which then decides by itself about accents.
  if (sentences.lower_case && !tokens.options.lower_case) {
    tokens.options.strip_accents = tokens.options.strip_accents.value_or(false);
    tokens.options.lower_case = true;
  }
  const std::optional<double> model_max_length = tokens.model_max_length;
  const bool says_types = tokens.types.has_value();
  std::string unread = tokens.unread_pairs;
  auto tokenizer = make_text_tokenizer(std::move(tokens).tokenizer());
  if (unread.empty() && !says_types) unread = why_types_are_unclear(folder, config, *tokenizer);
  return {std::move(tokenizer), model_max_length, std::move(unread)};
}

// Tokens after which embed() cuts a text, where sentence_bert_config.json does not say: 512, or 1e30 for no limit.
std::int64_t longest_text(const ModelFolder& folder, const std::optional<double>& model_max_length,
                          std::int64_t positions) {
  if (!model_max_length) return positions;
  const double most = *model_max_length;
  if (!(most >= 2)) {
    throw FileError(folder.path(kTokenizerConfigFile),
                    "model_max_length is " + std::to_string(most) + ", expected 2 or more");
  }
  return most < static_cast<double>(positions) ? static_cast<std::int64_t>(most) : positions;
}

std::unique_ptr<TextNetwork> load_network(const ModelFolder& folder, const Config& config, SafetensorsFile& file,
                                          NumberType precision, SavedSource& source) {
  if (config.family == nullptr) {
    const EncoderWeights found = find_bert_weights(file, config.encoder);
    source.prefix = found.prefix;
    return make_text_network(load_encoder(config.encoder, found, precision));
  }
  FamilyWeights found =
      find_family_weights(file, *config.family, parameters_of(config.of_family.network, folder.path(kConfigFile)));
  source.tensors = std::move(found.tensors);
  return load_network(config.of_family, found.weights, precision);
}

std::unique_ptr<SavedSource> source_of(const ModelFolder& folder, const Config& config,
                                       const TextTokenizer& tokenizer) {
  auto source = std::make_unique<SavedSource>();
  source->config = config.text;
  if (tokenizer.bert() != nullptr) return source;
  source->tokenizer[kTokenizerFile] = folder.kept_text(kTokenizerFile);
  for (const char* const name : {kTokenizerConfigFile, kSpecialTokensFile}) {  // as small as they are, not mapped
    if (!folder.has(name)) continue;
    source->tokenizer[name] = [copy = folder.text(name, ModelFolder::kLargestConfig)] { return copy; };
  }
  return source;
}

// What says how texts become tokens.
struct TextParts {
  Config config;
  SentenceConfig sentences;
  std::unique_ptr<TextTokenizer> tokenizer;
  std::string unread_pairs;  // as TokenizerParts has it
};

struct Folders {
  const ModelFolder& whole;
  const ModelFolder& transformer;
};

// Of a folder that is no CrossEncoder's sentence-transformers makes scores without its files, through a chat's template
// where there is one.
std::string why_scores_are_unclear(const Folders& folders, const std::vector<Module>& modules, const TextParts& parts) {
  if (!modules.empty() && is_cross_encoder(folders.whole)) return "";
  if (const std::string place = chat_template_of(folders.transformer); !place.empty()) {
    return place + " is there, expected none: sentence-transformers puts pairs through it";
  }
  if (parts.sentences.max_seq_length.value_or(INT64_MAX) < parts.config.encoder.max_positions) {
    return printable(folders.transformer.path(kSentenceConfigFile)) +
           ": max_seq_length cuts texts, but not pairs where model_type of config_sentence_transformers.json is not "
           "CrossEncoder";
  }
  return "";
}

std::unique_ptr<ScoreHead> load_head(const Folders& folders, const std::vector<Module>& modules, const TextParts& parts,
                                     SafetensorsFile& file) {
  const Config& config = parts.config;
  constexpr std::array<std::string_view, 2> kOfBert{"", "bert."};
  const bool bert = config.family == nullptr;
  const std::span<const std::string_view> prefixes = bert ? kOfBert : config.family->prefixes;
  auto head = read_score_head(folders.transformer.json(kConfigFile), bert ? kBertHead : config.family->head, prefixes,
                              config.encoder.width, file);
  if (!head) return nullptr;
  read_score_options(folders.whole, modules, parts.sentences, *head);
  if (!parts.unread_pairs.empty()) head->unread = parts.unread_pairs;
  if (const std::string why = why_scores_are_unclear(folders, modules, parts); !why.empty()) head->unread = why;
  return std::make_unique<ScoreHead>(*std::move(head));
}

// Transformers adds the weights of an adapter to those of the model that this file names.
void refuse_adapter(const ModelFolder& transformer) {
  constexpr const char* kAdapter = "adapter_config.json";
  if (transformer.has(kAdapter)) {
    throw FileError(transformer.path(kAdapter), "is an adapter's, expected a folder of merged weights without it");
  }
}

// Whether positions are rows of a table, of which there are no more.
bool config_has_positions(const Config& config) {
  return config.family == nullptr || config.of_family.network.embedding.positions > 0;
}

// And `options` of the network's sizes and the longest texts. `weights`: null where none are read.
TextParts read_text_parts(const ModelFolder& transformer, const Document& document, const SafetensorsFile* weights,
                          ModelOptions& options) {
  TextParts parts;
  parts.config = read_config(document, weights, options);
  options.encoder = parts.config.encoder;
  parts.sentences = read_sentence_config(transformer);
  check_processor_classes(transformer);
  TokenizerParts tokens = read_tokenizer(transformer, parts.config, parts.sentences, options);
  options.max_length = options.encoder.max_positions;
  options.embed_max_length = std::min(
      options.max_length,
      parts.sentences.max_seq_length.value_or(longest_text(transformer, tokens.model_max_length, options.max_length)));
  if (const std::int64_t around = tokens.tokenizer->tokens_around(false); around > options.embed_max_length) {
    throw FileError(transformer.path(kTokenizerFile), "puts " + std::to_string(around) +
                                                          " tokens around a text, expected at most the longest text, " +
                                                          std::to_string(options.embed_max_length));
  }
  const std::int64_t longest = parts.sentences.max_seq_length.value_or(0);
  const bool has_table = config_has_positions(parts.config);
  if (longest > options.max_length && !has_table) {
    const std::string refusal = printable(transformer.path(kSentenceConfigFile)) + ": max_seq_length is " +
                                std::to_string(longest) + ", expected at most max_position_embeddings, " +
                                std::to_string(options.max_length);
    for (std::string* const unread : {&parts.sentences.unread_pooling, &parts.sentences.unread_scores}) {
      if (unread->empty()) *unread = refusal;
    }
  }
  parts.tokenizer = std::move(tokens.tokenizer);
  parts.unread_pairs = std::move(tokens.unread_pairs);
  return parts;
}

TextEncoder load(const ModelFolder& folder, const LoadModelOptions& wanted) {
  ModelOptions options;
  const std::vector<Module> modules = read_modules(folder, options.unknown_keys);
  const ModelFolder transformer = transformer_folder(folder, modules);
  refuse_adapter(transformer);
  const Document document = read_document(transformer);
  SafetensorsFile file = transformer.safetensors(kWeightsFile);
  TextParts parts = read_text_parts(transformer, document, &file, options);
  read_vectors(folder, modules, wanted.pooling, options);
  if (modules.empty()) read_defaults_of_vectors(transformer, document.json, wanted.pooling.has_value(), options);
  if (options.unread_pooling.empty()) options.unread_pooling = parts.sentences.unread_pooling;
  std::unique_ptr<SavedSource> source = source_of(transformer, parts.config, *parts.tokenizer);
  std::unique_ptr<TextNetwork> network = load_network(transformer, parts.config, file, wanted.precision, *source);
  network->set_source(std::move(source));
  return {options, std::move(parts.tokenizer), std::move(network),
          load_head({folder, transformer}, modules, parts, file)};
}

// Others than those that are a folder, or of which nobody can tell; "" is the one where the process works.
void refuse_no_folder(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path.empty() ? "." : path, error);
  // The name of a model on a hub most often.
  if (status.type() == std::filesystem::file_type::not_found) {
    throw FileError(path, std::string("is not there, ") + kModelExpected + "; nothing is downloaded");
  }
  if (!std::filesystem::exists(status) || std::filesystem::is_directory(status)) return;
  throw FileError(path, std::string("is a file, ") + kModelExpected);
}

// The GGUF file that stands for all files, or "".
std::string gguf_among(std::span<const FileInMemory> files) {
  std::vector<std::string> names;
  for (const FileInMemory& file : files) {
    if (!file.name.ends_with(".gguf")) return "";
    names.emplace_back(file.name);
  }
  std::sort(names.begin(), names.end());
  return names.size() == 1 ? names.front() : first_of_splits(names);
}

}  // namespace

LoadedTokenizer load_tokenizer(const std::string& path) {
  if (const auto file = gguf_path(path)) return load_gguf_tokenizer(GgufFile::whole(*file));
  refuse_no_folder(path);
  const ModelFolder folder(path);
  ModelOptions options;
  const ModelFolder transformer = transformer_folder(folder, read_modules(folder, options.unknown_keys));
  TextParts parts = read_text_parts(transformer, read_document(transformer), nullptr, options);
  return {std::move(parts.tokenizer), options.max_length, std::move(options.unknown_keys)};
}

TextEncoder load(const std::string& folder, const LoadModelOptions& options) {
  if (const auto file = gguf_path(folder)) return load_gguf(GgufFile::whole(*file), options);
  refuse_no_folder(folder);
  return load(ModelFolder(folder), options);
}

TextEncoder load(std::string_view name, std::span<const FileInMemory> files, const LoadModelOptions& options) {
  if (const std::string gguf = gguf_among(files); !gguf.empty()) {
    const ModelFolder folder(name, files);
    const auto open = [&](const std::string& path) {
      for (const FileInMemory& file : files) {
        if (folder.path(std::string(file.name)) == path) return GgufFile(path, file.bytes);
      }
      throw FileError(path, "is not there");
    };
    return load_gguf(join_splits(open(folder.path(gguf)), open), options, false);
  }
  return load(ModelFolder(name, files), options);
}

}  // namespace headlight::models
