#include "models/tokenizers/class_checks.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/models/errors.h"
#include "text/byte_characters.h"
#include "text/utf8.h"

namespace headlight::models {
namespace {

using files::JsonValue;

const char* word(bool value) { return value ? "true" : "false"; }

// Whether a part of a pre_tokenizer puts a space before the text.
std::optional<bool> prefix_space_of(const JsonValue& part) {
  if (!part.is_object()) return std::nullopt;
  const auto scheme = part.string("prepend_scheme");
  return scheme ? std::optional(*scheme != "never") : part.boolean("add_prefix_space");
}

// MPNetTokenizer makes its normalizer by these keys of tokenizer_config.json.
void check_normalizer(const TokenizerSources& sources) {
  const auto part = sources.tokenizer.object("normalizer");
  if (!part || part->string("type") != "BertNormalizer") return;
  const auto& config = sources.config;
  const auto said = [&](const char* key) { return config ? config->boolean(key) : std::nullopt; };
  const auto agree = [&](const char* key, bool wanted, bool there) {
    if (wanted == there) return;
    const std::string is = std::string("is ") + (said(key) ? "" : "missing, that is ") + word(wanted);
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

// The value of a key of kNamedTokens: of the first file that has it, if only as null. Beside added_tokens_decoder
// Transformers does not look at special_tokens_map.json.
struct NamedToken {
  bool is_said = false;
  std::string content{};
};
NamedToken named_token(const TokenizerSources& sources, std::string_view key) {
  const bool has_decoder = sources.config && sources.config->find("added_tokens_decoder");
  for (const auto& file : {has_decoder ? std::nullopt : sources.special, sources.config}) {
    if (!file || !file->contains(key)) continue;
    const auto value = file->find(key);
    return {true, value ? read_listed_token(*value, true).token.content : ""};
  }
  const auto* const place = std::find(kNamedTokens.begin(), kNamedTokens.end(), key);
  return {false, std::string(sources.of->tokens[static_cast<std::size_t>(place - kNamedTokens.begin())])};
}

std::string for_class(const TokenizerClass& of) { return " for the tokenizer_class " + in_quotes(of.name); }

// Those that no file names are added by their class.
void check_tokens_of_class(const TokenizerSources& sources) {
  for (const char* const key : kNamedTokens) {
    const NamedToken token = named_token(sources, key);
    if (token.is_said || token.content.empty() || sources.added.contains(token.content)) continue;
    sources.tokenizer.fail("added_tokens",
                           "lacks " + in_quotes(token.content) + ", the " + key + for_class(*sources.of));
  }
}

// Qwen2Tokenizer adds its special tokens again, as they are without options.
void check_plain_tokens(const TokenizerSources& sources) {
  for (const auto& [content, listed] : sources.added) {
    const AddedToken& token = listed.token;
    if (!token.single_word && !token.lstrip && !token.rstrip && !token.normalized) continue;
    const auto is_token = [&, &name = content](const char* key) { return named_token(sources, key).content == name; };
    if (!token.special && std::none_of(kNamedTokens.begin(), kNamedTokens.end(), is_token)) continue;
    listed.place->fail("has single_word, lstrip, rstrip or normalized, expected none of them" + for_class(*sources.of));
  }
}

// What a class puts around a text, and around two.
void check_around(const TokenizerSources& sources, const text::Tokenizer& tokenizer) {
  using Around = TokenizerClass::Around;
  if (sources.of->around == Around::by_file) return;
  std::vector<std::int64_t> single, pair;
  std::string expected = "nothing";
  if (sources.of->around != Around::nothing) {
    const bool is_cls = sources.of->around == Around::cls_sep;
    const std::string first = named_token(sources, is_cls ? "cls_token" : "bos_token").content;
    const std::string last = named_token(sources, is_cls ? "sep_token" : "eos_token").content;
    const std::int64_t begin = tokenizer.id(first).value_or(-1), end = tokenizer.id(last).value_or(-1);
    single = {begin, end};
    pair = {begin, end, end, end};
    expected = (is_cls ? "cls_token and sep_token, " : "bos_token and eos_token, ") + in_quotes(first) + " and " +
               in_quotes(last) + ", the latter twice between two texts,";
  }
  const text::TokenPair there = tokenizer.encode_pair_within("", "", tokenizer.tokens_around().pair);
  const bool has_types =
      std::any_of(there.types.begin(), there.types.end(), [](std::int64_t type) { return type != 0; });
  if (tokenizer.encode("") == single && there.ids == pair && !has_types &&
      tokenizer.tokens_around().behind * 2 == std::ssize(single)) {
    return;
  }
  sources.tokenizer.fail("post_processor",
                         "puts other tokens around texts, expected " + expected + for_class(*sources.of));
}

// Whether a tokenizer of bytes has a token for each of them: then nothing is unknown to it.
bool has_every_byte(const text::Tokenizer& tokenizer, bool by_fallback) {
  for (unsigned byte = 0; byte < text::kByteCharacters.size(); ++byte) {
    std::string token;
    if (by_fallback) {
      constexpr std::string_view kDigits = "0123456789ABCDEF";
      token = {'<', '0', 'x', kDigits[byte / 16], kDigits[byte % 16], '>'};
    } else {
      text::append_utf8(token, text::kByteCharacters[byte]);
    }
    if (!tokenizer.id(token)) return false;
  }
  return true;
}

// The token for what is unknown to the model, where there may be such.
void check_unknown(const TokenizerSources& sources, const text::Tokenizer& tokenizer) {
  using Unknown = TokenizerClass::Unknown;
  const auto model = sources.tokenizer.object("model");
  if (!model) return;
  const auto refuse = [&](const char* key, const std::string& is, const std::string& expected) {
    model->fail(key, "is " + is + ", expected " + expected + for_class(*sources.of));
  };
  const std::string token = named_token(sources, "unk_token").content;
  const auto there = model->string("unk_token");
  const std::string is = there ? in_quotes(*there) : "null";
  switch (sources.of->unknown) {
    case Unknown::third_id:
    case Unknown::id_of_token: {
      constexpr std::int64_t kThird = 3;
      const bool is_third = sources.of->unknown == Unknown::third_id;
      const std::int64_t expected = is_third ? kThird : tokenizer.id(token).value_or(0);
      const auto id = model->integer("unk_id");
      if (id != expected) refuse("unk_id", id ? std::to_string(*id) : "null", std::to_string(expected));
      return;
    }
    case Unknown::token:
      if (there != token) refuse("unk_token", is, in_quotes(token));
      return;
    case Unknown::bytes:
      if (there && !has_every_byte(tokenizer, sources.of->model != "BPE")) refuse("unk_token", is, "null");
      return;
  }
}

}  // namespace

// ByteLevel and Metaspace, wherever they stand in the pre_tokenizer, put a space before the text or not. Where
// tokenizer_config.json does not say, classes that split by ByteLevel do not, and those that split by Metaspace do; but
// null is false to XLMRobertaTokenizer and CamembertTokenizer.
void check_prefix_space(const TokenizerSources& sources) {
  const auto wanted = sources.config ? sources.config->boolean("add_prefix_space") : std::nullopt;
  const bool is_null = sources.config && !wanted && sources.config->contains("add_prefix_space");
  const auto part = sources.tokenizer.object("pre_tokenizer");
  if (!part) return;
  const auto check = [&](const JsonValue& one) {
    const auto there = prefix_space_of(one);
    if (!there) return;
    bool otherwise = *there;
    if (sources.of != nullptr)
      otherwise = one.string("type") != "ByteLevel" && !(is_null && sources.of->model == "Unigram");
    if (*there == wanted.value_or(otherwise)) return;
    const std::string says = std::string("is ") + (wanted ? word(*wanted) : "missing");
    const char* const expected = ", expected what the pre_tokenizer of tokenizer.json says";
    if (sources.config) sources.config->fail("add_prefix_space", says + expected);
    part->fail("puts " + std::string(*there ? "a" : "no") + " space before a text, unlike the tokenizer_class " +
               in_quotes(sources.of->name));
  };
  const auto list = part->array("pretokenizers");
  if (!list) return check(*part);
  for (const JsonValue& one : list->elements()) check(one);
}

void check_files_of_class(const TokenizerSources& sources) {
  check_tokens_of_class(sources);
  if (sources.of->name == "Qwen2Tokenizer") check_plain_tokens(sources);
  if (sources.of->name == "MPNetTokenizer") check_normalizer(sources);
}

void check_tokenizer_of_class(const TokenizerSources& sources, const text::Tokenizer& tokenizer) {
  check_around(sources, tokenizer);
  check_unknown(sources, tokenizer);
}

}  // namespace headlight::models
