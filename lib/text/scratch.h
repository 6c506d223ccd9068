// What the parts of a tokenizer work in, kept for the next call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "text/word_cache.h"

namespace headlight::text {

// Parts of a pre-tokenizer that write their pieces anew, as Metaspace and ByteLevel do.
inline constexpr std::size_t kMostWriters = 4;

// Of normalizers: what it holds matters neither before nor behind a call.
struct Spare {
  std::string text, part;
  std::vector<std::int32_t> characters;
};

struct Scratch {
  // Of models.
  std::vector<std::uint32_t> symbols, next, previous;
  std::vector<std::uint32_t> ends;  // where each symbol ends in the piece
  std::vector<std::uint64_t> heap;
  std::vector<double> scores;
  std::string text;
  WordCache words;  // of one model
  // What normalizers make, and what they work in.
  std::string normalized;
  Spare spare;
  // Of pre-tokenizers: pieces as they write them, two for each of those that do.
  std::array<std::string, 2 * kMostWriters> written;
  std::size_t used = 0;  // of them
  // The ids of two texts.
  std::vector<std::int64_t> first, second;

  // Room for texts of which `tokens` tokens are wanted, in six bytes each or fewer.
  void reserve(std::size_t tokens);
  [[nodiscard]] std::size_t bytes() const noexcept;
  // Gives back what long texts took: beside the words, at most kKept bytes and what reserve() took remain.
  void forget_long_texts() noexcept;

  static constexpr std::size_t kKept = std::size_t{1} << 20;

 private:
  template <class Take>
  void for_each_buffer(const Take& take);
  [[nodiscard]] std::size_t buffer_bytes() const noexcept;

  std::size_t reserved_tokens_ = 0, reserved_bytes_ = 0;
};

// A string of a scratch, until this ends.
class Written {
 public:
  explicit Written(Scratch& scratch) : scratch_(scratch), text_(scratch.written.at(scratch.used)) {
    text_.clear();
    ++scratch_.used;
  }
  ~Written() { --scratch_.used; }
  Written(const Written&) = delete;
  Written& operator=(const Written&) = delete;
  std::string& operator*() noexcept { return text_; }

 private:
  Scratch& scratch_;
  std::string& text_;
};

}  // namespace headlight::text
