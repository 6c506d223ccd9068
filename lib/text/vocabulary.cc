#include "text/vocabulary.h"

#include <algorithm>
#include <numeric>
#include <string>

namespace headlight::text {

void Vocabulary::reserve(std::size_t tokens, std::size_t bytes, TableLimit& limit) {
  limit.take(TokenList::memory_of(tokens, bytes));
  tokens_.reserve(tokens, bytes);
}

void Vocabulary::add(const TokenizerLists& lists, std::size_t number, std::string_view token, std::int64_t id,
                     TableLimit& limit) {
  const auto fail = [&](const std::string& message) { lists.fail(TokenizerLists::List::tokens, number, {}, message); };
  if (id < 0 || id >= kMostIds) fail("is no id of 0 to " + std::to_string(kMostIds - 1));
  if (token.size() > kLongestToken) fail("has more than " + std::to_string(kLongestToken) + " bytes");
  const auto own = static_cast<std::uint32_t>(id);
  size_ = std::max(size_, own + 1);
  if (ids_.empty() && own != tokens_.size()) {
    limit.take(sizeof(std::uint32_t) * tokens_.capacity());
    ids_.reserve(tokens_.capacity());
    ids_.resize(tokens_.size());
    std::iota(ids_.begin(), ids_.end(), 0U);
    ids_.push_back(own);
  } else if (!ids_.empty()) {
    ids_.push_back(own);
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

Vocabulary read_vocabulary(const TokenizerLists& lists, TableLimit& limit) {
  std::size_t count = 0, bytes = 0;
  lists.for_each_token([&](std::size_t, std::string_view token, std::int64_t) {
    ++count;
    bytes += token.size();
  });
  Vocabulary vocabulary;
  vocabulary.reserve(count, bytes, limit);
  lists.for_each_token([&](std::size_t number, std::string_view token, std::int64_t id) {
    vocabulary.add(lists, number, token, id, limit);
  });
  if (const auto twice = vocabulary.sort(limit)) {
    std::size_t last = 0;
    lists.for_each_token([&](std::size_t number, std::string_view, std::int64_t id) {
      if (id == *twice) last = number;
    });
    lists.fail(TokenizerLists::List::tokens, last, {}, "is " + std::to_string(*twice) + ", the id of another token");
  }
  return vocabulary;
}

}  // namespace headlight::text
