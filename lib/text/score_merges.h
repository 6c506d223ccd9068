// The merges of a BPE whose tokens have scores alone.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "text/table_limit.h"
#include "text/token_index.h"
#include "text/tokenizer_lists.h"
#include "text/vocabulary.h"

namespace headlight::text {

// SentencePiece merges the two neighbours whose token has the highest score. As merges in the order of their ranks,
// which is that of Hugging Face's converter (generate_merges() in convert_slow_tokenizer.py of Transformers): every
// token as every two tokens that it is made of, by its score, then by the lengths of both parts in characters, the
// largest first, then by its place.
class ScoreMerges {
 public:
  // The lists' tokens are those of the vocabulary, each with its score. Asks the limit for memory(), and while it is
  // made for more. Refuses more than MergeTable::kMostMerges.
  ScoreMerges(const Vocabulary& vocabulary, const TokenIndex& index, const TokenizerLists& lists, TableLimit& limit);

  [[nodiscard]] std::size_t size() const noexcept { return keys_.size(); }
  [[nodiscard]] std::size_t memory() const noexcept { return keys_.capacity() * sizeof keys_[0]; }
  // take(left, right, together) of ids.
  template <class Take>
  void for_each(const Take& take) const {
    for (const std::uint64_t key : keys_) {
      const std::uint32_t place = place_of(key);
      const std::string_view token = vocabulary_.tokens()[place];
      const std::size_t cut = cut_of(token, key);
      take(index_.find(token.substr(0, cut)), index_.find(token.substr(cut)), vocabulary_.id_at(place));
    }
  }

 private:
  // A merge is one number, of which the lowest merges first: the rank of its token's score, how many characters its
  // parts have less than there may be, and its token's place. Of one token no two merges have parts as long.
  static constexpr int kLengthBits = 10, kPlaceBits = 21;
  static constexpr std::uint64_t kLengthMask = (std::uint64_t{1} << kLengthBits) - 1;
  static_assert(kMostIds <= std::int64_t{1} << kPlaceBits && kLongestToken <= kLengthMask + 1);

  [[nodiscard]] static std::uint32_t place_of(std::uint64_t key) noexcept {
    return static_cast<std::uint32_t>(key & ((std::uint64_t{1} << kPlaceBits) - 1));
  }
  // Where its right part begins.
  [[nodiscard]] static std::size_t cut_of(std::string_view token, std::uint64_t key) noexcept;
  // Of each place: of how many different scores that of its token is less.
  [[nodiscard]] static std::vector<std::uint32_t> ranks_of(const TokenizerLists& lists, std::size_t tokens);
  void add_of_token(std::uint32_t place, std::uint32_t rank, const TokenizerLists& lists, TableLimit& limit);

  const Vocabulary& vocabulary_;
  const TokenIndex& index_;
  std::bitset<kLongestToken + 1> lengths_;  // in bytes, of tokens
  std::vector<std::uint64_t> keys_;
};

}  // namespace headlight::text
