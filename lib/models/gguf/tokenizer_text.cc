// The tokenizer of a GGUF file as the text of a tokenizer.json.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "files/json_value.h"
#include "headlight/models/errors.h"
#include "models/gguf/tokenizer.h"
#include "models/gguf/tokenizer_parts.h"
#include "models/gguf/tokens.h"
#include "models/json_text.h"
#include "models/tokenizers/added_token_text.h"
#include "text/score_merges.h"
#include "text/table_limit.h"
#include "text/token_index.h"
#include "text/utf8.h"
#include "text/vocabulary.h"

namespace headlight::models {
namespace {

// The text of a document, which ends where it gets longer than a tokenizer.json may be, whatever is still to come.
class TokenizerText {
 public:
  explicit TokenizerText(const GgufMetadata& metadata) : metadata_(metadata) {}

  TokenizerText& append(std::string_view piece) {
    constexpr std::size_t kMostBytes = files::JsonValue::kLargestFile;
    if (piece.size() > kMostBytes - text_.size()) {
      metadata_.fail(kGgufTokens, "would be a tokenizer.json of more than " + std::to_string(kMostBytes) +
                                      " bytes, the most one may have");
    }
    text_ += piece;
    return *this;
  }
  // An element of a list, or what begins one: of all but the first with a comma before it.
  TokenizerText& next(std::string_view element) {
    const bool first = text_.ends_with('[') || text_.ends_with('{');
    return append(first ? "" : ",").append(element);
  }
  [[nodiscard]] std::string take() && { return std::move(text_); }

 private:
  const GgufMetadata& metadata_;
  std::string text_;
};

// As base64, of integers of which each is a byte.
void append_base64(TokenizerText& into, const GgufArray& bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t three = 0;
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    for (std::size_t n = 0; n < 3; ++n) {
      three = three << 8 | (n < count ? static_cast<std::uint32_t>(bytes.integer(at + n).value_or(0) & 0xFF) : 0u);
    }
    std::array<char, 4> digits;
    for (std::size_t n = 0; n < 4; ++n) digits[n] = n <= count ? kDigits[three >> (18 - 6 * n) & 63] : '=';
    into.append({digits.data(), digits.size()});
  }
}

void append_scored_tokens(TokenizerText& into, const GgufTokenLists& lists) {
  into.append("[");
  lists.for_each_score([&](std::size_t, std::string_view token, double score) {
    into.next("[").append(json_text(token)).append(",").append(json_text(score)).append("]");
  });
  into.append("]");
}

void append_tokens_with_ids(TokenizerText& into, const GgufTokenLists& lists) {
  into.append("{");
  lists.for_each_token([&](std::size_t, std::string_view token, std::int64_t id) {
    into.next(json_text(token)).append(":").append(std::to_string(id));
  });
  into.append("}");
}

void append_merges(TokenizerText& into, const GgufTokenLists& lists) {
  into.append("[");
  if (!lists.merges_by_scores()) {
    lists.for_each_merge([&](std::size_t number, std::string_view left, std::string_view right) {
      const std::string merge = std::string(left).append(" ").append(right);
      if (text::first_invalid(merge) != merge.size()) {
        lists.fail(GgufTokenLists::List::merges, number, {}, "is " + in_quotes(merge) + ", expected UTF-8");
      }
      into.next(json_text(merge));
    });
  } else {
    text::TableLimit none;
    const text::Vocabulary vocabulary = text::read_vocabulary(lists, none);
    text::TokenIndex index;
    static_cast<void>(index.build(vocabulary, none));
    text::ScoreMerges(vocabulary, index, lists, none)
        .for_each([&](std::uint32_t left, std::uint32_t right, std::uint32_t) {
          into.next("[").append(json_text(*vocabulary.token(left))).append(",");
          into.append(json_text(*vocabulary.token(right))).append("]");
        });
  }
  into.append("]");
}

void append_added_tokens(TokenizerText& into, const GgufTokenLists& lists) {
  into.append("[");
  lists.for_each_added([&](std::size_t, const text::AddedEntry& entry) {
    JsonObject token(":", ",");
    token.add("id", entry.id);
    add_properties(entry, token);
    into.next("{").append(token.members()).append("}");
  });
  into.append("]");
}

}  // namespace

std::string gguf_tokenizer_text(const GgufMetadata& metadata, std::int64_t rows) {
  const std::string name = metadata.text(kGgufModel).value_or("");
  const GgufTokens tokens(metadata, rows);
  const GgufTokenizerParts parts = read_gguf_tokenizer_parts(tokens, name);
  TokenizerText into(metadata);
  into.append("{\n").append(parts.beside_model().members());
  const GgufArray characters = name == "t5" ? metadata.integers(kGgufCharacters) : GgufArray();
  if (!characters.empty()) {
    into.append(R"(,"normalizer":{"type":"Precompiled","precompiled_charsmap":")");
    append_base64(into, characters);
    into.append("\"}");
  }
  append_added_tokens(into.append(",\"added_tokens\":"), parts.lists);
  into.append(",\"model\":{").append(parts.model.members()).append(",\"vocab\":");
  if (name == "t5") {
    append_scored_tokens(into, parts.lists);
  } else {
    append_tokens_with_ids(into, parts.lists);
    append_merges(into.append(",\"merges\":"), parts.lists);
  }
  return std::move(into.append("}}\n")).take();
}

}  // namespace headlight::models
