#include "text/added_vocabulary.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

#include "headlight/models/errors.h"

namespace headlight::text {
namespace {

using models::in_quotes;

// As it is looked for.
std::string spelt(std::string_view content, const Normalizer* normalizer,
                  const std::function<void(std::string_view, const std::string&)>& fail) {
  if (content.size() > AddedTokens::kLongest) fail("content", "is too long");
  std::string text(content);
  bool whole_front = true;
  Spare spare;
  try {
    if (normalizer != nullptr) normalizer->apply(text, spare, whole_front);
  } catch (const std::invalid_argument& error) {
    fail("content", error.what());
  }
  if (text.empty()) fail("content", "is " + in_quotes(content) + ", of which the normalizer leaves nothing");
  if (text.size() > AddedTokens::kLongest) fail("content", "is too long");
  return text;
}

}  // namespace

AddedVocabulary::AddedVocabulary(const TokenizerLists& lists, const Model& model, const Normalizer* normalizer,
                                 TableLimit& limit)
    : next_(model.count()) {
  using List = TokenizerLists::List;
  reserve(lists, limit);
  lists.for_each_added([&](std::size_t number, const AddedEntry& entry) {
    const auto fail = [&](std::string_view key, const std::string& message) {
      lists.fail(List::added, number, key, message);
    };
    add(entry, model, normalizer, fail, limit);
  });
  if (const auto twice = sort()) {
    lists.fail(List::added, "has two tokens " + in_quotes(contents_[*twice]) + ", expected one");
  }
  for (AddedTokens* const tokens : {&raw_, &normalized_}) {
    if (const auto twice = tokens->sort()) {
      lists.fail(List::added, "has two tokens that are found as " + in_quotes(*twice) + ", expected one");
    }
  }
}

void AddedVocabulary::reserve(const TokenizerLists& lists, TableLimit& limit) {
  std::size_t count = 0, bytes = 0;
  lists.for_each_added([&](std::size_t, const AddedEntry& entry) {
    ++count;
    bytes += entry.content.size();
  });
  limit.take(TokenList::memory_of(count, bytes) + count * (sizeof(Token) + 2 * sizeof(std::uint32_t)));
  contents_.reserve(count, bytes);
  tokens_.reserve(count);
  by_content_.reserve(count);
  by_id_.reserve(count);
}

void AddedVocabulary::add(const AddedEntry& entry, const Model& model, const Normalizer* normalizer, const Fail& fail,
                          TableLimit& limit) {
  if (entry.content.empty()) fail("content", "is empty");
  const auto of_model = model.id(entry.content);
  const std::int64_t expected = of_model ? *of_model : next_;
  if (entry.id != expected || entry.id >= kMostIds) {
    fail("id", "is " + std::to_string(entry.id) + ", expected " + std::to_string(expected) + ", that of " +
                   (of_model ? "the model" : "the next token"));
  }
  if (!of_model) ++next_;
  const std::string looked_for = spelt(entry.content, entry.normalized ? normalizer : nullptr, fail);
  limit.take(2 * AddedTokens::memory_of(1, looked_for.size()));  // while a list grows it has room for as many more
  (entry.normalized ? normalized_ : raw_).add(looked_for, {entry.id, entry.single_word, entry.lstrip, entry.rstrip});
  contents_.add(entry.content);
  tokens_.push_back({static_cast<std::uint32_t>(entry.id), entry.special});
  size_ = std::max(size_, entry.id + 1);
}

std::optional<std::uint32_t> AddedVocabulary::sort() {
  by_content_.resize(tokens_.size());
  std::iota(by_content_.begin(), by_content_.end(), 0U);
  by_id_ = by_content_;
  std::sort(by_content_.begin(), by_content_.end(), [this](std::uint32_t a, std::uint32_t b) {
    const int order = contents_[a].compare(contents_[b]);
    return order != 0 ? order < 0 : a < b;
  });
  // Of an id that two have the last one is found.
  std::sort(by_id_.begin(), by_id_.end(), [this](std::uint32_t a, std::uint32_t b) {
    return tokens_[a].id != tokens_[b].id ? tokens_[a].id < tokens_[b].id : a > b;
  });
  const auto twice =
      std::adjacent_find(by_content_.begin(), by_content_.end(),
                         [this](std::uint32_t a, std::uint32_t b) { return contents_[a] == contents_[b]; });
  return twice == by_content_.end() ? std::nullopt : std::optional(*twice);
}

std::optional<std::uint32_t> AddedVocabulary::find(std::string_view token) const noexcept {
  const auto found =
      std::lower_bound(by_content_.begin(), by_content_.end(), token,
                       [this](std::uint32_t place, std::string_view wanted) { return contents_[place] < wanted; });
  return found == by_content_.end() || contents_[*found] != token ? std::nullopt : std::optional(*found);
}

std::optional<std::int64_t> AddedVocabulary::id(std::string_view token) const noexcept {
  const auto found = find(token);
  return found ? std::optional<std::int64_t>(tokens_[*found].id) : std::nullopt;
}

std::optional<std::string_view> AddedVocabulary::token(std::int64_t id) const noexcept {
  const auto found =
      std::lower_bound(by_id_.begin(), by_id_.end(), id,
                       [this](std::uint32_t place, std::int64_t wanted) { return tokens_[place].id < wanted; });
  return found == by_id_.end() || tokens_[*found].id != id ? std::nullopt : std::optional(contents_[*found]);
}

bool AddedVocabulary::is_special(std::string_view token) const noexcept {
  const auto found = find(token);
  return found && tokens_[*found].special;
}

}  // namespace headlight::text
