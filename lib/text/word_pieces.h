// WordPiece (Wu et al. 2016): the longest tokens of a word from the left; one that cannot be built of tokens, or is too
// long, is unknown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/parts.h"
#include "text/table_limit.h"
#include "text/token_list.h"
#include "text/tokenizer_lists.h"
#include "text/trie.h"
#include "text/vocabulary.h"

namespace headlight::text {

// The tokens that words begin with, and those that go on inside one: a tree, and the place in it behind their prefix.
class PieceTrie {
 public:
  // Trie::build() of the tokens. `prefix`: what a token begins with that goes on.
  void build(const TokenList& tokens, std::string_view prefix, TableLimit& limit);

  // Appends the places of a word's tokens; false, and nothing, where it cannot be built.
  [[nodiscard]] bool append(std::string_view word, std::vector<std::int64_t>& places) const;
  [[nodiscard]] const Trie& words() const noexcept { return words_; }

 private:
  Trie words_;
  Trie::Position inside_;
};

class WordPieces final : public VocabularyModel {
 public:
  WordPieces(const JsonValue& model, const TokenizerLists& lists, TableLimit& limit);

  void append(std::string_view piece, Scratch& scratch, std::vector<std::int64_t>& ids) const override;
  // Characters that a word has at most.
  [[nodiscard]] std::size_t longest_word() const noexcept { return longest_word_; }

 private:
  [[nodiscard]] std::uint32_t find(std::string_view token) const noexcept override;

  PieceTrie pieces_;
  std::int64_t unknown_ = 0;
  std::size_t longest_word_ = 0;
};

}  // namespace headlight::text
