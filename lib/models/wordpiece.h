// The second half of BERT's tokenizer: from words to pieces of the vocabulary.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/basic_tokenizer.h"

namespace headlight::models {

class WordPiece {
 public:
  // `prefix` is what pieces that go on inside a word begin with; words of more than `longest_word` code points, or of
  // more than kLongestWord, are unknown.
  explicit WordPiece(std::vector<std::string> vocabulary, std::string_view prefix = "##",
                     std::size_t longest_word = kLongestWord);
  WordPiece(const WordPiece&) = delete;  // the tables look into the strings
  WordPiece& operator=(const WordPiece&) = delete;

  [[nodiscard]] const std::vector<std::string>& vocabulary() const noexcept { return vocabulary_; }
  [[nodiscard]] std::optional<std::int64_t> id(std::string_view token) const;

  // Appends the ids of `word` (code points), longest piece first from the left; `unknown` alone when it cannot be
  // built.
  void append(std::u32string_view word, std::int64_t unknown, std::vector<std::int64_t>& ids) const;

  // The longest whole words of a part of what lies between two spaces, until there are `most` ids; see
  // WordSink::take_chunk() and TokenizerOptions. Returns how much of it they are. `in_unknown`, false at first: whether
  // the next part goes on with what no word begins.
  std::size_t append_whole_words(std::u32string_view chunk, bool ends, std::int64_t unknown, std::size_t most,
                                 bool& in_unknown, std::vector<std::int64_t>& ids) const;

 private:
  // Ids by token, sorted: tokens of a stranger's file that share one hash would cost a hash table the square of them.
  class Table {
   public:
    void add(std::string_view token, std::int64_t id) { entries_.push_back({token, id}); }
    // After the last add(). Of tokens that are the same, the last one counts.
    void sort();
    [[nodiscard]] std::optional<std::int64_t> find(std::string_view token) const noexcept;

   private:
    struct Entry {
      std::string_view token;
      std::int64_t id;
    };
    // Only tokens that begin with the same two bytes are searched. A search through all of them is slower; a hash table
    // is faster, but names of a file are not hashed.
    static constexpr std::size_t kBeginnings = std::size_t{1} << 16;
    [[nodiscard]] static std::size_t beginning_of(std::string_view token) noexcept {
      const auto byte = [&](std::size_t n) { return n < token.size() ? static_cast<unsigned char>(token[n]) : 0u; };
      return byte(0) << 8 | byte(1);
    }

    std::vector<Entry> entries_;
    std::vector<std::uint32_t> first_;  // [kBeginnings + 1]: of each beginning
  };

  std::vector<std::string> vocabulary_;
  Table tokens_;             // every token as it is spelt: the beginnings of words
  Table insides_;            // those that begin with the prefix, without it
  std::size_t longest_ = 0;  // bytes of the longest token
  std::size_t longest_word_;
};

}  // namespace headlight::models
