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

class WordPieces final : public Model {
 public:
  explicit WordPieces(const JsonValue& model);

  void append(std::string_view piece, Scratch& scratch, std::vector<std::int64_t>& ids) const override;
  [[nodiscard]] std::optional<std::int64_t> id(std::string_view token) const override { return vocabulary_.id(token); }
  [[nodiscard]] const std::string* token(std::int64_t id) const override { return vocabulary_.token(id); }
  [[nodiscard]] std::int64_t count() const override { return vocabulary_.count(); }
  [[nodiscard]] std::int64_t size() const override { return vocabulary_.size(); }

 private:
  Vocabulary vocabulary_;
  Trie words_, insides_;  // tokens as they are spelt, and those with the prefix, without it
  std::int64_t unknown_ = 0;
  std::size_t longest_word_ = 0;  // characters
};

}  // namespace headlight::text
