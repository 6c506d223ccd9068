#include "text/word_pieces.h"

#include <algorithm>

#include "headlight/models/errors.h"

namespace headlight::text {

WordPieces::WordPieces(const JsonValue& model) {
  expect_keys(model, {"unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"});
  vocabulary_ = read_vocabulary(model);
  const std::string unknown = needed_string(model, "unk_token");
  const std::string prefix = needed_string(model, "continuing_subword_prefix");
  const std::int64_t longest = model.integer("max_input_chars_per_word").value_or(-1);
  if (longest < 0) model.fail("max_input_chars_per_word", "is no number of characters");
  longest_word_ = static_cast<std::size_t>(longest);
  const auto id = vocabulary_.id(unknown);
  if (!id) model.fail("unk_token", "is " + models::in_quotes(unknown) + ", which vocab lacks");
  unknown_ = *id;
  pieces_.reserve(static_cast<std::size_t>(vocabulary_.count()));
  vocabulary_.for_each([&](const std::string& token, std::uint32_t number) { pieces_.add(token, prefix, number); });
  pieces_.build();
}

void WordPieces::append(std::string_view piece, Scratch&, std::vector<std::int64_t>& ids) const {
  const auto begins_character = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; };
  const bool known =
      piece.size() <= longest_word_ ||
      static_cast<std::size_t>(std::count_if(piece.begin(), piece.end(), begins_character)) <= longest_word_;
  if (!known || !pieces_.append(piece, ids)) ids.push_back(unknown_);
}

void PieceTries::reserve(std::size_t tokens) {
  words_.reserve(tokens);
  insides_.reserve(tokens);
}

void PieceTries::add(std::string_view token, std::string_view prefix, std::uint32_t id) {
  words_.add(token, id);
  if (token.starts_with(prefix)) insides_.add(token.substr(prefix.size()), id);
}

void PieceTries::build() {
  words_.build();
  insides_.build();
}

bool PieceTries::append(std::string_view word, std::vector<std::int64_t>& ids) const {
  const std::size_t before = ids.size();
  for (std::size_t begin = 0; begin < word.size();) {
    Trie::Walk walk(begin == 0 ? words_ : insides_);
    std::uint32_t longest = Trie::kNone;
    std::size_t end = begin;
    for (std::size_t at = begin; at < word.size() && walk.step(word[at]);) {
      ++at;
      if (walk.id() == Trie::kNone) continue;
      longest = walk.id();
      end = at;
    }
    if (longest == Trie::kNone) {
      ids.resize(before);
      return false;
    }
    ids.push_back(longest);
    begin = end;
  }
  return true;
}

}  // namespace headlight::text
