// The tokenizer of a GGUF file as the text of a tokenizer.json.
#include <algorithm>
#include <string>
#include <string_view>

#include "files/json_value.h"
#include "headlight/models/errors.h"
#include "models/gguf_tokenizer.h"
#include "models/gguf_tokenizer_parts.h"
#include "models/gguf_tokens.h"
#include "models/json_text.h"
#include "text/score_merges.h"
#include "text/table_limit.h"
#include "text/token_index.h"
#include "text/vocabulary.h"

namespace headlight::models {
namespace {

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t three = 0;
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    for (std::size_t n = 0; n < 3; ++n) {
      three = three << 8 | (n < count ? static_cast<unsigned char>(bytes[at + n]) : 0u);
    }
    for (std::size_t n = 0; n < 4; ++n) text += n <= count ? kDigits[three >> (18 - 6 * n) & 63] : '=';
  }
  return text;
}

// The elements of a list, one behind another.
class Elements {
 public:
  void add(const std::string& text) { text_.append(text_.size() > 1 ? "," : "").append(text); }
  [[nodiscard]] std::string list() const { return text_ + "]"; }

 private:
  std::string text_ = "[";
};

std::string scored_tokens(const GgufTokenLists& lists) {
  Elements entries;
  lists.for_each_score([&](std::size_t, std::string_view token, double score) {
    entries.add("[" + json_text(token) + "," + json_text(score) + "]");
  });
  return entries.list();
}

std::string tokens_with_ids(const GgufTokenLists& lists) {
  JsonObject tokens(":", ",");
  lists.for_each_token([&](std::size_t, std::string_view token, std::int64_t id) { tokens.add(token, id); });
  return tokens.document();
}

std::string merges(const GgufTokenLists& lists) {
  Elements entries;
  if (!lists.merges_by_scores()) {
    lists.for_each_merge([&](std::size_t, std::string_view left, std::string_view right) {
      entries.add(json_text(std::string(left).append(" ").append(right)));
    });
    return entries.list();
  }
  text::TableLimit none;
  const text::Vocabulary vocabulary = text::read_vocabulary(lists, none);
  text::TokenIndex index;
  static_cast<void>(index.build(vocabulary, none));
  text::ScoreMerges(vocabulary, index, lists, none)
      .for_each([&](std::uint32_t left, std::uint32_t right, std::uint32_t) {
        entries.add("[" + json_text(*vocabulary.token(left)) + "," + json_text(*vocabulary.token(right)) + "]");
      });
  return entries.list();
}

std::string added_tokens(const GgufTokenLists& lists) {
  Elements entries;
  lists.for_each_added([&](std::size_t, const text::AddedEntry& entry) {
    JsonObject token(":", ",");
    token.add("id", entry.id);
    token.add("content", entry.content);
    token.add("single_word", entry.single_word);
    token.add("rstrip", entry.rstrip);
    token.add("normalized", entry.normalized);
    token.add("lstrip", entry.lstrip);
    token.add("special", entry.special);
    entries.add(token.document());
  });
  return entries.list();
}

}  // namespace

std::string gguf_tokenizer_text(const GgufMetadata& metadata, std::int64_t rows) {
  const std::string name = metadata.text(kGgufModel).value_or("");
  const GgufTokens tokens(metadata, rows);
  GgufTokenizerParts parts = read_gguf_tokenizer_parts(tokens, name);
  if (name == "t5") {
    const GgufArray characters = metadata.integers(kGgufCharacters);
    if (!characters.empty()) {
      parts.normalizer = R"({"type":"Precompiled","precompiled_charsmap":")" + base64(gguf_bytes(characters)) + "\"}";
    }
    parts.model.add_text("vocab", scored_tokens(parts.lists));
  } else {
    parts.model.add_text("vocab", tokens_with_ids(parts.lists));
    parts.model.add_text("merges", merges(parts.lists));
  }
  std::string text = parts.text(parts.model.document(), added_tokens(parts.lists));
  if (text.size() > files::JsonValue::kLargestFile) {
    metadata.fail(kGgufTokens, "would be a tokenizer.json of " + std::to_string(text.size()) +
                                   " bytes, expected at most " + std::to_string(files::JsonValue::kLargestFile));
  }
  return text;
}

}  // namespace headlight::models
