#include "text/score_merges.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "text/merge_table.h"

namespace headlight::text {
namespace {

bool begins_character(char byte) noexcept { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

}  // namespace

ScoreMerges::ScoreMerges(const Vocabulary& vocabulary, const TokenIndex& index, const TokenizerLists& lists,
                         TableLimit& limit)
    : vocabulary_(vocabulary), index_(index) {
  const std::uint32_t tokens = vocabulary.tokens().size();
  for (std::uint32_t place = 0; place < tokens; ++place) lengths_.set(vocabulary.tokens()[place].size());
  const std::size_t for_ranks = tokens * (sizeof(double) + 2 * sizeof(std::uint32_t));
  limit.take(for_ranks);
  {
    const std::vector<std::uint32_t> ranks = ranks_of(lists, tokens);
    for (std::uint32_t place = 0; place < tokens; ++place) add_of_token(place, ranks[place], lists, limit);
  }
  limit.give_back(for_ranks);
  std::sort(keys_.begin(), keys_.end());
}

std::vector<std::uint32_t> ScoreMerges::ranks_of(const TokenizerLists& lists, std::size_t tokens) {
  std::vector<double> scores;
  scores.reserve(tokens);
  lists.for_each_score([&](std::size_t, std::string_view, double score) { scores.push_back(score); });
  std::vector<std::uint32_t> order(tokens), ranks(tokens);
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return scores[a] > scores[b]; });
  std::uint32_t rank = 0;
  for (std::size_t n = 0; n < order.size(); ++n) {
    if (n > 0 && scores[order[n - 1]] != scores[order[n]]) ++rank;
    ranks[order[n]] = rank;
  }
  return ranks;
}

void ScoreMerges::add_of_token(std::uint32_t place, std::uint32_t rank, const TokenizerLists& lists,
                               TableLimit& limit) {
  const std::string_view token = vocabulary_.tokens()[place];
  const auto characters = static_cast<std::uint64_t>(std::count_if(token.begin(), token.end(), begins_character));
  std::uint64_t left = 1;
  for (std::size_t cut = 1; cut < token.size(); ++cut) {
    if (!begins_character(token[cut])) continue;
    const std::uint64_t lengths = (kLengthMask - left) << kLengthBits | (kLengthMask - (characters - left));
    ++left;
    if (!lengths_[cut] || !lengths_[token.size() - cut]) continue;  // most cuts of a long token
    if (index_.find(token.substr(0, cut)) == TokenIndex::kNone || index_.find(token.substr(cut)) == TokenIndex::kNone) {
      continue;
    }
    if (keys_.size() == MergeTable::kMostMerges) {
      lists.fail(TokenizerLists::List::tokens, "has too many tokens that are made of two others");
    }
    if (keys_.size() == keys_.capacity()) {
      const std::size_t before = memory(), twice = std::max<std::size_t>(2 * keys_.size(), 16);
      limit.take(twice * sizeof keys_[0]);
      keys_.reserve(twice);
      limit.give_back(before);
    }
    keys_.push_back((std::uint64_t{rank} << 2 * kLengthBits | lengths) << kPlaceBits | place);
  }
}

std::size_t ScoreMerges::cut_of(std::string_view token, std::uint64_t key) noexcept {
  std::uint64_t left = kLengthMask - (key >> (kPlaceBits + kLengthBits) & kLengthMask);
  std::size_t cut = 1;
  while (!begins_character(token[cut]) || --left > 0) ++cut;
  return cut;
}

}  // namespace headlight::text
