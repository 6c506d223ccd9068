// WordPiece (Wu et al. 2016): the longest tokens of a word from the left; one that cannot be built of tokens, or is too
// long, is unknown.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/parts.h"
#include "text/trie.h"
#include "text/vocabulary.h"

namespace headlight::text {

class WordPieces final : public VocabularyModel {
 public:
  explicit WordPieces(const JsonValue& model);

  void append(std::string_view piece, Scratch& scratch, std::vector<std::int64_t>& ids) const override;

 private:
  Trie words_, insides_;  // tokens as they are spelt, and those with the prefix, without it
  std::int64_t unknown_ = 0;
  std::size_t longest_word_ = 0;  // characters
};

}  // namespace headlight::text
