#include "text/added_vocabulary.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "headlight/models/errors.h"

namespace headlight::text {
namespace {

using models::in_quotes;

// As it is looked for.
std::string spelt(const JsonValue& entry, const std::string& content, const Normalizer* normalizer) {
  if (content.size() > AddedTokens::kLongest) entry.fail("content", "is too long");
  std::string text = content;
  bool whole_front = true;
  Spare spare;
  try {
    if (normalizer != nullptr) normalizer->apply(text, spare, whole_front);
  } catch (const std::invalid_argument& error) {
    entry.fail("content", error.what());
  }
  if (text.empty()) entry.fail("content", "is " + in_quotes(content) + ", of which the normalizer leaves nothing");
  if (text.size() > AddedTokens::kLongest) entry.fail("content", "is too long");
  return text;
}

}  // namespace

AddedVocabulary::AddedVocabulary(const JsonValue& document, const Model& model, const Normalizer* normalizer)
    : next_(model.count()) {
  if (const auto list = document.array("added_tokens")) {
    for (const JsonValue& entry : list->elements()) add(entry, model, normalizer);
  }
  for (AddedTokens* const tokens : {&raw_, &normalized_}) {
    if (const auto twice = tokens->sort()) {
      document.fail("added_tokens", "has two tokens that are found as " + in_quotes(*twice) + ", expected one");
    }
  }
}

void AddedVocabulary::add(const JsonValue& entry, const Model& model, const Normalizer* normalizer) {
  expect_keys(entry, {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
  const std::string content = needed_string(entry, "content");
  if (content.empty()) entry.fail("content", "is empty");
  const std::int64_t id = entry.integer("id").value_or(-1);
  const auto of_model = model.id(content);
  const std::int64_t expected = of_model ? *of_model : next_;
  if (id != expected || id >= kMostIds) {
    entry.fail("id", "is " + std::to_string(id) + ", expected " + std::to_string(expected) + ", that of " +
                         (of_model ? "the model" : "the next token"));
  }
  if (!of_model) ++next_;
  const bool special = needed_boolean(entry, "special");
  const bool normalized = needed_boolean(entry, "normalized");
  const AddedTokens::Token token{id, needed_boolean(entry, "single_word"), needed_boolean(entry, "lstrip"),
                                 needed_boolean(entry, "rstrip")};
  (normalized ? normalized_ : raw_).add(spelt(entry, content, normalized ? normalizer : nullptr), token);
  if (!tokens_.try_emplace(content, Token{id, special}).second) entry.fail("content", "is that of another token");
  names_.insert_or_assign(id, content);
  size_ = std::max(size_, id + 1);
}

std::optional<std::int64_t> AddedVocabulary::id(std::string_view token) const {
  const auto found = tokens_.find(token);
  return found == tokens_.end() ? std::nullopt : std::optional(found->second.id);
}

const std::string* AddedVocabulary::token(std::int64_t id) const {
  const auto found = names_.find(id);
  return found == names_.end() ? nullptr : &found->second;
}

bool AddedVocabulary::is_special(const std::string& token) const {
  const auto found = tokens_.find(token);
  return found != tokens_.end() && found->second.special;
}

}  // namespace headlight::text
