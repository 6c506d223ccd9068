#include "text/vocabulary.h"

#include <algorithm>

namespace headlight::text {

void Vocabulary::reserve(std::size_t tokens, std::size_t bytes) {
  tokens_.reserve(tokens);
  table_.reserve(tokens, bytes);
}

void Vocabulary::add(std::string_view token, std::int64_t id, const JsonValue& place) {
  if (id < 0 || id >= kMostIds) place.fail("is no id of 0 to " + std::to_string(kMostIds - 1));
  if (token.size() > kLongestToken) place.fail("has more than " + std::to_string(kLongestToken) + " bytes");
  tokens_.push_back({std::string(token), static_cast<std::uint32_t>(id)});
  table_.add(token, static_cast<std::uint32_t>(id));
}

std::optional<std::int64_t> Vocabulary::sort() {
  table_.sort();
  const auto before = [](const Token& a, const Token& b) { return a.id < b.id; };
  if (!std::is_sorted(tokens_.begin(), tokens_.end(), before)) std::sort(tokens_.begin(), tokens_.end(), before);
  const auto twice =
      std::adjacent_find(tokens_.begin(), tokens_.end(), [](const Token& a, const Token& b) { return a.id == b.id; });
  return twice == tokens_.end() ? std::nullopt : std::optional<std::int64_t>(twice->id);
}

std::optional<std::int64_t> Vocabulary::id(std::string_view token) const {
  const std::uint32_t found = find(token);
  return found == TokenTable::kNone ? std::nullopt : std::optional<std::int64_t>(found);
}

const std::string* Vocabulary::token(std::int64_t id) const {
  if (id < 0 || id >= size()) return nullptr;
  // Most often no id is left out.
  const auto place = static_cast<std::size_t>(id);
  if (place < tokens_.size() && tokens_[place].id == id) return &tokens_[place].text;
  const auto found = std::lower_bound(tokens_.begin(), tokens_.end(), id,
                                      [](const Token& token, std::int64_t wanted) { return token.id < wanted; });
  return found->id == id ? &found->text : nullptr;
}

Vocabulary read_vocabulary(const JsonValue& model) {
  const auto tokens = model.object("vocab");
  if (!tokens) model.fail("vocab", "is missing, expected tokens and their ids");
  std::size_t count = 0, bytes = 0;
  for (const auto& [token, id] : tokens->members()) {
    ++count;
    bytes += token.size();
  }
  Vocabulary vocabulary;
  vocabulary.reserve(count, bytes);
  for (const auto& [token, id] : tokens->members()) vocabulary.add(token, id.as_integer().value_or(-1), id);
  const auto twice = vocabulary.sort();
  if (!twice) return vocabulary;
  std::optional<JsonValue> last;
  for (const auto& [token, id] : tokens->members()) {
    if (id.as_integer() == *twice) last = id;
  }
  last->fail("is " + std::to_string(*twice) + ", the id of another token");
}

}  // namespace headlight::text
