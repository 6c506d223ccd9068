// WordPiece (Wu et al. 2016): the longest tokens of a word from the left; one that cannot be built of tokens, or is too
// long, is unknown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/parts.h"
#include "text/trie.h"
#include "text/vocabulary.h"

namespace headlight::text {

// The tokens that words begin with, and those that go on inside one.
class PieceTries {
 public:
  // Room for so many tokens.
  void reserve(std::size_t tokens);
  // `prefix`: what a token begins with that goes on. `token` must outlive build(), and has at most kLongestToken bytes;
  // of tokens that are the same the one of the largest id counts.
  void add(std::string_view token, std::string_view prefix, std::uint32_t id);
  // After the last add().
  void build();

  // Appends the ids of a word; false, and nothing, where it cannot be built.
  [[nodiscard]] bool append(std::string_view word, std::vector<std::int64_t>& ids) const;
  [[nodiscard]] const Trie& words() const noexcept { return words_; }

 private:
  Trie words_, insides_;  // tokens as they are spelt, and those with the prefix, without it
};

class WordPieces final : public VocabularyModel {
 public:
  explicit WordPieces(const JsonValue& model);

  void append(std::string_view piece, Scratch& scratch, std::vector<std::int64_t>& ids) const override;
  // Characters that a word has at most.
  [[nodiscard]] std::size_t longest_word() const noexcept { return longest_word_; }

 private:
  PieceTries pieces_;
  std::int64_t unknown_ = 0;
  std::size_t longest_word_ = 0;
};

}  // namespace headlight::text
