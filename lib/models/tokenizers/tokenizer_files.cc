#include "models/tokenizers/tokenizer_files.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <string_view>
#include <utility>

#include "headlight/models/errors.h"
#include "models/folder_keys.h"
#include "models/tokenizers/listed_tokens.h"
#include "models/tokenizers/tokenizer_json.h"
#include "models/tokenizers/vocabulary.h"
#include "text/characters.h"
#include "text/utf8.h"

namespace headlight::models {
namespace {

using files::JsonValue;

// What a tokenizer_class makes of tokenizer.json beside tokenizer_config.json.
enum class Class : std::uint8_t {
  bert,     // takes its vocabulary and its added tokens alone, and options from tokenizer_config.json
  derived,  // the same in some versions of Transformers, in others all of it: they must agree
  file,     // takes all of it
};

constexpr std::array<std::pair<std::string_view, Class>, 12> kClasses{{
    {"BertTokenizer", Class::bert},
    {"BertTokenizerFast", Class::bert},
    {"ElectraTokenizer", Class::bert},
    {"ElectraTokenizerFast", Class::bert},
    {"MobileBertTokenizer", Class::bert},
    {"MobileBertTokenizerFast", Class::bert},
    {"LxmertTokenizer", Class::bert},
    {"LxmertTokenizerFast", Class::bert},
    {"DistilBertTokenizer", Class::derived},
    {"DistilBertTokenizerFast", Class::derived},
    {"PreTrainedTokenizerFast", Class::file},
    {"TokenizersBackend", Class::file},
}};

class Reader {
 public:
  Reader(const ModelFolder& folder, const std::optional<std::string>& tokenizer_class, bool whole_file,
         std::vector<std::string>& unknown)
      : folder_(folder), whole_file_(whole_file) {
    if (folder.has(kTokenizerConfigFile)) {
      config_ = folder.json(kTokenizerConfigFile);
      check_keys(*config_, kTokenizerConfigFile, "", unknown);
    }
    // Older files than added_tokens_decoder; whoever has that looks at no others.
    if (!config_ || !config_->find("added_tokens_decoder")) {
      if (folder.has(kSpecialTokensFile)) {
        special_ = read_special_tokens(folder, unknown);
      }
      if (folder.has(kAddedTokensFile)) added_ = folder.json(kAddedTokensFile);
    }
    class_ = class_of(tokenizer_class);
    if (class_ != Class::file) types_ = class_ == Class::bert;
    if (const auto said = config_ ? says_types(*config_) : std::nullopt) types_ = said;
    if (whole_file && class_ == Class::bert) class_ = Class::derived;
    if (folder.has(kTokenizerFile)) json_ = read_tokenizer_json(folder);
  }

  TokenizerFiles read(std::int64_t rows) {
    TokenizerFiles files;
    files.options = options();
    if (json_) {
      files.path = json_->path;
      files.vocabulary = std::move(json_->vocabulary);
      files.limit = json_->limit;
      files.unread_pairs = json_->unread_pairs;
    } else {
      if (!folder_.has(kVocabularyFile))
        folder_.fail("holds neither tokenizer.json nor vocab.txt, expected one of them");
      files.path = folder_.path(kVocabularyFile);
      std::vector<std::string> lines = read_vocabulary();
      // Line ends that an editor left behind.
      while (std::ssize(lines) > rows && lines.back().empty()) lines.pop_back();
      files.vocabulary = text::TokenList::of(std::move(lines));
    }
    if (static_cast<std::int64_t>(files.vocabulary.size()) > rows) {
      throw FileError(files.path, "has " + std::to_string(files.vocabulary.size()) +
                                      " tokens, expected at most the vocab_size of config.json, " +
                                      std::to_string(rows));
    }
    const std::size_t for_order = files.vocabulary.size() * sizeof(std::uint32_t);
    files.limit.take(for_order);
    files.options.added_tokens =
        number_tokens(added_tokens(), files.vocabulary, rows, json_ && json_->has_gaps, files.path);
    files.limit.give_back(for_order);
    if (json_) files.limit.give_back(json_->document_memory);  // which ends with this
    if (config_) {
      files.model_max_length = config_->number("model_max_length");
      if (!files.model_max_length) files.model_max_length = config_->number("max_len");
    }
    files.types = types_;
    files.options.token_types = types_.value_or(true);
    return files;
  }

 private:
  [[nodiscard]] Class class_of(const std::optional<std::string>& of_config) const {
    const auto own = config_ ? config_->string("tokenizer_class") : std::nullopt;
    const std::string name = own ? *own : of_config.value_or("BertTokenizer");
    const auto* const known =
        std::find_if(kClasses.begin(), kClasses.end(), [&](const auto& entry) { return entry.first == name; });
    const std::string path = folder_.path(own ? kTokenizerConfigFile : kConfigFile);
    if (known == kClasses.end()) {
      throw FileError(path, "tokenizer_class is " + in_quotes(name) +
                                ", expected BertTokenizer or another of docs/model-folders.md");
    }
    if (known->second == Class::file && !folder_.has(kTokenizerFile)) {
      throw FileError(path, "tokenizer_class is " + in_quotes(name) + ", expected a tokenizer.json in the folder");
    }
    return known->second;
  }

  // The lines of vocab.txt, of which Transformers 5 drops white space at the end, and Transformers 4 does not.
  [[nodiscard]] std::vector<std::string> read_vocabulary() const {
    const std::string path = folder_.path(kVocabularyFile),
                      text = folder_.text(kVocabularyFile, kLargestVocabularyFile);
    if (text.starts_with("\xEF\xBB\xBF")) {
      throw FileError(path, "begins with a byte order mark, expected none: it would be a part of the first token");
    }
    std::vector<std::string> lines = vocabulary_lines(text, path);
    const auto is_blank = [](const std::string& line) { return without_white_space_at_end(line).empty(); };
    const auto blanks = std::count_if(lines.begin(), lines.end(), is_blank);
    for (std::size_t number = 0; number < lines.size(); ++number) {
      const std::string_view token = without_white_space_at_end(lines[number]);
      if (token.size() == lines[number].size() || (token.empty() && blanks == 1)) continue;
      throw FileError(path, "line " + std::to_string(number + 1) + " is " + in_quotes(lines[number]) +
                                ", expected no white space at its end");
    }
    return lines;
  }

  [[nodiscard]] bool boolean(const char* key, bool otherwise) const {
    return config_ ? config_->boolean(key).value_or(otherwise) : otherwise;
  }

  // A token that has a name: special_tokens_map.json comes first, even with null.
  [[nodiscard]] std::optional<ListedToken> named(std::string_view key) const {
    for (const auto& file : {special_, config_}) {
      if (!file || !file->contains(key)) continue;
      const auto value = file->find(key);
      if (!value) return std::nullopt;
      ListedToken token = read_listed_token(*value, true);
      if (!value->is_object() || !value->find("normalized")) token.token.normalized = false;
      token.token.special = true;
      token.has_id = false;
      return token;
    }
    return std::nullopt;
  }
  [[nodiscard]] std::string name_of(const char* key) const {
    const auto token = named(key);
    return token ? token->token.content : default_of(key);
  }
  // The same of a token that stands around a text. For null Transformers 5 takes the id 2 or 3, other versions none.
  [[nodiscard]] std::string name_around(const char* key) const {
    for (const auto& file : {special_, config_}) {
      if (!file || !file->contains(key)) continue;
      if (!file->find(key)) file->fail(key, "is null, expected a token");
      break;
    }
    return name_of(key);
  }

  [[nodiscard]] TokenizerOptions options() const {
    const bool own = class_ != Class::file;
    TokenizerOptions options = own ? TokenizerOptions() : json_->options;
    options.pad_token = name_of("pad_token");
    options.mask_token = name_of("mask_token");
    options.whole_words = boolean("whole_words", false);
    if (options.whole_words && json_) {
      throw FileError(folder_.path(kTokenizerConfigFile), "whole_words is true, expected no tokenizer.json beside it");
    }
    if (!own) return options;
    options.unk_token = name_of("unk_token");
    options.cls_token = name_around("cls_token");
    options.sep_token = name_around("sep_token");
    options.lower_case = boolean("do_lower_case", true);
    options.strip_accents = config_ ? config_->boolean("strip_accents") : std::nullopt;
    options.split_ideographs = boolean("tokenize_chinese_chars", true);
    if (json_) check_agreement(options);
    return options;
  }

  // That tokenizer.json says nothing that this class passes over, or that only some versions of Transformers heed.
  void check_agreement(const TokenizerOptions& own) const {
    const auto agree = [&](bool same, const char* key, const std::string& says, const std::string& expected) {
      if (same) return;
      throw FileError(json_->path, std::string(key) + " is " + says + ", expected " + expected +
                                       " for this tokenizer_class (see docs/model-folders.md)");
    };
    const auto truth = [](bool value) { return std::string(value ? "true" : "false"); };
    const TokenizerOptions& file = json_->options;
    agree(json_->has_normalizer, "normalizer", "null", "BertNormalizer");
    agree(file.clean_text, "normalizer.clean_text", "false", "true");
    agree(file.unk_token == own.unk_token, "model.unk_token", in_quotes(file.unk_token), in_quotes(own.unk_token));
    agree(file.subword_prefix == own.subword_prefix, "model.continuing_subword_prefix", in_quotes(file.subword_prefix),
          in_quotes(own.subword_prefix));
    agree(file.longest_word == own.longest_word, "model.max_input_chars_per_word", std::to_string(file.longest_word),
          std::to_string(own.longest_word));
    agree(file.cls_token == own.cls_token, "post_processor", "begun by " + in_quotes(file.cls_token),
          in_quotes(own.cls_token));
    agree(file.sep_token == own.sep_token, "post_processor", "ended by " + in_quotes(file.sep_token),
          in_quotes(own.sep_token));
    if (class_ != Class::derived) return;
    agree(file.lower_case == own.lower_case, "normalizer.lowercase", truth(file.lower_case), truth(own.lower_case));
    agree(file.split_ideographs == own.split_ideographs, "normalizer.handle_chinese_chars",
          truth(file.split_ideographs), truth(own.split_ideographs));
    const bool strips = file.strip_accents.value_or(file.lower_case);
    const bool own_strips = own.strip_accents.value_or(own.lower_case);
    agree(strips == own_strips, "normalizer.strip_accents", truth(strips), truth(own_strips));
  }

  // All tokens that Transformers adds, in its order.
  [[nodiscard]] ListedTokens added_tokens() const {
    ListedTokens tokens;
    const auto decoder = config_ ? config_->object("added_tokens_decoder") : std::nullopt;
    if (json_ && class_ == Class::file) {
      for (const ListedToken& token : json_->added) tokens.add(token);
    }
    std::vector<ListedToken> by_id = decoder ? of_decoder(*decoder) : of_older_files();
    std::stable_sort(by_id.begin(), by_id.end(),
                     [](const ListedToken& a, const ListedToken& b) { return a.token.id < b.token.id; });
    for (const ListedToken& token : by_id) tokens.add(token);
    for (const char* const key : kNamedTokens) {
      if (auto token = named(key)) {
        tokens.add_unless_there(*std::move(token));
      } else if (const std::string name = default_of(key); !name.empty()) {
        check_default(name, key);
        tokens.add_unless_there({.token = {.content = name}, .needs_piece = name != "[MASK]"});
      }
    }
    add_special(tokens);
    check_none_forgotten(tokens, decoder.has_value());
    return tokens;
  }

  // Beside a class of BERT's Transformers 4 adds the class's tokens, and Transformers 5 those of the file alone, where
  // it takes all of it.
  void check_default(const std::string& name, const char* key) const {
    if (!whole_file_ || !json_) return;
    const auto is_it = [&](const ListedToken& token) { return token.token.content == name; };
    if (std::any_of(json_->added.begin(), json_->added.end(), is_it)) return;
    throw FileError(json_->path,
                    "added_tokens lacks " + in_quotes(name) + ", the " + key + " for this tokenizer_class");
  }

  // The name of a token that no file names; none for null, which takes [PAD] and [MASK] away.
  [[nodiscard]] std::string default_of(std::string_view key) const {
    if (class_ == Class::file) return "";
    if (key == "unk_token") return "[UNK]";
    if (key == "sep_token") return "[SEP]";
    if (key == "cls_token") return "[CLS]";
    const bool taken_away = (config_ && config_->contains(key)) || (special_ && special_->contains(key));
    if (key == "pad_token" && !taken_away) return "[PAD]";
    return key == "mask_token" && !taken_away ? "[MASK]" : "";
  }

  static std::vector<ListedToken> of_decoder(const JsonValue& decoder) {
    std::vector<ListedToken> tokens;
    for (const auto& [key, value] : decoder.members()) {
      ListedToken token = read_listed_token(value, false);
      const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), token.token.id);
      if (error != std::errc() || end != key.data() + key.size()) value.fail("has a key that is no id");
      token.has_id = true;
      tokens.push_back(std::move(token));
    }
    return tokens;
  }

  [[nodiscard]] std::vector<ListedToken> of_older_files() const {
    std::vector<ListedToken> tokens;
    if (added_) {
      const ListedTokens beside = named_or_listed();
      std::set<std::string_view> of_json;
      if (json_) {
        for (const ListedToken& token : json_->added) of_json.insert(token.token.content);
      }
      for (const auto& [content, value] : added_->members()) {
        tokens.push_back(of_added_file(content, value, beside, of_json.contains(content)));
      }
    }
    if (json_) tokens.insert(tokens.end(), json_->added.begin(), json_->added.end());
    return tokens;
  }

  // The tokens that files name or list beside added_tokens.json, of which `special` says whether all versions of
  // Transformers take them for special ones: those that have a name, or stand in a list. An object counts in
  // special_tokens_map.json alone, and additional_special_tokens in tokenizer_config.json alone.
  [[nodiscard]] ListedTokens named_or_listed() const {
    ListedTokens tokens;
    for (const auto* const file : {&special_, &config_}) {
      if (!*file) continue;
      const bool is_map = file == &special_;
      const auto add = [&](const JsonValue& value, bool is_clear) {
        if (!value.as_string() && !value.is_object()) return;
        ListedToken token = read_listed_token(value, true);
        const ListedToken* const there = tokens.find(token.token.content);
        token.token.special = (is_clear && (is_map || value.as_string())) || (there != nullptr && there->token.special);
        tokens.add(std::move(token));
      };
      for (const auto& [key, value] : (*file)->members()) {
        const bool has_name = std::find(kNamedTokens.begin(), kNamedTokens.end(), key) != kNamedTokens.end();
        const bool is_overridden = has_name && !is_map && special_ && special_->contains(key);
        if (key.ends_with("_token") && !is_overridden) add(value, has_name);
      }
      for (const char* const key : kTokenLists) {
        const auto list = (*file)->find(key);
        if (!list) continue;
        for (const JsonValue& value : list->elements()) add(value, !is_map || key == kTokenLists[0]);
        for (const auto& [name, value] : list->members()) add(value, false);
      }
    }
    return tokens;
  }

  // A token of added_tokens.json; `is_of_json`: tokenizer.json has it, too, and comes after it.
  static ListedToken of_added_file(std::string_view content, const JsonValue& value, const ListedTokens& beside,
                                   bool is_of_json) {
    if (!value.as_integer()) value.fail("is " + value.described() + ", expected the id of a token");
    const ListedToken* const known = beside.find(content);
    const bool is_special = known != nullptr && known->token.special;
    if (known != nullptr && !is_special && !is_of_json) {
      value.fail("is listed in " + known->place->place() +
                 ", too, expected it in one of them: versions of Transformers disagree whether it is special");
    }
    return {.token = {.content = std::string(content),
                      .id = *value.as_integer(),
                      .normalized = !is_special,
                      .special = is_special},
            .has_id = true,
            .place = value};
  }

  // Lists of tokens, tokens by name, and whatever else has a key that ends in "_token".
  void add_special(ListedTokens& tokens) const {
    const auto add = [&](const JsonValue& value) {
      ListedToken token = read_listed_token(value, true);
      token.has_id = false;
      tokens.add_unless_there(std::move(token));
    };
    for (const auto& file : {config_, special_}) {
      if (!file) continue;
      for (const auto& [key, value] : file->members()) {
        const bool is_named = std::find(kNamedTokens.begin(), kNamedTokens.end(), key) != kNamedTokens.end();
        if (!key.ends_with("_token") || is_named) continue;
        if (value.is_object() && value.path() == folder_.path(kTokenizerConfigFile)) {
          value.fail("is an object, expected a text, for Transformers passes an object over");
        }
        if (value.as_string() || value.is_object()) add(value);
      }
      bool any = false;
      for (const char* const key : kTokenLists) {
        const auto list = file->find(key);
        if (!list) continue;
        if (!list->is_array() && !list->is_object()) list->fail("is " + list->described() + ", expected a list");
        if (list->elements().empty() && list->members().empty()) continue;
        // Transformers 5 passes the second over.
        if (any) file->fail(key, "has tokens, expected none beside " + std::string(kTokenLists[0]));
        any = true;
        for (const JsonValue& value : list->elements()) add(value);
        for (const auto& [name, value] : list->members()) add(value);
      }
    }
  }

  // Where added_tokens_decoder lists tokens, some versions of Transformers match those of tokenizer.json beside them,
  // others do not.
  void check_none_forgotten(const ListedTokens& tokens, bool has_decoder) const {
    if (!json_ || !has_decoder) return;
    for (const ListedToken& token : json_->added) {
      if (tokens.find(token.token.content) != nullptr || token.token.content.empty()) continue;
      token.place->fail("is " + in_quotes(token.token.content) +
                        ", expected the same in added_tokens_decoder of tokenizer_config.json");
    }
  }

  const ModelFolder& folder_;
  bool whole_file_;
  std::optional<JsonValue> config_, special_, added_;
  std::optional<TokenizerJson> json_;
  Class class_ = Class::bert;
  std::optional<bool> types_;
};

}  // namespace

std::optional<bool> says_types(const JsonValue& tokenizer_config) {
  const auto inputs = tokenizer_config.array("model_input_names");
  if (!inputs) return std::nullopt;
  for (const JsonValue& name : inputs->elements()) {
    if (name.as_string() == "token_type_ids") return true;
  }
  return false;
}

TokenizerFiles read_tokenizer_files(const ModelFolder& folder, const std::optional<std::string>& tokenizer_class,
                                    bool whole_file, std::int64_t rows, std::vector<std::string>& unknown) {
  return Reader(folder, tokenizer_class, whole_file, unknown).read(rows);
}

}  // namespace headlight::models
