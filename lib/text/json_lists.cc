#include "text/json_lists.h"

#include <utility>
#include <vector>

namespace headlight::text {
namespace {

// "a b" or ["a", "b"].
std::pair<std::string_view, std::string_view> pair_of(const JsonValue& merge) {
  if (const auto line = merge.as_string()) {
    if (const auto two = two_tokens(*line)) return *two;
  } else if (const std::vector<JsonValue> parts = merge.few_elements(2); parts.size() == 2) {
    const auto left = parts[0].as_string(), right = parts[1].as_string();
    if (left && right) return {*left, *right};
  }
  merge.fail("is " + merge.described() + ", expected two tokens");
}

AddedEntry added_entry(const JsonValue& entry, std::string& content) {
  expect_keys(entry, {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
  content = needed_string(entry, "content");
  return {.content = content,
          .id = entry.integer("id").value_or(-1),
          .single_word = needed_boolean(entry, "single_word"),
          .lstrip = needed_boolean(entry, "lstrip"),
          .rstrip = needed_boolean(entry, "rstrip"),
          .normalized = needed_boolean(entry, "normalized"),
          .special = needed_boolean(entry, "special")};
}

}  // namespace

JsonValue JsonLists::model() const {
  auto model = document_.object("model");
  if (!model) document_.fail("model", "is missing");
  return *std::move(model);
}

JsonValue JsonLists::merges() const {
  const JsonValue of = model();
  auto merges = of.array("merges");
  if (!merges) of.fail("merges", "is missing, expected pairs of tokens");
  return *std::move(merges);
}

void JsonLists::for_each_token(const TakeToken& take) const {
  const JsonValue of = model();
  const auto tokens = of.object("vocab");
  if (!tokens) of.fail("vocab", "is missing, expected tokens and their ids");
  std::size_t number = 0;
  for (const auto& [token, id] : tokens->members()) take(number++, token, id.as_integer().value_or(-1));
}

void JsonLists::for_each_score(const TakeScore& take) const {
  const JsonValue of = model();
  const auto tokens = of.array("vocab");
  if (!tokens) of.fail("vocab", "is missing, expected tokens and their scores");
  std::size_t number = 0;
  for (const JsonValue& entry : tokens->elements()) {
    const std::vector<JsonValue> parts = entry.few_elements(2);
    const auto score = parts.size() == 2 && parts[0].as_string() ? parts[1].as_number() : std::nullopt;
    if (!score) entry.fail("is no token with its score");
    take(number++, *parts[0].as_string(), *score);
  }
}

std::size_t JsonLists::count_merges() const { return merges().elements().size(); }

void JsonLists::for_each_merge(const TakeMerge& take) const {
  std::size_t number = 0;
  const JsonValue list = merges();
  for (const JsonValue& merge : list.elements()) {
    const auto line = merge.as_string();
    if (!line || !is_version(*line)) {
      const auto [left, right] = pair_of(merge);
      take(number, left, right);
    }
    ++number;
  }
}

void JsonLists::for_each_added(const TakeAdded& take) const {
  const auto list = document_.array("added_tokens");
  if (!list) return;
  std::size_t number = 0;
  std::string content;
  for (const JsonValue& entry : list->elements()) take(number++, added_entry(entry, content));
}

JsonValue JsonLists::entry(List list, std::size_t number) const {
  const auto behind = [&](auto children) {
    auto at = children.begin();
    for (std::size_t n = 0; n < number; ++n) ++at;
    return *at;
  };
  if (list == List::merges) return behind(merges().elements());
  if (list == List::added) return behind(document_.array("added_tokens")->elements());
  const JsonValue tokens = *model().find("vocab");
  return tokens.is_array() ? behind(tokens.elements()) : behind(tokens.members()).second;
}

void JsonLists::fail(List list, std::size_t number, std::string_view key, const std::string& message) const {
  const JsonValue value = entry(list, number);
  if (!key.empty()) value.fail(key, message);
  value.fail(message);
}

void JsonLists::fail(List list, const std::string& message) const {
  if (list == List::added) document_.fail("added_tokens", message);
  model().fail(list == List::merges ? "merges" : "vocab", message);
}

}  // namespace headlight::text
