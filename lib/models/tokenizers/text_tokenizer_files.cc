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

// Those that split texts by ByteLevel, which Transformers makes anew from add_prefix_space.
constexpr std::array<std::string_view, 6> kByteClasses{"RobertaTokenizer", "BartTokenizer",    "GPT2Tokenizer",
                                                       "Qwen2Tokenizer",   "CodeGenTokenizer", "GPTNeoXTokenizer"};

// Tokens that have no name; those that have one are whatever ends in "_token".
constexpr std::array<const char*, 2> kTokenLists = {"extra_special_tokens", "additional_special_tokens"};

// clang-format off
constexpr FolderKey kTextKeys[] = {
    {"tokenizer_config.json", "tokenizer_class", Treatment::read, "", "`PreTrainedTokenizerFast`, `TokenizersBackend`, or `Roberta`, `XLMRoberta`, `Camembert`, `GPT2`, `Qwen2`, `Gemma`, `Llama`, `Bart`, `MPNet`, `Albert`, `T5`, `CodeGen`, `GPTNeoX` before `Tokenizer`, each also with `Fast`"},
    {"tokenizer_config.json", "added_tokens_decoder", Treatment::read, "", "must agree with added_tokens of tokenizer.json; so must all tokens below"},
    {"tokenizer_config.json", "add_prefix_space", Treatment::read, "", "must agree with the pre_tokenizer of tokenizer.json; false for the ByteLevel of classes that have one where it is missing"},
    {"tokenizer_config.json", "add_bos_token", Treatment::read, "", "must agree with the post_processor of tokenizer.json"},
    {"tokenizer_config.json", "add_eos_token", Treatment::read, "", "the same"},
    {"tokenizer_config.json", "model_input_names", Treatment::read, "", "whether pairs have types of tokens"},
    {"tokenizer_config.json", "do_lower_case", Treatment::read, "", "tokenizer.json says so, and the next two; those of `MPNet` must agree with it, as BERT's where they are missing"},
    {"tokenizer_config.json", "strip_accents", Treatment::read, "", ""},
    {"tokenizer_config.json", "tokenize_chinese_chars", Treatment::read, "", ""},
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

std::string without_fast(std::string name) {
  constexpr std::string_view kFast = "Fast";
  if (name.ends_with(kFast)) name.resize(name.size() - kFast.size());
  return name;
}

std::string class_of(const ModelFolder& folder, const std::optional<std::string>& otherwise,
                     std::string_view of_family) {
  if (folder.has(kTokenizerConfigFile)) {
    const auto own = folder.json(kTokenizerConfigFile).string("tokenizer_class");
    if (own) return *own;
  }
  return otherwise.value_or(std::string(of_family));
}

// That the model is of the kind of its class: Transformers 5 makes one of that kind of any vocabulary. LlamaTokenizer
// and GemmaTokenizer have been of several kinds.
void check_kind(const JsonValue& tokenizer, std::string_view class_name) {
  struct Kind {
    std::string_view class_name;
    const char* model;
  };
  constexpr std::array<Kind, 11> kKinds{{{"RobertaTokenizer", "BPE"},
                                         {"BartTokenizer", "BPE"},
                                         {"GPT2Tokenizer", "BPE"},
                                         {"Qwen2Tokenizer", "BPE"},
                                         {"CodeGenTokenizer", "BPE"},
                                         {"GPTNeoXTokenizer", "BPE"},
                                         {"XLMRobertaTokenizer", "Unigram"},
                                         {"CamembertTokenizer", "Unigram"},
                                         {"T5Tokenizer", "Unigram"},
                                         {"AlbertTokenizer", "Unigram"},
                                         {"MPNetTokenizer", "WordPiece"}}};
  const auto* const known =
      std::find_if(kKinds.begin(), kKinds.end(), [&](const Kind& one) { return one.class_name == class_name; });
  const auto model = tokenizer.object("model");
  const auto type = model ? model->string("type") : std::nullopt;
  if (known == kKinds.end() || !type || *type == known->model) return;
  model->fail("type", "is " + in_quotes(*type) + ", expected " + known->model + " for the tokenizer_class " +
                          in_quotes(class_name));
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

const char* word(bool value) { return value ? "true" : "false"; }

// Whether a part of a pre_tokenizer puts a space before the text.
std::optional<bool> prefix_space_of(const JsonValue& part) {
  if (!part.is_object()) return std::nullopt;
  const auto scheme = part.string("prepend_scheme");
  return scheme ? std::optional(*scheme != "never") : part.boolean("add_prefix_space");
}

// ByteLevel and Metaspace, wherever they stand in the pre_tokenizer, put a space before the text or not. Classes that
// split by ByteLevel do not, unless tokenizer_config.json says so.
void check_prefix_space(const JsonValue& config, const FileParts& parts, std::string_view class_name) {
  const auto wanted = config.boolean("add_prefix_space");
  const auto part = parts.tokenizer.object("pre_tokenizer");
  if (!part) return;
  const auto list = part->array("pretokenizers");
  const bool is_of_bytes = std::find(kByteClasses.begin(), kByteClasses.end(), class_name) != kByteClasses.end();
  const auto check = [&](const JsonValue& one) {
    const auto there = prefix_space_of(one);
    const bool never = one.is_object() && one.string("type") == "ByteLevel" && is_of_bytes;
    if (there && *there != wanted.value_or(never ? false : *there)) {
      config.fail("add_prefix_space", std::string("is ") + (wanted ? word(*wanted) : "missing") +
                                          ", expected what the pre_tokenizer of tokenizer.json says");
    }
  };
  if (!list) return check(*part);
  for (const JsonValue& one : list->elements()) check(one);
}

// Transformers makes the normalizer of MPNet anew from these keys.
void check_normalizer(const JsonValue& config, const FileParts& parts) {
  const auto part = parts.tokenizer.object("normalizer");
  if (!part || part->string("type") != "BertNormalizer") return;
  const auto agree = [&](const char* key, bool wanted, bool there) {
    if (wanted == there) return;
    config.fail(key, std::string("is ") + (config.find(key) ? "" : "missing, that is ") + word(wanted) +
                         ", expected what the normalizer of tokenizer.json says");
  };
  const bool lower = config.boolean("do_lower_case").value_or(true);
  const bool there = part->boolean("lowercase").value_or(true);
  agree("do_lower_case", lower, there);
  agree("strip_accents", config.boolean("strip_accents").value_or(lower),
        part->boolean("strip_accents").value_or(there));
  agree("tokenize_chinese_chars", config.boolean("tokenize_chinese_chars").value_or(true),
        part->boolean("handle_chinese_chars").value_or(true));
}

// What Transformers adds where tokenizer_config.json lists no tokens itself.
void check_added_file(const ModelFolder& folder, const FileParts& parts) {
  if (!folder.has(kAddedTokensFile)) return;
  const JsonValue tokens = folder.json(kAddedTokensFile);
  for (const auto& [content, value] : tokens.members()) {
    const auto found = parts.added.find(content);
    if (found != parts.added.end() && found->second.token.id == value.as_integer()) continue;
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
  config.fail(key, std::string("is ") + word(*wanted) + ", expected what the post_processor of tokenizer.json does");
}

// Classes that put tokens around a text by their names, whatever the post_processor says.
void check_around(const JsonValue& config, const text::Tokenizer& tokenizer, std::string_view class_name) {
  struct Around {
    std::string_view class_name;
    const char *first, *last;
  };
  constexpr std::array<Around, 5> kAround{{{"RobertaTokenizer", "cls_token", "sep_token"},
                                           {"BartTokenizer", "cls_token", "sep_token"},
                                           {"MPNetTokenizer", "cls_token", "sep_token"},
                                           {"XLMRobertaTokenizer", "bos_token", "eos_token"},
                                           {"CamembertTokenizer", "bos_token", "eos_token"}}};
  const auto* const known =
      std::find_if(kAround.begin(), kAround.end(), [&](const Around& one) { return one.class_name == class_name; });
  const std::vector<std::int64_t> ids = tokenizer.encode("");
  if (known == kAround.end() || ids.empty()) return;
  for (const auto& [key, id] : {std::pair(known->first, ids.front()), std::pair(known->last, ids.back())}) {
    const auto value = config.find(key);
    if (!value) continue;
    const std::string token = read_listed_token(*value, true).token.content;
    if (tokenizer.id(token) != std::optional(id)) {
      config.fail(key, "is " + in_quotes(token) + ", expected the token of the post_processor of tokenizer.json");
    }
  }
}

}  // namespace

std::span<const FolderKey> text_tokenizer_keys() noexcept { return kTextKeys; }

bool has_bert_tokenizer(const ModelFolder& folder, const std::optional<std::string>& tokenizer_class,
                        std::string_view of_family) {
  std::string name = class_of(folder, tokenizer_class, of_family);
  const bool whole_file = name == "PreTrainedTokenizerFast" || name == "TokenizersBackend";
  name = without_fast(std::move(name));
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

TextTokenizerFiles read_text_tokenizer_files(const ModelFolder& folder,
                                             const std::optional<std::string>& tokenizer_class, std::int64_t rows,
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
  check_truncation(parts.tokenizer);
  if (!folder.has(kTokenizerConfigFile)) {
    check_kind(parts.tokenizer, without_fast(tokenizer_class.value_or("")));
    check_added_file(folder, parts);
    return files;
  }
  const JsonValue config = folder.json(kTokenizerConfigFile);
  check_keys(config, kTokenizerConfigFile, "", unknown, kTextKeys);
  const auto own_class = config.string("tokenizer_class");
  check_kind(parts.tokenizer, without_fast(own_class ? *own_class : tokenizer_class.value_or("")));
  const auto decoder = config.object("added_tokens_decoder");
  if (decoder) check_decoder(*decoder, parts);
  if (!decoder) check_added_file(folder, parts);
  check_named(config, parts);
  const std::string class_name = without_fast(own_class.value_or(""));
  check_prefix_space(config, parts, class_name);
  if (class_name == "MPNetTokenizer") check_normalizer(config, parts);
  check_around(config, files.tokenizer, class_name);
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
