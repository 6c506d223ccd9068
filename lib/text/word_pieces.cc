#include "text/word_pieces.h"

#include <algorithm>

#include "headlight/models/errors.h"

namespace headlight::text {

WordPieces::WordPieces(const JsonValue& model, const TokenizerLists& lists, TableLimit& limit) {
  expect_keys(model, {"unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"});
  vocabulary_ = read_vocabulary(lists, limit);
  const std::string unknown = needed_string(model, "unk_token");
  const std::string prefix = needed_string(model, "continuing_subword_prefix");
  const std::int64_t longest = model.integer("max_input_chars_per_word").value_or(-1);
  if (longest < 0) model.fail("max_input_chars_per_word", "is no number of characters");
  longest_word_ = static_cast<std::size_t>(longest);
  pieces_.build(vocabulary_.tokens(), prefix, limit);
  const auto id = this->id(unknown);
  if (!id) model.fail("unk_token", "is " + models::in_quotes(unknown) + ", which vocab lacks");
  unknown_ = *id;
}

std::uint32_t WordPieces::find(std::string_view token) const noexcept {
  const std::uint32_t place = pieces_.words().find(token);
  return place == Trie::kNone ? kNone : vocabulary_.id_at(place);
}

void WordPieces::append(std::string_view piece, Scratch&, std::vector<std::int64_t>& ids) const {
  const auto begins_character = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; };
  const bool known =
      piece.size() <= longest_word_ ||
      static_cast<std::size_t>(std::count_if(piece.begin(), piece.end(), begins_character)) <= longest_word_;
  const std::size_t before = ids.size();
  if (!known || !pieces_.append(piece, ids)) return ids.push_back(unknown_);
  if (vocabulary_.ids_are_places()) return;
  for (std::size_t n = before; n < ids.size(); ++n) ids[n] = vocabulary_.id_at(static_cast<std::uint32_t>(ids[n]));
}

void PieceTrie::build(const TokenList& tokens, std::string_view prefix, TableLimit& limit) {
  words_.build(tokens, limit);
  Trie::Walk walk(words_);
  const auto goes_on = [&walk](char byte) { return walk.advance(byte); };
  inside_ = std::all_of(prefix.begin(), prefix.end(), goes_on) ? walk.position() : Trie::nowhere();
}

bool PieceTrie::append(std::string_view word, std::vector<std::int64_t>& places) const {
  const std::size_t before = places.size();
  for (std::size_t begin = 0; begin < word.size();) {
    Trie::Walk walk(words_, begin == 0 ? Trie::Position() : inside_);
    std::uint32_t longest = Trie::kNone;
    std::size_t end = begin;
    for (std::size_t at = begin; at < word.size() && walk.advance(word[at]);) {
      ++at;
      if (walk.token() == Trie::kNone) continue;
      longest = walk.token();
      end = at;
    }
    if (longest == Trie::kNone) {
      places.resize(before);
      return false;
    }
    places.push_back(longest);
    begin = end;
  }
  return true;
}

}  // namespace headlight::text
