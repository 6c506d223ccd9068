#include "models/tokenizers/listed_tokens.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "headlight/models/errors.h"
#include "models/folder_keys.h"

namespace headlight::models {
namespace {

using files::JsonValue;

// Ids by token; of tokens that are the same the last one counts.
class Vocabulary {
 public:
  explicit Vocabulary(const text::TokenList& tokens) : tokens_(tokens), order_(tokens.size()) {
    std::iota(order_.begin(), order_.end(), 0u);
    std::sort(order_.begin(), order_.end(),
              [&](std::uint32_t a, std::uint32_t b) { return std::pair(tokens[a], a) < std::pair(tokens[b], b); });
    for (std::size_t n = 0; n < order_.size(); ++n) {
      if (n == 0 || tokens[order_[n - 1]] != tokens[order_[n]]) ++different_;
    }
  }

  // How many different ones there are: the id of the first token that is added.
  [[nodiscard]] std::int64_t different() const noexcept { return different_; }
  [[nodiscard]] std::optional<std::int64_t> find(std::string_view token) const {
    const auto behind =
        std::upper_bound(order_.begin(), order_.end(), token,
                         [&](std::string_view wanted, std::uint32_t id) { return wanted < tokens_[id]; });
    if (behind == order_.begin() || tokens_[*std::prev(behind)] != token) return std::nullopt;
    return *std::prev(behind);
  }

 private:
  const text::TokenList& tokens_;
  std::vector<std::uint32_t> order_;
  std::int64_t different_ = 0;
};

}  // namespace

ListedToken read_listed_token(const JsonValue& value, bool special) {
  ListedToken listed;
  listed.place = value;
  AddedToken& token = listed.token;
  if (const auto text = value.as_string()) {
    token = {.content = std::string(*text), .normalized = !special, .special = special};
    return listed;
  }
  if (!value.is_object()) value.fail("is " + value.described() + ", expected a text or an object");
  for (const auto& [key, member] : value.members()) {
    const bool known = key == "content" || key == "id" || key == "single_word" || key == "lstrip" || key == "rstrip" ||
                       key == "normalized" || key == "special" || key == "__type";
    if (!known && !member.is_null()) member.fail("is " + member.described() + ", a key that is not known here");
  }
  const auto content = value.string("content");
  if (!content) value.fail("content", "is missing");
  token.content = *content;
  token.special = value.boolean("special").value_or(special);
  token.single_word = value.boolean("single_word").value_or(false);
  token.lstrip = value.boolean("lstrip").value_or(false);
  token.rstrip = value.boolean("rstrip").value_or(false);
  token.normalized = value.boolean("normalized").value_or(!token.special);
  if (const auto id = value.integer("id")) {
    token.id = *id;
    listed.has_id = true;
  }
  return listed;
}

JsonValue read_special_tokens(const ModelFolder& folder, std::vector<std::string>& unknown) {
  JsonValue special = folder.json(kSpecialTokensFile);
  check_keys(special, kSpecialTokensFile, "", unknown);
  // Transformers would take them for those of tokenizer_config.json, and null for false.
  for (const FolderKey& entry : folder_keys()) {
    const std::string_view key = entry.key;
    const bool is_token = key.ends_with("_token") && !key.starts_with("add_");
    if (std::string_view(entry.file) != kTokenizerConfigFile || entry.treatment == Treatment::no_effect || is_token)
      continue;
    if (std::find(kTokenLists.begin(), kTokenLists.end(), key) != kTokenLists.end() || !special.contains(key)) continue;
    const auto value = special.find(key);
    special.fail(key, "is " + (value ? value->described() : "null") + ", expected it in tokenizer_config.json");
  }
  return special;
}

void check_padding(const JsonValue& tokenizer, const std::optional<JsonValue>& config,
                   const std::optional<JsonValue>& special) {
  const auto padding = tokenizer.object("padding");
  const auto token = padding ? padding->string("pad_token") : std::nullopt;
  const auto says = [](const std::optional<JsonValue>& file) { return file && file->contains("pad_token"); };
  if (!token || says(config) || says(special)) return;
  if (const auto added = tokenizer.array("added_tokens")) {
    for (const JsonValue& one : added->elements()) {
      if (one.is_object() && one.string("content") == token) return;
    }
  }
  padding->fail("pad_token", "is " + in_quotes(*token) + ", expected one of added_tokens");
}

void ListedTokens::add(ListedToken token) {
  if (token.token.content.empty()) return;
  const auto [place, is_new] = places_.emplace(token.token.content, list_.size());
  if (is_new) {
    list_.push_back(std::move(token));
  } else {
    list_[place->second] = std::move(token);
  }
}

void ListedTokens::add_unless_there(ListedToken token) {
  if (!places_.contains(token.token.content)) add(std::move(token));
}

const ListedToken* ListedTokens::find(std::string_view content) const {
  const auto place = places_.find(content);
  return place == places_.end() ? nullptr : &list_[place->second];
}

std::vector<AddedToken> number_tokens(const ListedTokens& listed, const text::TokenList& vocabulary, std::int64_t rows,
                                      bool has_gaps, const std::string& path) {
  const Vocabulary pieces(vocabulary);
  std::int64_t next = pieces.different();
  std::vector<AddedToken> tokens;
  for (const ListedToken& one : listed.list()) {
    const std::string name = in_quotes(one.token.content);
    const auto piece = pieces.find(one.token.content);
    if (has_gaps && !piece && !one.needs_piece) {
      throw FileError(path, "leaves out ids in model.vocab, expected none beside " + name + ", which comes behind it");
    }
    const std::int64_t id = piece ? *piece : next++;
    if (one.place && one.has_id && one.token.id != id) {
      one.place->fail("gives " + name + " the id " + std::to_string(one.token.id) + ", expected " + std::to_string(id) +
                      ", its place in the vocabulary or behind it");
    }
    if (one.needs_piece && !piece) continue;
    if (id >= rows) {
      if (!one.place) continue;
      one.place->fail("gives " + name + " the id " + std::to_string(id) +
                      ", expected less than the vocab_size of config.json, " + std::to_string(rows));
    }
    tokens.push_back(one.token);
    tokens.back().id = id;
  }
  return tokens;
}

}  // namespace headlight::models
