// The tokens of a vocabulary: by id, by their spelling, and as pieces of words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "text/table_limit.h"
#include "text/token_list.h"
#include "text/token_table.h"
#include "text/word_pieces.h"

namespace headlight::models {

// A token's id is its place in the list.
class VocabularyPieces {
 public:
  VocabularyPieces(text::TokenList tokens, std::string_view prefix, text::TableLimit& limit)
      : tokens_(std::move(tokens)) {
    limit.take(text::TokenTable::memory_of(tokens_.size()));
    ids_.reserve(tokens_.size());
    for (std::uint32_t id = 0; id < tokens_.size(); ++id) ids_.add(text::TokenTable::tag_of(tokens_[id]), id);
    ids_.sort([this](std::uint32_t a, std::uint32_t b) { return tokens_[a].compare(tokens_[b]); });
    trie_.build(tokens_, prefix, limit);
  }
  [[nodiscard]] const text::TokenList& tokens() const noexcept { return tokens_; }
  [[nodiscard]] const text::PieceTrie& trie() const noexcept { return trie_; }
  [[nodiscard]] std::optional<std::int64_t> id(std::string_view token) const {
    const std::uint32_t found =
        ids_.find(text::TokenTable::tag_of(token), [&](std::uint32_t id) { return tokens_[id].compare(token); });
    return found == text::TokenTable::kNone ? std::nullopt : std::optional<std::int64_t>(found);
  }

 private:
  text::TokenList tokens_;
  text::TokenTable ids_;
  text::PieceTrie trie_;
};

}  // namespace headlight::models
