#include "models/saving/saved_tokenizer.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "models/json_text.h"
#include "models/model_folder.h"
#include "models/tokenizers/added_token_text.h"

namespace headlight::models {
namespace {

struct Name {
  const char* key;
  const char* by_default;
  std::string TokenizerOptions::*member;
};
constexpr std::array<Name, 5> kNames{{
    {"unk_token", "[UNK]", &TokenizerOptions::unk_token},
    {"sep_token", "[SEP]", &TokenizerOptions::sep_token},
    {"pad_token", "[PAD]", &TokenizerOptions::pad_token},
    {"cls_token", "[CLS]", &TokenizerOptions::cls_token},
    {"mask_token", "[MASK]", &TokenizerOptions::mask_token},
}};

const AddedToken* find(const std::vector<AddedToken>& tokens, std::string_view content) {
  const auto found =
      std::find_if(tokens.begin(), tokens.end(), [&](const AddedToken& token) { return token.content == content; });
  return found == tokens.end() ? nullptr : &*found;
}

std::string text_of(const AddedToken& token, bool with_id) {
  JsonObject object(": ", ", ");
  if (with_id) object.add("id", token.id);
  add_properties({.content = token.content,
                  .single_word = token.single_word,
                  .lstrip = token.lstrip,
                  .rstrip = token.rstrip,
                  .normalized = token.normalized,
                  .special = token.special},
                 object);
  return "{" + object.members() + "}";
}

// Whether load() would look for the same tokens in a text if no file listed any.
bool is_default(const TokenizerOptions& options, const std::vector<AddedToken>& tokens) {
  const auto plain = [&](const AddedToken& token) {
    const bool has_name = std::any_of(kNames.begin(), kNames.end(),
                                      [&](const Name& name) { return options.*name.member == token.content; });
    return has_name && token.special && !token.single_word && !token.lstrip && !token.rstrip && !token.normalized;
  };
  return std::all_of(tokens.begin(), tokens.end(), plain);
}

// Whether BertTokenizer makes this tokenizer of vocab.txt and tokenizer_config.json.
bool is_bert(const TokenizerOptions& options, const std::vector<AddedToken>& tokens) {
  const TokenizerOptions bert;
  if (options.clean_text != bert.clean_text || options.subword_prefix != bert.subword_prefix ||
      options.longest_word != bert.longest_word) {
    return false;
  }
  return std::all_of(kNames.begin(), kNames.end(), [&](const Name& name) {
    const std::string& token = options.*name.member;
    return std::string_view(name.key) == "mask_token" || (!token.empty() && find(tokens, token) != nullptr);
  });
}

std::string config_text(const ModelOptions& options, const std::vector<AddedToken>& tokens, bool bert) {
  const TokenizerOptions& tokenizer = options.tokenizer;
  JsonObject config(": ", ",\n  ");
  config.add("tokenizer_class", bert ? "BertTokenizer" : "PreTrainedTokenizerFast");
  config.add("do_lower_case", tokenizer.lower_case);
  if (tokenizer.strip_accents) {
    config.add("strip_accents", *tokenizer.strip_accents);
  } else {
    config.add("strip_accents", nullptr);
  }
  config.add("tokenize_chinese_chars", tokenizer.split_ideographs);
  config.add("model_max_length", options.max_length);
  if (!bert || !tokenizer.token_types) {
    config.add_text("model_input_names", tokenizer.token_types ? R"(["input_ids", "token_type_ids", "attention_mask"])"
                                                               : R"(["input_ids", "attention_mask"])");
  }
  if (tokenizer.whole_words) config.add("whole_words", true);
  for (const Name& name : kNames) {
    const std::string& token = tokenizer.*name.member;
    const bool is_mask = std::string_view(name.key) == "mask_token";
    if (is_mask && bert && find(tokens, token) == nullptr) {
      config.add(name.key, nullptr);
    } else if (!token.empty() && (bert ? token != name.by_default : find(tokens, token) != nullptr)) {
      config.add(name.key, token);
    }
  }
  if (bert && !is_default(tokenizer, tokens)) {
    std::vector<AddedToken> by_id = tokens;
    std::stable_sort(by_id.begin(), by_id.end(), [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
    JsonObject decoder(": ", ",\n    ");
    for (const AddedToken& token : by_id) decoder.add_text(std::to_string(token.id), text_of(token, false));
    config.add_text("added_tokens_decoder", "{\n    " + decoder.members() + "\n  }");
  }
  return config.document();
}

std::string tokenizer_text(const TokenizerOptions& options, const std::vector<AddedToken>& tokens,
                           std::span<const std::string> vocabulary) {
  // Of a token that is there again the last one counts.
  std::map<std::string_view, std::int64_t> ids;
  for (std::size_t id = 0; id < vocabulary.size(); ++id) ids[vocabulary[id]] = static_cast<std::int64_t>(id);
  const auto id_of = [&](const std::string& content) {
    const AddedToken* const token = find(tokens, content);
    return token != nullptr ? token->id : ids.at(content);
  };
  const auto list = [](const std::string& members) { return "[" + members + "]"; };
  const auto object = [](const JsonObject& members) { return "{" + members.members() + "}"; };
  JsonObject document(": ", ",\n  ");
  document.add("version", "1.0");
  std::string added;
  for (const AddedToken& token : tokens) added += (added.empty() ? "" : ",\n    ") + text_of(token, true);
  document.add_text("added_tokens", list(added));
  JsonObject normalizer(": ", ", ");
  normalizer.add("type", "BertNormalizer");
  normalizer.add("clean_text", options.clean_text);
  normalizer.add("handle_chinese_chars", options.split_ideographs);
  normalizer.add("strip_accents", options.strip_accents.value_or(options.lower_case));
  normalizer.add("lowercase", options.lower_case);
  document.add_text("normalizer", object(normalizer));
  document.add_text("pre_tokenizer", R"({"type": "BertPreTokenizer"})");
  JsonObject processor(": ", ", ");
  processor.add("type", "BertProcessing");
  for (const auto& [key, token] : {std::pair("sep", &options.sep_token), {"cls", &options.cls_token}}) {
    processor.add_text(key, list(json_text(*token) + ", " + std::to_string(id_of(*token))));
  }
  document.add_text("post_processor", object(processor));
  JsonObject decoder(": ", ", ");
  decoder.add("type", "WordPiece");
  decoder.add("prefix", options.subword_prefix);
  decoder.add("cleanup", true);
  document.add_text("decoder", object(decoder));
  JsonObject pieces(": ", ",\n    ");
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    const std::string& piece = vocabulary[id];  // an empty one is no token
    if (!piece.empty() && ids.at(piece) == static_cast<std::int64_t>(id)) {
      pieces.add(piece, id);
    }
  }
  JsonObject model(": ", ",\n   ");
  model.add("type", "WordPiece");
  model.add("unk_token", options.unk_token);
  model.add("continuing_subword_prefix", options.subword_prefix);
  model.add("max_input_chars_per_word", options.longest_word);
  model.add_text("vocab", object(pieces));
  document.add_text("model", object(model));
  return document.document();
}

}  // namespace

void add_tokenizer_files(const ModelOptions& options, std::span<const std::string> vocabulary, SavedFiles& files) {
  const TokenizerOptions& tokenizer = options.tokenizer;
  std::vector<AddedToken> tokens;
  if (tokenizer.added_tokens) {
    tokens = *tokenizer.added_tokens;
  } else {
    for (const Name& name : kNames) {
      const auto last = std::find(vocabulary.rbegin(), vocabulary.rend(), tokenizer.*name.member);
      if (last != vocabulary.rend()) {
        tokens.push_back({.content = *last, .id = static_cast<std::int64_t>(vocabulary.rend() - last) - 1});
      }
    }
  }
  const bool bert = is_bert(tokenizer, tokens);
  if (!bert && tokenizer.whole_words) {
    throw std::invalid_argument("models::TextEncoder: save: a tokenizer of whole_words is one of BERT's in all else");
  }
  files[kTokenizerConfigFile] = config_text(options, tokens, bert);
  if (!bert) files[kTokenizerFile] = tokenizer_text(tokenizer, tokens, vocabulary);
}

}  // namespace headlight::models
