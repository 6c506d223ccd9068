// The tokens of a model, and their ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "text/parts.h"
#include "text/table_limit.h"
#include "text/token_list.h"
#include "text/token_table.h"
#include "text/tokenizer_lists.h"

namespace headlight::text {

// Ids by token are found by who makes of the tokens what a model searches: a tree, or a TokenTable.
class Vocabulary {
 public:
  // Room for so many tokens, which have so many bytes together.
  void reserve(std::size_t tokens, std::size_t bytes, TableLimit& limit);
  // The next token of those lists, by its number there. Refuses an id outside 0 … kMostIds − 1, and a token of more
  // than kLongestToken bytes.
  void add(const TokenizerLists& lists, std::size_t number, std::string_view token, std::int64_t id, TableLimit& limit);
  // After the last add(). An id that two tokens have, if there is one.
  [[nodiscard]] std::optional<std::int64_t> sort(TableLimit& limit);

  // In the order of the file.
  [[nodiscard]] const TokenList& tokens() const noexcept { return tokens_; }
  // The id of the token at a place of theirs.
  [[nodiscard]] std::uint32_t id_at(std::uint32_t place) const noexcept { return ids_.empty() ? place : ids_[place]; }
  // Whether that is the place itself.
  [[nodiscard]] bool ids_are_places() const noexcept { return ids_.empty(); }
  [[nodiscard]] std::optional<std::string_view> token(std::int64_t id) const noexcept;
  [[nodiscard]] std::int64_t count() const noexcept { return tokens_.size(); }
  // One more than the largest id.
  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }

 private:
  TokenList tokens_;
  std::vector<std::uint32_t> ids_;     // by place; none where each is its place
  std::vector<std::uint32_t> places_;  // by id; none where ids_ ascend
  std::uint32_t size_ = 0;
};

// A model whose ids are those of its vocabulary.
class VocabularyModel : public Model {
 public:
  [[nodiscard]] std::optional<std::int64_t> id(std::string_view token) const final {
    const std::uint32_t found = find(token);
    return found == kNone ? std::nullopt : std::optional<std::int64_t>(found);
  }
  [[nodiscard]] std::optional<std::string_view> token(std::int64_t id) const noexcept final {
    return vocabulary_.token(id);
  }
  [[nodiscard]] std::int64_t count() const final { return vocabulary_.count(); }
  [[nodiscard]] std::int64_t size() const final { return vocabulary_.size(); }

 protected:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // The id of a token; kNone where there is none.
  [[nodiscard]] virtual std::uint32_t find(std::string_view token) const noexcept = 0;

  Vocabulary vocabulary_;
};

// That of WordPiece and BPE, whose tokens have ids.
[[nodiscard]] Vocabulary read_vocabulary(const TokenizerLists& lists, TableLimit& limit);

}  // namespace headlight::text
