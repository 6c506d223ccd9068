// Tokens that are found in a text before it becomes words, as Hugging Face's AddedVocabulary finds them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headlight::text {

// Those that are looked for in one form of the text, raw or normalised.
class AddedTokens {
 public:
  // Longer ones are refused: each position of a text costs no more steps than this.
  static constexpr std::size_t kLongest = 1024;

  struct Token {
    std::int64_t id = 0;
    bool single_word = false, lstrip = false, rstrip = false;
  };
  // `content`: as it is looked for; not empty.
  void add(std::string content, const Token& token) { entries_.push_back({std::move(content), token}); }
  // After the last add(). A content that was added twice, if there is one.
  [[nodiscard]] std::optional<std::string> sort();
  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
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
  struct Entry {
    std::string content;
    Token token;
  };
  // The longest that `text` begins with.
  [[nodiscard]] const Entry* find(std::string_view text) const noexcept;

  std::vector<Entry> entries_;              // by content
  std::array<std::uint32_t, 257> first_{};  // where those with each first byte begin
};

}  // namespace headlight::text
