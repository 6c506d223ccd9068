// What tokenizer.json says of BPE.
#include <string>
#include <utility>

#include "headlight/models/errors.h"
#include "text/bpe.h"
#include "text/byte_characters.h"
#include "text/utf8.h"

namespace headlight::text {
namespace {

using models::in_quotes;

// "a b" or ["a", "b"].
std::pair<std::string, std::string> pair_of(const JsonValue& merge) {
  if (const auto line = merge.as_string()) {
    const std::size_t space = line->find(' ');
    if (space != std::string_view::npos && line->find(' ', space + 1) == std::string_view::npos) {
      return {std::string(line->substr(0, space)), std::string(line->substr(space + 1))};
    }
  } else if (const std::vector<JsonValue> parts = merge.few_elements(2); parts.size() == 2) {
    const auto left = parts[0].as_string(), right = parts[1].as_string();
    if (left && right) return {std::string(*left), std::string(*right)};
  }
  merge.fail("is " + merge.described() + ", expected two tokens");
}

}  // namespace

Bpe::Bpe(const JsonValue& model, TableLimit& limit) {
  expect_keys(model, {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
                      "byte_fallback", "ignore_merges", "vocab", "merges"});
  if (model.number("dropout").value_or(0.0) != 0.0) model.fail("dropout", "is not 0: ids would be drawn at random");
  prefix_ = model.string("continuing_subword_prefix").value_or("");
  suffix_ = model.string("end_of_word_suffix").value_or("");
  for (const char* const key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (model.string(key).value_or("").size() > kLongestToken) model.fail(key, "is too long");
  }
  fuses_unknown_ = model.boolean("fuse_unk").value_or(false);
  ignores_merges_ = model.boolean("ignore_merges").value_or(false);
  vocabulary_ = read_vocabulary(model, limit);
  index_.build(vocabulary_, limit);
  fallback_.read(model, [this](std::string_view token) { return find(token); });
  read_unknown(model);
  read_merges(model, limit);
}

void Bpe::read_unknown(const JsonValue& model) {
  const auto name = model.string("unk_token");
  if (!name) return;
  unknown_ = find(*name);
  if (unknown_ != kNone) return;
  // Where every byte has a token nothing is unknown, and what the file calls so is of no account.
  for (const char32_t character : kByteCharacters) {
    std::string text;
    append_utf8(text, character);
    if (find(text) == kNone) model.fail("unk_token", "is " + in_quotes(*name) + ", which vocab lacks");
  }
}

void Bpe::read_merges(const JsonValue& model, TableLimit& limit) {
  const auto merges = model.array("merges");
  if (!merges) model.fail("merges", "is missing, expected pairs of tokens");
  const std::size_t count = merges->elements().size();
  limit.take(MergeTable::memory_of(count));
  merges_.reserve(count);
  std::string together;
  for (const JsonValue& merge : merges->elements()) {
    if (merge.as_string() && merge.as_string()->starts_with("#version")) continue;
    const auto [left, right] = pair_of(merge);
    const std::uint32_t first = find(left), second = find(right);
    if (first == kNone) merge.fail("has " + in_quotes(left) + ", which vocab lacks");
    if (second == kNone) merge.fail("has " + in_quotes(right) + ", which vocab lacks");
    if (right.size() < prefix_.size()) merge.fail("has " + in_quotes(right) + " without the prefix of subwords");
    together.assign(left).append(right, prefix_.size());
    const std::uint32_t id = find(together);
    if (id == kNone) merge.fail("makes " + in_quotes(together) + ", which vocab lacks");
    if (merges_.size() == MergeTable::kMostMerges) {
      model.fail("merges", "has more than " + std::to_string(MergeTable::kMostMerges) + " pairs");
    }
    merges_.add(first, second, id, limit);
  }
  merges_.build();
}

}  // namespace headlight::text
