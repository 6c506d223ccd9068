#include "models/tokenizers/text_tokenizer_files.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string_view>
#include <utility>

#include "headlight/models/errors.h"
#include "models/tokenizers/class_checks.h"
#include "models/tokenizers/listed_tokens.h"
#include "models/tokenizers/tokenizer_classes.h"
#include "models/tokenizers/tokenizer_files.h"

namespace headlight::models {
namespace {

using files::JsonValue;

// clang-format off
constexpr FolderKey kTextKeys[] = {
    {"tokenizer_config.json", "tokenizer_class", Treatment::read, "", "`PreTrainedTokenizerFast`, `TokenizersBackend`, or `Roberta`, `XLMRoberta`, `Camembert`, `GPT2`, `Qwen2`, `Gemma`, `Llama`, `Bart`, `MPNet`, `CodeGen`, `GPTNeoX` before `Tokenizer`, each also with `Fast`"},
    {"tokenizer_config.json", "added_tokens_decoder", Treatment::read, "", "must agree with added_tokens of tokenizer.json; so must all tokens below"},
    {"tokenizer_config.json", "add_prefix_space", Treatment::read, "", "must agree with the pre_tokenizer of tokenizer.json; false for the ByteLevel of classes that have one where it is missing"},
    {"tokenizer_config.json", "legacy", Treatment::read, "", "of `LlamaTokenizer`: whether a space is put behind added tokens; no effect elsewhere"},
    {"tokenizer_config.json", "add_bos_token", Treatment::read, "", "must agree with the post_processor of tokenizer.json"},
    {"tokenizer_config.json", "add_eos_token", Treatment::read, "", "the same"},
    {"tokenizer_config.json", "model_input_names", Treatment::read, "", "the same; where it is missing, no class that makes its tokenizer itself has types"},
    {"tokenizer_config.json", "return_token_type_ids", Treatment::refused, "false", ""},
    {"tokenizer_config.json", "do_lower_case", Treatment::read, "", "tokenizer.json says so, and the next two; those of `MPNet` must agree with it, as BERT's where they are missing"},
    {"tokenizer_config.json", "strip_accents", Treatment::read, "", ""},
    {"tokenizer_config.json", "tokenize_chinese_chars", Treatment::read, "", ""},
    {"tokenizer_config.json", "whole_words", Treatment::refused, "false", ""},
    {"tokenizer_config.json", "sp_model_kwargs", Treatment::no_effect, "", "of slow tokenizers, as the next two"},
    {"tokenizer_config.json", "keep_accents", Treatment::no_effect, "", ""},
    {"tokenizer_config.json", "remove_space", Treatment::no_effect, "", ""},
    {"tokenizer_config.json", "trim_offsets", Treatment::no_effect, "", "of places in the text"},
    {"tokenizer_config.json", "use_default_system_prompt", Treatment::no_effect, "", "of chats"},
};
// clang-format on

std::string without_fast(std::string name) {
  constexpr std::string_view kFast = "Fast";
  if (name.ends_with(kFast)) name.resize(name.size() - kFast.size());
  return name;
}

// Of tokenizer_config.json, where that has none of config.json, or else the family's.
std::string class_of(const std::optional<JsonValue>& config, const std::optional<std::string>& of_config,
                     std::string_view of_family) {
  std::optional<std::string> name = config ? config->string("tokenizer_class") : std::nullopt;
  if (!name) name = of_config;
  return name ? *name : std::string(of_family);
}

// That what `value` names is a token that tokenizer.json matches in the text, since Transformers would add it.
void check_added(const JsonValue& value, const TokenizerSources& sources) {
  const ListedToken token = read_listed_token(value, true);
  if (token.token.content.empty() || sources.added.contains(token.token.content)) return;
  value.fail("is " + in_quotes(token.token.content) + ", expected one of added_tokens of tokenizer.json");
}

void check_named(const JsonValue& config, const TokenizerSources& sources) {
  for (const auto& [key, value] : config.members()) {
    if (key.ends_with("_token") && (value.as_string() || value.is_object())) check_added(value, sources);
  }
  for (const char* const key : kTokenLists) {
    const auto list = config.find(key);
    if (!list) continue;
    if (!list->is_array() && !list->is_object()) list->fail("is " + list->described() + ", expected a list");
    for (const JsonValue& value : list->elements()) check_added(value, sources);
    for (const auto& [name, value] : list->members()) check_added(value, sources);
  }
}

// That added_tokens_decoder has the tokens of tokenizer.json. A class that makes its tokenizer itself looks at no
// others.
void check_decoder(const JsonValue& decoder, const TokenizerSources& sources) {
  std::set<std::string, std::less<>> known;
  for (const auto& [key, value] : decoder.members()) {
    const AddedToken here = read_listed_token(value, false).token;
    const auto found = sources.added.find(here.content);
    bool same = found != sources.added.end();
    if (same) {
      const AddedToken& there = found->second.token;
      same = std::to_string(there.id) == key && there.single_word == here.single_word && there.lstrip == here.lstrip &&
             there.rstrip == here.rstrip && there.normalized == here.normalized;
    }
    if (!same) value.fail("is " + in_quotes(here.content) + ", expected the same in added_tokens of tokenizer.json");
    known.insert(here.content);
  }
  if (sources.tokenizer_class == nullptr) return;
  for (const auto& [content, listed] : sources.added) {
    if (known.contains(content)) continue;
    listed.place->fail("is " + in_quotes(content) +
                       ", expected the same in added_tokens_decoder of tokenizer_config.json");
  }
}

// What Transformers adds where tokenizer_config.json lists no tokens itself.
void check_added_file(const ModelFolder& folder, const TokenizerSources& sources) {
  if (!folder.has(kAddedTokensFile)) return;
  const JsonValue tokens = folder.json(kAddedTokensFile);
  for (const auto& [content, value] : tokens.members()) {
    const auto found = sources.added.find(content);
    if (found != sources.added.end() && found->second.token.id == value.as_integer()) continue;
    value.fail("is " + value.described() + ", expected the same in added_tokens of tokenizer.json");
  }
}

// A text that is too long is cut at its end.
void check_truncation(const JsonValue& tokenizer) {
  const auto truncation = tokenizer.object("truncation");
  const std::string direction = truncation ? truncation->string("direction").value_or("Right") : "Right";
  if (direction != "Right") truncation->fail("direction", "is " + in_quotes(direction) + ", expected Right");
}

// Whether the post-processor puts the token of that name at the text's begin or end.
void check_ends(const JsonValue& config, const text::Tokenizer& tokenizer, const char* key, const char* token,
                bool at_end) {
  const auto wanted = config.boolean(key);
  const auto value = config.find(token);
  if (!wanted || !value) return;
  const text::TokensAround around = tokenizer.tokens_around();
  const std::vector<std::int64_t> ids = tokenizer.encode("");
  const bool any = (at_end ? around.behind : around.text - around.behind) > 0;
  const bool there = any && tokenizer.id(read_listed_token(*value, true).token.content) ==
                                std::optional(at_end ? ids.back() : ids.front());
  if (there == *wanted) return;
  config.fail(key, std::string("is ") + (*wanted ? "true" : "false") +
                       ", expected what the post_processor of tokenizer.json does");
}

TokenizerSources read_sources(const ModelFolder& folder, const TokenizerClassNames& names,
                              std::vector<std::string>& unknown) {
  TokenizerSources sources{folder.json(kTokenizerFile, JsonValue::kLargestFile)};
  if (folder.has(kTokenizerConfigFile)) {
    sources.config = folder.json(kTokenizerConfigFile);
    check_keys(*sources.config, kTokenizerConfigFile, "", unknown, kTextKeys);
  }
  const bool has_decoder = sources.config && sources.config->find("added_tokens_decoder");
  if (!has_decoder && folder.has(kSpecialTokensFile)) sources.special = read_special_tokens(folder, unknown);
  if (const auto added = sources.tokenizer.array("added_tokens")) {
    for (const JsonValue& one : added->elements()) {
      ListedToken token = read_listed_token(one, false);
      std::string content = token.token.content;
      sources.added.insert_or_assign(std::move(content), std::move(token));
    }
  }
  if (!names.takes_whole_file) {
    sources.tokenizer_class =
        find_tokenizer_class(without_fast(class_of(sources.config, names.of_config, names.of_family)));
  }
  // As Transformers 5 tells a file of bytes, of which LlamaTokenizer takes all.
  if (sources.tokenizer_class != nullptr && sources.tokenizer_class->kind == TokenizerClass::Kind::llama &&
      folder.text(kTokenizerFile, JsonValue::kLargestFile).find("\"ByteLevel\"") != std::string::npos) {
    sources.tokenizer_class = nullptr;
  }
  return sources;
}

// That the files say nothing else than tokenizer.json.
void check_sources(const ModelFolder& folder, const TokenizerSources& sources) {
  check_truncation(sources.tokenizer);
  const auto decoder = sources.config ? sources.config->object("added_tokens_decoder") : std::nullopt;
  if (decoder) check_decoder(*decoder, sources);
  if (!decoder) check_added_file(folder, sources);
  for (const auto& file : {sources.special, sources.config}) {
    if (file) check_named(*file, sources);
  }
  check_padding(sources.tokenizer, sources.config, sources.special);
  check_prefix_space(sources);
  if (sources.tokenizer_class != nullptr) check_files_of_class(sources);
}

}  // namespace

std::span<const FolderKey> text_tokenizer_keys() noexcept { return kTextKeys; }

bool has_bert_tokenizer(const ModelFolder& folder, const std::optional<std::string>& tokenizer_class,
                        std::string_view of_family) {
  std::optional<JsonValue> config;
  if (folder.has(kTokenizerConfigFile)) config = folder.json(kTokenizerConfigFile);
  const std::string name = class_of(config, tokenizer_class, of_family);
  // These say nothing of the tokenizer.
  const bool whole_file = name == "PreTrainedTokenizerFast" || name == "TokenizersBackend";
  if (!whole_file && name != "PreTrainedTokenizer" && find_tokenizer_class(without_fast(name)) == nullptr) return true;
  if (!folder.has(kTokenizerFile)) {
    if (whole_file) return true;
    throw FileError(folder.path(kTokenizerFile),
                    "is not there, expected it for the tokenizer_class " + in_quotes(name));
  }
  if (!whole_file) return false;
  const JsonValue document = folder.json(kTokenizerFile, JsonValue::kLargestFile);
  const auto type = [&](const char* part) {
    const auto found = document.object(part);
    return found ? found->string("type").value_or("") : std::string("none");
  };
  const std::string model = type("model"), normalizer = type("normalizer"), processor = type("post_processor");
  return (model == "WordPiece" || model.empty()) && type("pre_tokenizer") == "BertPreTokenizer" &&
         (normalizer == "BertNormalizer" || normalizer == "none") &&
         (processor == "TemplateProcessing" || processor == "BertProcessing");
}

TextTokenizerFiles read_text_tokenizer_files(const ModelFolder& folder, const TokenizerClassNames& names,
                                             std::int64_t rows, std::vector<std::string>& unknown) {
  const TokenizerSources sources = read_sources(folder, names, unknown);
  check_sources(folder, sources);
  text::ReplacedParts made;
  const TokenizerClass* const own = sources.tokenizer_class;
  if (own != nullptr) made = check_class(sources.tokenizer, *own, sources.config);
  text::Pipeline pipeline(sources.tokenizer, made);
  if (own != nullptr) check_tokenizer_of_class(sources, pipeline);
  TextTokenizerFiles files{text::Tokenizer::of(std::move(pipeline)), folder.path(kTokenizerFile)};
  if (files.tokenizer.size() > rows) {
    throw FileError(files.path, "has tokens up to the id " + std::to_string(files.tokenizer.size() - 1) +
                                    ", expected at most the vocab_size of config.json, " + std::to_string(rows));
  }
  if (own != nullptr) files.types = false;
  for (const std::string& token : special_names(sources)) {
    if (const auto id = files.tokenizer.id(token)) files.special.push_back(*id);
  }
  std::sort(files.special.begin(), files.special.end());
  if (!sources.config) return files;
  const JsonValue& config = *sources.config;
  check_ends(config, files.tokenizer, "add_bos_token", "bos_token", false);
  check_ends(config, files.tokenizer, "add_eos_token", "eos_token", true);
  if (const auto types = says_types(config)) files.types = types;
  files.model_max_length = config.number("model_max_length");
  if (!files.model_max_length) files.model_max_length = config.number("max_len");
  return files;
}

}  // namespace headlight::models
