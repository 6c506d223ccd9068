// The tokens of vocab.txt: by id, by their spelling, and as pieces of words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/parts.h"
#include "text/token_table.h"
#include "text/word_pieces.h"

namespace headlight::models {

// A token's id is its line.
class VocabularyPieces {
 public:
  VocabularyPieces(std::vector<std::string> tokens, std::string_view prefix) : tokens_(std::move(tokens)) {
    std::size_t bytes = 0;
    for (const std::string& token : tokens_) bytes += token.size();
    ids_.reserve(tokens_.size(), bytes);
    tries_.reserve(tokens_.size());
    for (std::size_t line = 0; line < tokens_.size(); ++line) {
      const auto number = static_cast<std::uint32_t>(line);
      ids_.add(tokens_[line], number);
      // No word has none, or more.
      if (!tokens_[line].empty() && tokens_[line].size() <= text::kLongestToken)
        tries_.add(tokens_[line], prefix, number);
    }
    ids_.sort();
    tries_.build();
  }
  [[nodiscard]] const std::vector<std::string>& tokens() const noexcept { return tokens_; }
  [[nodiscard]] const text::PieceTries& tries() const noexcept { return tries_; }
  [[nodiscard]] std::optional<std::int64_t> id(std::string_view token) const {
    const std::uint32_t found = ids_.find(token);
    return found == text::TokenTable::kNone ? std::nullopt : std::optional<std::int64_t>(found);
  }

 private:
  std::vector<std::string> tokens_;
  text::TokenTable ids_;
  text::PieceTries tries_;
};

}  // namespace headlight::models
