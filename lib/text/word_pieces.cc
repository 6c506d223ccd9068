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
  vocabulary_.for_each([&](const std::string& token, std::uint32_t number) {
    words_.add(token, number);
    if (token.starts_with(prefix)) insides_.add(std::string_view(token).substr(prefix.size()), number);
  });
  words_.build();
  insides_.build();
}

void WordPieces::append(std::string_view piece, Scratch&, std::vector<std::int64_t>& ids) const {
  const std::size_t before = ids.size();
  const auto begins_character = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; };
  bool known = piece.size() <= longest_word_ ||
               static_cast<std::size_t>(std::count_if(piece.begin(), piece.end(), begins_character)) <= longest_word_;
  for (std::size_t begin = 0; known && begin < piece.size();) {
    Trie::Walk walk(begin == 0 ? words_ : insides_);
    std::uint32_t longest = Trie::kNone;
    std::size_t end = begin;
    for (std::size_t at = begin; at < piece.size() && walk.step(piece[at]);) {
      ++at;
      if (walk.id() == Trie::kNone) continue;
      longest = walk.id();
      end = at;
    }
    known = longest != Trie::kNone;
    if (known) ids.push_back(longest);
    begin = end;
  }
  if (known) return;
  ids.resize(before);
  ids.push_back(unknown_);
}

}  // namespace headlight::text
