// The tokens of a model, and their ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/parts.h"
#include "text/token_table.h"

namespace headlight::text {

class Vocabulary {
 public:
  // Room for so many tokens, which have so many bytes together.
  void reserve(std::size_t tokens, std::size_t bytes);
  // Refuses an id outside 0 … kMostIds − 1, and a token of more than kLongestToken bytes.
  void add(std::string_view token, std::int64_t id, const JsonValue& place);
  // After the last add(). An id that two tokens have, if there is one.
  [[nodiscard]] std::optional<std::int64_t> sort();

  [[nodiscard]] std::uint32_t find(std::string_view token) const noexcept { return table_.find(token); }
  [[nodiscard]] std::optional<std::int64_t> id(std::string_view token) const;
  [[nodiscard]] const std::string* token(std::int64_t id) const;
  [[nodiscard]] std::int64_t count() const noexcept { return static_cast<std::int64_t>(tokens_.size()); }
  // One more than the largest id.
  [[nodiscard]] std::uint32_t size() const noexcept { return tokens_.empty() ? 0 : tokens_.back().id + 1; }
  // Calls take(token, id) for each, in the order of ids.
  template <class Take>
  void for_each(Take take) const {
    for (const Token& token : tokens_) take(token.text, token.id);
  }

 private:
  struct Token {
    std::string text;
    std::uint32_t id;
  };
  std::vector<Token> tokens_;  // by id
  TokenTable table_;
};

// A model whose ids are those of its vocabulary.
class VocabularyModel : public Model {
 public:
  [[nodiscard]] std::optional<std::int64_t> id(std::string_view token) const final { return vocabulary_.id(token); }
  [[nodiscard]] const std::string* token(std::int64_t id) const final { return vocabulary_.token(id); }
  [[nodiscard]] std::int64_t count() const final { return vocabulary_.count(); }
  [[nodiscard]] std::int64_t size() const final { return vocabulary_.size(); }

 protected:
  Vocabulary vocabulary_;
};

// `vocab` of WordPiece and BPE: {"a": 0, …}.
[[nodiscard]] Vocabulary read_vocabulary(const JsonValue& model);

}  // namespace headlight::text
