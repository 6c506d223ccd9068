// Tokens that are found in a text before it becomes words, as Hugging Face's AddedVocabulary finds them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/token_list.h"

namespace headlight::text {

// Those that are looked for in one form of the text, raw or normalised.
class AddedTokens {
 public:
  // Longer ones are refused: each position of a text costs no more comparisons than this.
  static constexpr std::size_t kLongest = 1024;

  struct Token {
    std::int64_t id = 0;
    bool single_word = false, lstrip = false, rstrip = false;
  };
  // What so many take that have so many bytes together, while they are sorted, too.
  [[nodiscard]] static constexpr std::size_t memory_of(std::size_t tokens, std::size_t bytes) noexcept {
    return 2 * (TokenList::memory_of(tokens, bytes) + tokens * (sizeof(Token) + sizeof(std::uint32_t)));
  }
  void reserve(std::size_t tokens, std::size_t bytes) {
    contents_.reserve(tokens, bytes);
    tokens_.reserve(tokens);
  }
  // `content`: as it is looked for; not empty.
  void add(std::string_view content, const Token& token) {
    contents_.add(content);
    tokens_.push_back(token);
  }
  // After the last add(). A content that was added twice, if there is one.
  [[nodiscard]] std::optional<std::string> sort();
  [[nodiscard]] bool empty() const noexcept { return tokens_.empty(); }
  // Whether one may lie across a cut (text/cut.h) behind whose letters `space` stands.
  [[nodiscard]] bool may_cross(std::string_view space) const;

  // One that was found, and how much of the text it takes; no text is before end().
  struct Match {
    std::size_t begin = std::string_view::npos, end = std::string_view::npos;
    std::int64_t id = -1;
  };
  // The matches of a text one after another: of those that begin first the longest, none within another.
  class Search {
   public:
    Search(const AddedTokens& tokens, std::string_view text) : tokens_(tokens), text_(text) {}
    // The next one; without an id, and at npos, when there are no more.
    [[nodiscard]] Match next();

   private:
    const AddedTokens& tokens_;
    std::string_view text_;
    std::size_t at_ = 0;     // where the search goes on
    std::size_t taken_ = 0;  // what earlier matches took, white space included
  };

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  // The place of the longest that `text` begins with; kNone where there is none.
  [[nodiscard]] std::uint32_t find(std::string_view text) const noexcept;

  TokenList contents_;                      // in order
  std::vector<Token> tokens_;               // beside them
  std::array<std::uint32_t, 257> first_{};  // where those with each first byte begin
};

}  // namespace headlight::text
