// What the file of a tokenizer says of BPE.
#include <string>

#include "headlight/models/errors.h"
#include "text/bpe.h"
#include "text/byte_characters.h"
#include "text/score_merges.h"
#include "text/utf8.h"

namespace headlight::text {

using models::in_quotes;

Bpe::Bpe(const JsonValue& model, const TokenizerLists& lists, TableLimit& limit) {
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
  vocabulary_ = read_vocabulary(lists, limit);
  if (const auto twice = index_.build(vocabulary_, limit)) {
    lists.fail(TokenizerLists::List::tokens, *twice, {},
               "is " + in_quotes(vocabulary_.tokens()[*twice]) + ", which is there twice");
  }
  fallback_.read(model, [this](std::string_view token) { return find(token); });
  read_unknown(model);
  if (lists.merges_by_scores()) {
    find_merges(lists, limit);
  } else {
    read_merges(lists, limit);
  }
  merges_.build();
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

void Bpe::read_merges(const TokenizerLists& lists, TableLimit& limit) {
  using List = TokenizerLists::List;
  const std::size_t count = lists.count_merges();
  limit.take(MergeTable::memory_of(count));
  merges_.reserve(count);
  std::string together;
  lists.for_each_merge([&](std::size_t number, std::string_view left, std::string_view right) {
    const auto fail = [&](const std::string& message) { lists.fail(List::merges, number, {}, message); };
    const std::uint32_t first = find(left), second = find(right);
    if (first == kNone) fail("has " + in_quotes(left) + ", which vocab lacks");
    if (second == kNone) fail("has " + in_quotes(right) + ", which vocab lacks");
    if (right.size() < prefix_.size()) fail("has " + in_quotes(right) + " without the prefix of subwords");
    together.assign(left).append(right, prefix_.size());
    const std::uint32_t id = find(together);
    if (id == kNone) fail("makes " + in_quotes(together) + ", which vocab lacks");
    if (merges_.size() == MergeTable::kMostMerges) {
      lists.fail(List::merges, "has more than " + std::to_string(MergeTable::kMostMerges) + " pairs");
    }
    merges_.add(first, second, id, limit);
  });
}

void Bpe::find_merges(const TokenizerLists& lists, TableLimit& limit) {
  const ScoreMerges merges(vocabulary_, index_, lists, limit);
  limit.take(MergeTable::memory_of(merges.size()));
  merges_.reserve(merges.size());
  merges.for_each([&](std::uint32_t left, std::uint32_t right, std::uint32_t together) {
    merges_.add(left, right, together, limit);
  });
  limit.give_back(merges.memory());
}

}  // namespace headlight::text
