#include "text/vocabulary.h"

namespace headlight::text {

void Vocabulary::add(std::string_view token, std::int64_t id, const JsonValue& place) {
  if (id < 0 || id >= kMostIds) place.fail("is no id of 0 to " + std::to_string(kMostIds - 1));
  if (token.size() > kLongestToken) place.fail("has more than " + std::to_string(kLongestToken) + " bytes");
  const auto at = static_cast<std::size_t>(id);
  if (at >= tokens_.size()) {
    tokens_.resize(at + 1);
    there_.resize(at + 1);
  }
  if (there_[at]) place.fail("is " + std::to_string(id) + ", the id of another token");
  there_[at] = true;
  tokens_[at] = token;
  table_.add(token, static_cast<std::uint32_t>(id));
  ++count_;
}

std::optional<std::int64_t> Vocabulary::id(std::string_view token) const {
  const std::uint32_t found = find(token);
  return found == TokenTable::kNone ? std::nullopt : std::optional<std::int64_t>(found);
}

const std::string* Vocabulary::token(std::int64_t id) const {
  if (id < 0 || id >= size() || !there_[static_cast<std::size_t>(id)]) return nullptr;
  return &tokens_[static_cast<std::size_t>(id)];
}

Vocabulary read_vocabulary(const JsonValue& model) {
  const auto tokens = model.object("vocab");
  if (!tokens) model.fail("vocab", "is missing, expected tokens and their ids");
  Vocabulary vocabulary;
  for (const auto& [token, id] : tokens->members()) vocabulary.add(token, id.as_integer().value_or(-1), id);
  vocabulary.sort();
  return vocabulary;
}

}  // namespace headlight::text
