#include "models/gguf/tokens.h"

#include "text/parts.h"

namespace headlight::models {
namespace {

constexpr std::string_view kTokenTypes = "tokenizer.ggml.token_type";

// Kinds of tokens, with the numbers of the format (gguf.TokenType).
constexpr std::int64_t kUnknownToken = 2, kControlToken = 3, kUserToken = 4;

}  // namespace

GgufTokens::GgufTokens(const GgufMetadata& metadata, std::int64_t rows)
    : metadata_(metadata), tokens_(metadata.texts(kGgufTokens)), kinds_(metadata.integers(kTokenTypes)) {
  if (tokens_.empty()) metadata.fail(kGgufTokens, "is missing or empty");
  if (static_cast<std::int64_t>(size()) > rows) {
    metadata.fail(kGgufTokens, "has " + std::to_string(size()) +
                                   " tokens, expected at most the rows of 'token_embd.weight', " +
                                   std::to_string(rows));
  }
  check_count(kTokenTypes, kinds_.size());
  for (const std::string_view token : texts()) {
    if (token.size() > text::kLongestToken) {
      metadata.fail(kGgufTokens, "has a token of " + std::to_string(token.size()) + " bytes");
    }
  }
  // Of chats and of gaps in programs; and a copy of what is here.
  for (const char* const key :
       {"tokenizer.chat_template", "tokenizer.ggml.fim_pre_token_id", "tokenizer.ggml.fim_suf_token_id",
        "tokenizer.ggml.fim_mid_token_id", "tokenizer.ggml.fim_pad_token_id", "tokenizer.ggml.fim_rep_token_id",
        "tokenizer.ggml.fim_sep_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id",
        "tokenizer.ggml.token_type_count", "tokenizer.huggingface.json"}) {
    metadata.pass_over(key);
  }
  for (const std::string_view key : {kGgufPadding, kGgufMask, kGgufUnknown, kGgufSeparator, kGgufClass, kGgufBegin,
                                     kGgufEnd, kGgufPre, kGgufScores, kGgufPrefix, kGgufRemovesSpace}) {
    metadata.pass_over(key);
  }
}

std::string GgufTokens::text(std::size_t id) const {
  auto at = texts().begin();
  for (std::size_t n = 0; n < id; ++n) ++at;
  return std::string(*at);
}

bool GgufTokens::is(std::size_t id, std::int64_t kind) const noexcept {
  return !kinds_.empty() && kinds_.integer(id) == kind;
}

bool GgufTokens::is_special(std::size_t id) const noexcept { return is(id, kControlToken) || is(id, kUnknownToken); }
bool GgufTokens::is_added(std::size_t id) const noexcept { return is_special(id) || is(id, kUserToken); }

std::optional<std::size_t> GgufTokens::id_of(std::string_view key) const {
  if (!metadata_.has(key)) return std::nullopt;
  return static_cast<std::size_t>(metadata_.size(key, 0, std::nullopt, static_cast<std::int64_t>(size()) - 1));
}

std::string GgufTokens::name_of(std::initializer_list<std::string_view> keys, const std::string& otherwise) const {
  for (const std::string_view key : keys) {
    if (const auto id = id_of(key)) return text(*id);
  }
  return otherwise;
}

void GgufTokens::check_count(std::string_view key, std::size_t count) const {
  if (count == 0 || count == size()) return;
  metadata_.fail(key, "has " + std::to_string(count) + " elements, expected one for each of the " +
                          std::to_string(size()) + " tokens");
}

}  // namespace headlight::models
