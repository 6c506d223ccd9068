#include "models/tokenizers/tokenizer_files.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "headlight/models/errors.h"
#include "models/folder_keys.h"
#include "models/tokenizers/bert_tokens.h"
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
      : folder_(folder) {
    if (folder.has(kTokenizerConfigFile)) {
      sources_.config = folder.json(kTokenizerConfigFile);
      check_keys(*sources_.config, kTokenizerConfigFile, "", unknown);
    }
    // Older files than added_tokens_decoder; whoever has that looks at no others.
    if (!sources_.config || !sources_.config->find("added_tokens_decoder")) {
      if (folder.has(kSpecialTokensFile)) {
        sources_.special = read_special_tokens(folder, unknown);
      }
      if (folder.has(kAddedTokensFile)) sources_.added = folder.json(kAddedTokensFile);
    }
    class_ = class_of(tokenizer_class);
    if (class_ != Class::file) types_ = class_ == Class::bert;
    if (const auto said = sources_.config ? says_types(*sources_.config) : std::nullopt) types_ = said;
    if (whole_file && class_ == Class::bert) class_ = Class::derived;
    sources_.takes_file = class_ == Class::file;
    sources_.family_takes_file = whole_file;
    if (!folder.has(kTokenizerFile)) return;
    sources_.json = read_tokenizer_json(folder);
    check_padding(*sources_.json->document, sources_.config, sources_.special);
  }

  TokenizerFiles read(std::int64_t rows) {
    TokenizerFiles files;
    files.options = options();
    if (sources_.json) {
      files.path = sources_.json->path;
      files.vocabulary = std::move(sources_.json->vocabulary);
      files.limit = sources_.json->limit;
      files.unread_pairs = sources_.json->unread_pairs;
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
    files.options.added_tokens = number_tokens(added_tokens(sources_), files.vocabulary, rows,
                                               sources_.json && sources_.json->has_gaps, files.path);
    files.limit.give_back(for_order);
    if (sources_.json) files.limit.give_back(sources_.json->document_memory);  // which ends with this
    if (sources_.config) {
      files.model_max_length = sources_.config->number("model_max_length");
      if (!files.model_max_length) files.model_max_length = sources_.config->number("max_len");
    }
    files.types = types_;
    files.options.token_types = types_.value_or(true);
    return files;
  }

 private:
  [[nodiscard]] Class class_of(const std::optional<std::string>& of_config) const {
    const auto own = sources_.config ? sources_.config->string("tokenizer_class") : std::nullopt;
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
    if (text.starts_with(kByteOrderMark)) {
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
    return sources_.config ? sources_.config->boolean(key).value_or(otherwise) : otherwise;
  }

  [[nodiscard]] std::string name_of(const char* key) const {
    const auto token = named_of(sources_, key);
    return token ? token->token.content : default_of(sources_, key);
  }
  // The same of a token that stands around a text. For null Transformers 5 takes the id 2 or 3, other versions none.
  [[nodiscard]] std::string name_around(const char* key) const {
    for (const auto& file : {sources_.special, sources_.config}) {
      if (!file || !file->contains(key)) continue;
      if (!file->find(key)) file->fail(key, "is null, expected a token");
      break;
    }
    return name_of(key);
  }

  [[nodiscard]] TokenizerOptions options() const {
    const bool own = class_ != Class::file;
    TokenizerOptions options = own ? TokenizerOptions() : sources_.json->options;
    options.pad_token = name_of("pad_token");
    options.mask_token = name_of("mask_token");
    options.whole_words = boolean("whole_words", false);
    if (options.whole_words && sources_.json) {
      throw FileError(folder_.path(kTokenizerConfigFile), "whole_words is true, expected no tokenizer.json beside it");
    }
    if (!own) return options;
    options.unk_token = name_of("unk_token");
    options.cls_token = name_around("cls_token");
    options.sep_token = name_around("sep_token");
    options.lower_case = boolean("do_lower_case", true);
    options.strip_accents = sources_.config ? sources_.config->boolean("strip_accents") : std::nullopt;
    options.split_ideographs = boolean("tokenize_chinese_chars", true);
    if (sources_.json) check_agreement(options);
    return options;
  }

  // That tokenizer.json says nothing that this class passes over, or that only some versions of Transformers heed.
  void check_agreement(const TokenizerOptions& own) const {
    const auto agree = [&](bool same, const char* key, const std::string& says, const std::string& expected) {
      if (same) return;
      throw FileError(sources_.json->path, std::string(key) + " is " + says + ", expected " + expected +
                                               " for this tokenizer_class (see docs/model-folders.md)");
    };
    const auto truth = [](bool value) { return std::string(value ? "true" : "false"); };
    const TokenizerOptions& file = sources_.json->options;
    agree(sources_.json->has_normalizer, "normalizer", "null", "BertNormalizer");
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

  const ModelFolder& folder_;
  BertSources sources_;
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
