#include "models/tokenizers/text_tokenizer_files.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <string_view>
#include <utility>

#include "headlight/models/errors.h"
#include "models/tokenizers/listed_tokens.h"
#include "models/tokenizers/tokenizer_files.h"

namespace headlight::models {
namespace {

using files::JsonValue;

// Those whose tokenizer.json says all of them; each also with Fast at its end.
constexpr std::array<std::string_view, 15> kTextClasses{
    "PreTrainedTokenizer", "TokenizersBackend", "RobertaTokenizer", "XLMRobertaTokenizer", "CamembertTokenizer",
    "GPT2Tokenizer",       "Qwen2Tokenizer",    "GemmaTokenizer",   "LlamaTokenizer",      "BartTokenizer",
    "MPNetTokenizer",      "AlbertTokenizer",   "T5Tokenizer",      "CodeGenTokenizer",    "GPTNeoXTokenizer"};

// Tokens that have no name; those that have one are whatever ends in "_token".
constexpr std::array<const char*, 2> kTokenLists = {"extra_special_tokens", "additional_special_tokens"};

// clang-format off
constexpr FolderKey kTextKeys[] = {
    {"tokenizer_config.json", "tokenizer_class", Treatment::read, "", "`PreTrainedTokenizerFast`, `TokenizersBackend`, or `Roberta`, `XLMRoberta`, `Camembert`, `GPT2`, `Qwen2`, `Gemma`, `Llama`, `Bart`, `MPNet`, `Albert`, `T5`, `CodeGen`, `GPTNeoX` before `Tokenizer`, each also with `Fast`"},
    {"tokenizer_config.json", "added_tokens_decoder", Treatment::read, "", "must agree with added_tokens of tokenizer.json; so must all tokens below"},
    {"tokenizer_config.json", "add_prefix_space", Treatment::read, "", "must agree with the pre_tokenizer of tokenizer.json"},
    {"tokenizer_config.json", "add_bos_token", Treatment::read, "", "must agree with the post_processor of tokenizer.json"},
    {"tokenizer_config.json", "add_eos_token", Treatment::read, "", "the same"},
    {"tokenizer_config.json", "model_input_names", Treatment::read, "", "whether pairs have types of tokens"},
    {"tokenizer_config.json", "do_lower_case", Treatment::no_effect, "", "tokenizer.json says so, and the next two"},
    {"tokenizer_config.json", "strip_accents", Treatment::no_effect, "", ""},
    {"tokenizer_config.json", "tokenize_chinese_chars", Treatment::no_effect, "", ""},
    {"tokenizer_config.json", "whole_words", Treatment::refused, "false", ""},
    {"tokenizer_config.json", "sp_model_kwargs", Treatment::no_effect, "", "of slow tokenizers, as the next three"},
    {"tokenizer_config.json", "legacy", Treatment::no_effect, "", ""},
    {"tokenizer_config.json", "keep_accents", Treatment::no_effect, "", ""},
    {"tokenizer_config.json", "remove_space", Treatment::no_effect, "", ""},
    {"tokenizer_config.json", "trim_offsets", Treatment::no_effect, "", "of places in the text"},
    {"tokenizer_config.json", "use_default_system_prompt", Treatment::no_effect, "", "of chats"},
};
// clang-format on

struct FileParts {
  JsonValue tokenizer;
  std::map<std::string, ListedToken, std::less<>> added;
};

std::string class_of(const ModelFolder& folder, const std::optional<std::string>& otherwise,
                     std::string_view of_family) {
  if (folder.has(kTokenizerConfigFile)) {
    const auto own = folder.json(kTokenizerConfigFile).string("tokenizer_class");
    if (own) return *own;
  }
  return otherwise.value_or(std::string(of_family));
}

// That what `value` names is a token that tokenizer.json matches in the text, since Transformers would add it.
void check_added(const JsonValue& value, const FileParts& parts) {
  const ListedToken token = read_listed_token(value, true);
  if (token.token.content.empty() || parts.added.contains(token.token.content)) return;
  value.fail("is " + in_quotes(token.token.content) + ", expected one of added_tokens of tokenizer.json");
}

void check_named(const JsonValue& config, const FileParts& parts) {
  for (const auto& [key, value] : config.members()) {
    if (key.ends_with("_token") && (value.as_string() || value.is_object())) check_added(value, parts);
  }
  for (const char* const key : kTokenLists) {
    const auto list = config.find(key);
    if (!list) continue;
    if (!list->is_array() && !list->is_object()) list->fail("is " + list->described() + ", expected a list");
    for (const JsonValue& value : list->elements()) check_added(value, parts);
    for (const auto& [name, value] : list->members()) check_added(value, parts);
  }
}

void check_decoder(const JsonValue& decoder, const FileParts& parts) {
  for (const auto& [key, value] : decoder.members()) {
    const AddedToken here = read_listed_token(value, false).token;
    const auto found = parts.added.find(here.content);
    bool same = found != parts.added.end();
    if (same) {
      const AddedToken& there = found->second.token;
      same = std::to_string(there.id) == key && there.single_word == here.single_word && there.lstrip == here.lstrip &&
             there.rstrip == here.rstrip && there.normalized == here.normalized;
    }
    if (!same) value.fail("is " + in_quotes(here.content) + ", expected the same in added_tokens of tokenizer.json");
  }
}

// ByteLevel and Metaspace, wherever they stand in the pre_tokenizer, put a space before the text or not.
void check_prefix_space(const JsonValue& config, const FileParts& parts) {
  const auto wanted = config.boolean("add_prefix_space");
  const auto part = parts.tokenizer.object("pre_tokenizer");
  if (!wanted || !part) return;
  const auto check = [&](const JsonValue& one) {
    const auto there = one.is_object() ? one.boolean("add_prefix_space") : std::nullopt;
    if (there && *there != *wanted) {
      config.fail("add_prefix_space", "is " + std::string(*wanted ? "true" : "false") +
                                          ", expected what the pre_tokenizer of tokenizer.json says");
    }
  };
  const auto list = part->array("pretokenizers");
  if (!list) return check(*part);
  for (const JsonValue& one : list->elements()) check(one);
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
  config.fail(key, "is " + std::string(*wanted ? "true" : "false") +
                       ", expected what the post_processor of tokenizer.json does");
}

}  // namespace

std::span<const FolderKey> text_tokenizer_keys() noexcept { return kTextKeys; }

bool has_bert_tokenizer(const ModelFolder& folder, const std::optional<std::string>& tokenizer_class,
                        std::string_view of_family) {
  std::string name = class_of(folder, tokenizer_class, of_family);
  constexpr std::string_view kFast = "Fast";
  const bool whole_file = name == "PreTrainedTokenizerFast" || name == "TokenizersBackend";
  if (name.ends_with(kFast)) name.resize(name.size() - kFast.size());
  if (std::find(kTextClasses.begin(), kTextClasses.end(), name) == kTextClasses.end()) return true;
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

TextTokenizerFiles read_text_tokenizer_files(const ModelFolder& folder, std::int64_t rows,
                                             std::vector<std::string>& unknown) {
  FileParts parts{folder.json(kTokenizerFile, JsonValue::kLargestFile), {}};
  if (const auto added = parts.tokenizer.array("added_tokens")) {
    for (const JsonValue& one : added->elements()) {
      ListedToken token = read_listed_token(one, false);
      std::string content = token.token.content;
      parts.added.insert_or_assign(std::move(content), std::move(token));
    }
  }
  TextTokenizerFiles files{text::Tokenizer::parse(parts.tokenizer), folder.path(kTokenizerFile), {}, true};
  if (files.tokenizer.size() > rows) {
    throw FileError(files.path, "has tokens up to the id " + std::to_string(files.tokenizer.size() - 1) +
                                    ", expected at most the vocab_size of config.json, " + std::to_string(rows));
  }
  if (folder.has(kSpecialTokensFile)) {
    const JsonValue special = folder.json(kSpecialTokensFile);
    check_keys(special, kSpecialTokensFile, "", unknown);
    check_named(special, parts);
  }
  if (!folder.has(kTokenizerConfigFile)) return files;
  const JsonValue config = folder.json(kTokenizerConfigFile);
  check_keys(config, kTokenizerConfigFile, "", unknown, kTextKeys);
  if (const auto decoder = config.object("added_tokens_decoder")) check_decoder(*decoder, parts);
  check_named(config, parts);
  check_prefix_space(config, parts);
  check_ends(config, files.tokenizer, "add_bos_token", "bos_token", false);
  check_ends(config, files.tokenizer, "add_eos_token", "eos_token", true);
  if (const auto names = config.array("model_input_names")) {
    files.types = false;
    for (const JsonValue& name : names->elements()) {
      if (name.as_string() == "token_type_ids") files.types = true;
    }
  }
  files.model_max_length = config.number("model_max_length");
  if (!files.model_max_length) files.model_max_length = config.number("max_len");
  return files;
}

}  // namespace headlight::models
