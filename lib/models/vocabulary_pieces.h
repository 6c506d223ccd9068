// The tokens of vocab.txt: by id, by their spelling, and as pieces of words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/table_limit.h"
#include "text/token_list.h"
#include "text/token_table.h"
#include "text/word_pieces.h"

namespace headlight::models {

// A token's id is its line.
class VocabularyPieces {
 public:
  VocabularyPieces(std::vector<std::string> tokens, std::string_view prefix) : tokens_(std::move(tokens)) {
    std::size_t bytes = 0;
    for (const std::string& token : tokens_) bytes += token.size();
    list_.reserve(tokens_.size(), bytes);
    ids_.reserve(tokens_.size());
    for (const std::string& token : tokens_) {
      ids_.add(text::TokenTable::tag_of(token), list_.size());
      list_.add(token);
    }
    ids_.sort([this](std::uint32_t a, std::uint32_t b) { return list_[a].compare(list_[b]); });
    text::TableLimit none;
    trie_.build(list_, prefix, none);
  }
  [[nodiscard]] const std::vector<std::string>& tokens() const noexcept { return tokens_; }
  [[nodiscard]] const text::PieceTrie& trie() const noexcept { return trie_; }
  [[nodiscard]] std::optional<std::int64_t> id(std::string_view token) const {
    const std::uint32_t found =
        ids_.find(text::TokenTable::tag_of(token), [&](std::uint32_t place) { return list_[place].compare(token); });
    return found == text::TokenTable::kNone ? std::nullopt : std::optional<std::int64_t>(found);
  }

 private:
  std::vector<std::string> tokens_;
  text::TokenList list_;
  text::TokenTable ids_;
  text::PieceTrie trie_;
};

}  // namespace headlight::models
