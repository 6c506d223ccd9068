#include "models/tokenizers/class_checks.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/models/errors.h"
#include "models/tokenizers/described_parts.h"
#include "text/byte_characters.h"
#include "text/byte_fallback.h"
#include "text/utf8.h"

namespace headlight::models {
namespace {

using files::JsonValue;

const char* word(bool value) { return value ? "true" : "false"; }

// Whether a part of a pre_tokenizer puts a space before the text; nothing for one that has no say in it.
std::optional<bool> prefix_space_of(const JsonValue& part) {
  if (!part.is_object()) return std::nullopt;
  if (part.string("type") == "Metaspace") return part.string("prepend_scheme").value_or("always") != "never";
  return part.boolean("add_prefix_space");
}

// MPNetTokenizer makes its normalizer by these keys of tokenizer_config.json.
void check_normalizer(const TokenizerSources& sources) {
  const auto part = sources.tokenizer.object("normalizer");
  if (!part || part->string("type") != "BertNormalizer") return;
  const auto& config = sources.config;
  const auto said = [&](const char* key) { return config ? config->boolean(key) : std::nullopt; };
  const auto agree = [&](const char* key, bool wanted, bool there) {
    if (wanted == there) return;
    const std::string is = std::string("is ") + (said(key) ? "" : "missing, so ") + word(wanted);
    const char* const expected = ", expected what the normalizer of tokenizer.json says";
    if (config) config->fail(key, is + expected);
    part->fail("is not that of MPNetTokenizer without a tokenizer_config.json, where " + std::string(key) + " " + is);
  };
  const bool lower = said("do_lower_case").value_or(true);
  const bool there = part->boolean("lowercase").value_or(true);
  agree("do_lower_case", lower, there);
  agree("strip_accents", said("strip_accents").value_or(lower), part->boolean("strip_accents").value_or(there));
  agree("tokenize_chinese_chars", said("tokenize_chinese_chars").value_or(true),
        part->boolean("handle_chinese_chars").value_or(true));
}

// A key of kNamedTokens.
struct NamedToken {
  bool is_said = false;  // by a file, if only as null
  std::string content{};
};
NamedToken named_token(const TokenizerSources& sources, std::string_view key) {
  for (const auto& file : {sources.special, sources.config}) {
    if (!file || !file->contains(key)) continue;
    const auto value = file->find(key);
    return {true, value ? read_listed_token(*value, true).token.content : ""};
  }
  if (sources.tokenizer_class == nullptr) return {};
  const auto* const place = std::find(kNamedTokens.begin(), kNamedTokens.end(), key);
  return {false, std::string(sources.tokenizer_class->tokens[static_cast<std::size_t>(place - kNamedTokens.begin())])};
}

std::string for_class(const TokenizerClass& of) { return " for the tokenizer_class " + in_quotes(of.name); }

// Those that no file names or lists are added by their class.
void check_tokens_of_class(const TokenizerSources& sources) {
  const auto expect_added = [&](std::string_view token, const char* as) {
    if (token.empty() || sources.added.contains(token)) return;
    sources.tokenizer.fail("added_tokens",
                           "lacks " + in_quotes(token) + ", " + as + for_class(*sources.tokenizer_class));
  };
  for (const char* const key : kNamedTokens) {
    const NamedToken token = named_token(sources, key);
    if (!token.is_said) expect_added(token.content, (std::string("the ") + key).c_str());
  }
  const auto lists_tokens = [](const std::optional<JsonValue>& file) {
    return file && std::any_of(kTokenLists.begin(), kTokenLists.end(), [&](const char* key) {
             const auto list = file->find(key);
             return list && !(list->elements().empty() && list->members().empty());
           });
  };
  if (lists_tokens(sources.special) || lists_tokens(sources.config)) return;
  for (const std::string_view token : sources.tokenizer_class->listed) expect_added(token, "a special token");
}

// Some classes add all special tokens again, as they are without options.
void check_plain_tokens(const TokenizerSources& sources) {
  const SpecialNames special = special_names(sources);
  for (const auto& [content, listed] : sources.added) {
    const AddedToken& token = listed.token;
    if (!token.single_word && !token.lstrip && !token.rstrip && !token.normalized) continue;
    if (!token.special && !special.contains(content)) continue;
    listed.place->fail("has single_word, lstrip, rstrip or normalized, expected none of them" +
                       for_class(*sources.tokenizer_class));
  }
}

// One token of a template, or the place of a text, which has no id.
struct Place {
  text::TemplatePart::Kind kind;
  std::int64_t id, type;
  bool operator==(const Place&) const = default;
};

std::vector<Place> places_of(const std::vector<text::TemplatePart>& parts) {
  std::vector<Place> places;
  for (const text::TemplatePart& part : parts) {
    if (part.kind != text::TemplatePart::Kind::tokens) places.push_back({part.kind, -1, part.type});
    for (const std::int64_t id : part.ids) places.push_back({part.kind, id, part.type});
  }
  return places;
}

// What a class puts around a text, and around two.
void check_around(const TokenizerSources& sources, const text::Pipeline& tokenizer) {
  using Around = TokenizerClass::Around;
  using Kind = text::TemplatePart::Kind;
  if (sources.tokenizer_class->around == Around::by_file) return;
  const Place text{Kind::first_text, -1, 0};
  std::vector<Place> single{text}, pair{text, {Kind::second_text, -1, 1}};
  std::string expected = "nothing";
  if (sources.tokenizer_class->around != Around::nothing) {
    const bool is_cls = sources.tokenizer_class->around == Around::cls_sep;
    const std::string first = named_token(sources, is_cls ? "cls_token" : "bos_token").content;
    const std::string last = named_token(sources, is_cls ? "sep_token" : "eos_token").content;
    const Place begin{Kind::tokens, tokenizer.id(first).value_or(-1), 0};
    const Place end{Kind::tokens, tokenizer.id(last).value_or(-1), 0};
    single = {begin, text, end};
    pair = {begin, text, end, end, {Kind::second_text, -1, 0}, end};
    expected = (is_cls ? "cls_token and sep_token, " : "bos_token and eos_token, ") + in_quotes(first) + " and " +
               in_quotes(last) + ", the latter twice between two texts, all of type 0,";
  }
  const text::PostProcessor& there = tokenizer.processor;
  if (places_of(there.single) == single && places_of(there.pair) == pair) return;
  sources.tokenizer.fail("post_processor",
                         "puts other tokens around texts, expected " + expected + for_class(*sources.tokenizer_class));
}

// Whether a tokenizer of bytes has a token for each of them: then nothing is unknown to it.
bool has_every_byte(const text::Pipeline& tokenizer, bool by_fallback) {
  for (unsigned byte = 0; byte < text::kByteCharacters.size(); ++byte) {
    std::string token;
    if (by_fallback) {
      token = text::byte_token(byte);
    } else {
      text::append_utf8(token, text::kByteCharacters[byte]);
    }
    if (!tokenizer.id(token)) return false;
  }
  return true;
}

// The token for what is unknown to the model, where there may be such.
void check_unknown(const TokenizerSources& sources, const text::Pipeline& tokenizer) {
  using Unknown = TokenizerClass::Unknown;
  const auto model = sources.tokenizer.object("model");
  if (!model) return;
  const auto refuse = [&](const char* key, const std::string& is, const std::string& expected) {
    model->fail(key, "is " + is + ", expected " + expected + for_class(*sources.tokenizer_class));
  };
  const std::string token = named_token(sources, "unk_token").content;
  const auto there = model->string("unk_token");
  const std::string is = there ? in_quotes(*there) : "null";
  switch (sources.tokenizer_class->unknown) {
    case Unknown::third_id:
    case Unknown::id_of_token: {
      constexpr std::int64_t kThird = 3;
      const bool is_third = sources.tokenizer_class->unknown == Unknown::third_id;
      const std::int64_t expected = is_third ? kThird : tokenizer.id(token).value_or(0);
      const auto id = model->integer("unk_id");
      if (id != expected) refuse("unk_id", id ? std::to_string(*id) : "null", std::to_string(expected));
      return;
    }
    case Unknown::token:
      if (there != token) refuse("unk_token", is, in_quotes(token));
      return;
    case Unknown::bytes:
      if (there && !has_every_byte(tokenizer, sources.tokenizer_class->kind != TokenizerClass::Kind::bytes))
        refuse("unk_token", is, "null");
      return;
  }
}

}  // namespace

SpecialNames special_names(const TokenizerSources& sources) {
  SpecialNames special;
  for (const char* const key : kNamedTokens) special.insert(named_token(sources, key).content);
  const auto add = [&](const JsonValue& value) {
    if (value.as_string() || value.is_object()) special.insert(read_listed_token(value, true).token.content);
  };
  for (const auto& file : {sources.special, sources.config}) {
    if (!file) continue;
    for (const auto& [key, value] : file->members()) {
      if (key.ends_with("_token") && !is_named_token(key)) add(value);
    }
    for (const char* const key : kTokenLists) {
      const auto list = file->find(key);
      if (!list) continue;
      for (const JsonValue& value : list->elements()) add(value);
      for (const auto& [name, value] : list->members()) add(value);
    }
  }
  special.erase("");
  return special;
}

// ByteLevel and Metaspace put a space before the text or not. Where tokenizer_config.json does not say, classes that
// split by ByteLevel do not, and those that split by Metaspace do; but null is false to XLMRobertaTokenizer and
// CamembertTokenizer.
void check_prefix_space(const TokenizerSources& sources) {
  constexpr const char* kKey = "add_prefix_space";
  const bool is_there = sources.config && sources.config->contains(kKey);
  const bool is_said = is_there && sources.config->find(kKey);
  const bool said = is_said && *sources.config->boolean(kKey);
  const auto pre_tokenizer = sources.tokenizer.object("pre_tokenizer");
  for (const JsonValue& part : parts_of(pre_tokenizer)) {
    const auto has_space = prefix_space_of(part);
    if (!has_space) continue;
    bool by_default = *has_space;
    if (sources.tokenizer_class != nullptr) {
      const bool null_is_false = sources.tokenizer_class->kind == TokenizerClass::Kind::sentence_piece;
      by_default = part.string("type") != "ByteLevel" && !(is_there && null_is_false);
    }
    if (*has_space == (is_said ? said : by_default)) continue;
    if (sources.config) {
      sources.config->fail(kKey, std::string("is ") + (is_said ? word(said) : "missing") +
                                     ", expected what the pre_tokenizer of tokenizer.json says");
    }
    pre_tokenizer->fail("puts " + std::string(*has_space ? "a" : "no") + " space before a text, unlike the " +
                        "tokenizer_class " + in_quotes(sources.tokenizer_class->name));
  }
}

void check_files_of_class(const TokenizerSources& sources) {
  check_tokens_of_class(sources);
  if (sources.tokenizer_class->adds_tokens_again) check_plain_tokens(sources);
  if (sources.tokenizer_class->kind == TokenizerClass::Kind::word_piece) check_normalizer(sources);
}

void check_tokenizer_of_class(const TokenizerSources& sources, const text::Pipeline& tokenizer) {
  check_around(sources, tokenizer);
  check_unknown(sources, tokenizer);
}

}  // namespace headlight::models
