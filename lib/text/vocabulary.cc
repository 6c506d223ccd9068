#include "text/vocabulary.h"

#include <algorithm>
#include <numeric>
#include <string>

namespace headlight::text {

void Vocabulary::reserve(std::size_t tokens, std::size_t bytes, TableLimit& limit) {
  limit.take(TokenList::memory_of(tokens, bytes));
  tokens_.reserve(tokens, bytes);
}

void Vocabulary::add(std::string_view token, std::int64_t id, const JsonValue& place, TableLimit& limit) {
  if (id < 0 || id >= kMostIds) place.fail("is no id of 0 to " + std::to_string(kMostIds - 1));
  if (token.size() > kLongestToken) place.fail("has more than " + std::to_string(kLongestToken) + " bytes");
  const auto number = static_cast<std::uint32_t>(id);
  size_ = std::max(size_, number + 1);
  if (ids_.empty() && number != tokens_.size()) {
    limit.take(sizeof(std::uint32_t) * tokens_.capacity());
    ids_.reserve(tokens_.capacity());
    ids_.resize(tokens_.size());
    std::iota(ids_.begin(), ids_.end(), 0U);
    ids_.push_back(number);
  } else if (!ids_.empty()) {
    ids_.push_back(number);
  }
  tokens_.add(token);
}

std::optional<std::int64_t> Vocabulary::sort(TableLimit& limit) {
  if (!std::is_sorted(ids_.begin(), ids_.end())) {
    limit.take(sizeof(std::uint32_t) * ids_.size());
    places_.resize(ids_.size());
    std::iota(places_.begin(), places_.end(), 0U);
    std::sort(places_.begin(), places_.end(), [this](std::uint32_t a, std::uint32_t b) { return ids_[a] < ids_[b]; });
  }
  const auto id_of = [this](std::size_t n) { return ids_[places_.empty() ? n : places_[n]]; };
  for (std::size_t n = 1; n < ids_.size(); ++n) {
    if (id_of(n - 1) == id_of(n)) return id_of(n);
  }
  return std::nullopt;
}

std::optional<std::string_view> Vocabulary::token(std::int64_t id) const noexcept {
  if (id < 0 || id >= size_) return std::nullopt;
  const auto wanted = static_cast<std::uint32_t>(id);
  if (ids_.empty()) return tokens_[wanted];
  if (places_.empty()) {
    const auto found = std::lower_bound(ids_.begin(), ids_.end(), wanted);
    if (*found != wanted) return std::nullopt;
    return tokens_[static_cast<std::uint32_t>(found - ids_.begin())];
  }
  const auto found = std::lower_bound(places_.begin(), places_.end(), wanted,
                                      [this](std::uint32_t place, std::uint32_t other) { return ids_[place] < other; });
  return ids_[*found] == wanted ? std::optional(tokens_[*found]) : std::nullopt;
}

Vocabulary read_vocabulary(const JsonValue& model, TableLimit& limit) {
  const auto tokens = model.object("vocab");
  if (!tokens) model.fail("vocab", "is missing, expected tokens and their ids");
  std::size_t count = 0, bytes = 0;
  for (const auto& [token, id] : tokens->members()) {
    ++count;
    bytes += token.size();
  }
  Vocabulary vocabulary;
  vocabulary.reserve(count, bytes, limit);
  for (const auto& [token, id] : tokens->members()) vocabulary.add(token, id.as_integer().value_or(-1), id, limit);
  const auto twice = vocabulary.sort(limit);
  if (!twice) return vocabulary;
  std::optional<JsonValue> last;
  for (const auto& [token, id] : tokens->members()) {
    if (id.as_integer() == *twice) last = id;
  }
  last->fail("is " + std::to_string(*twice) + ", the id of another token");
}

}  // namespace headlight::text
