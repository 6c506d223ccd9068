#include "text/unigram.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "text/utf8.h"

namespace headlight::text {
namespace {

// What an unknown character costs beyond the rarest token.
constexpr double kUnknownPenalty = 10.0;
// No sum of so many is infinite.
constexpr double kLargestScore = 1e100;
constexpr double kUnreached = -std::numeric_limits<double>::infinity();

}  // namespace

Unigram::Unigram(const JsonValue& model, const TokenizerLists& lists, TableLimit& limit) {
  expect_keys(model, {"vocab", "unk_id", "byte_fallback"});
  std::size_t count = 0, bytes = 0;
  double lowest = std::numeric_limits<double>::infinity();
  lists.for_each_score([&](std::size_t number, std::string_view token, double score) {
    if (!(std::abs(score) <= kLargestScore)) {
      lists.fail(TokenizerLists::List::tokens, number, {}, "is no token with its score");
    }
    ++count;
    bytes += token.size();
    lowest = std::min(lowest, score);
  });
  limit.take(count * sizeof scores_[0]);
  scores_.reserve(count);
  vocabulary_.reserve(count, bytes, limit);
  lists.for_each_score([&](std::size_t number, std::string_view token, double score) {
    scores_.push_back(score);
    vocabulary_.add(lists, number, token, static_cast<std::int64_t>(number), limit);
  });
  static_cast<void>(vocabulary_.sort(limit));  // each has an id of its own
  tokens_.build(vocabulary_.tokens(), limit);
  unknown_score_ = lowest - kUnknownPenalty;
  const std::int64_t unknown = model.integer("unk_id").value_or(-1);
  if (!vocabulary_.token(unknown)) model.fail("unk_id", "is not the id of a token");
  unknown_ = static_cast<std::uint32_t>(unknown);
  fallback_.read(model, [this](std::string_view token) { return find(token); });
  for (std::uint32_t place = 0; place < vocabulary_.tokens().size(); ++place) {
    longest_ = std::max(longest_, vocabulary_.tokens()[place].size());
  }
}

// scores[n], previous[n], symbols[n]: of the best way to build the first n bytes its score, where its last token
// begins, and that token.
std::size_t Unigram::search(std::string_view piece, Scratch& scratch) const {
  scratch.scores.assign(piece.size() + 1, kUnreached);
  scratch.previous.resize(piece.size() + 1);
  scratch.symbols.resize(piece.size() + 1);
  scratch.scores[0] = 0.0;
  std::size_t reached = 0, seam = 0;
  for (std::size_t begin = 0; begin < piece.size();) {
    // From before it no token reaches further, and none could that the end of the piece cut off.
    const bool apart = begin == reached && begin > 0 && piece.size() - begin >= longest_;
    if (apart && scratch.symbols[begin] != unknown_) seam = begin;
    const double score = scratch.scores[begin];
    const std::size_t character = begin + size_of_code_point(piece[begin]);
    const auto offer = [&](std::size_t end, double sum, std::uint32_t id) {
      reached = std::max(reached, end);
      if (!(sum > scratch.scores[end])) return;
      scratch.scores[end] = sum;
      scratch.previous[end] = static_cast<std::uint32_t>(begin);
      scratch.symbols[end] = id;
    };
    bool single = false;
    Trie::Walk walk(tokens_);
    for (std::size_t at = begin; at < piece.size() && walk.advance(piece[at]);) {
      ++at;
      const std::uint32_t id = walk.token();
      if (id == Trie::kNone) continue;
      offer(at, score + scores_[id], id);
      single = single || at == character;
    }
    if (!single) offer(character, score + unknown_score_, unknown_);
    begin = character;
  }
  return seam;
}

void Unigram::append(std::string_view piece, Scratch& scratch, std::vector<std::int64_t>& ids) const {
  if (scratch.words.find(piece, ids)) return;
  const std::size_t before = ids.size();
  search(piece, scratch);
  append_path(piece, scratch, ids);
  scratch.words.keep(piece, ids, before);
}

void Unigram::append_first(std::string_view piece, std::size_t most, Scratch& scratch,
                           std::vector<std::int64_t>& ids) const {
  const std::size_t before = ids.size();
  for (std::size_t size = first_bytes(most, longest_); size < piece.size() / 4; size *= 4) {
    std::size_t end = size;
    while ((static_cast<unsigned char>(piece[end]) & 0xC0) == 0x80) --end;
    append_path(piece.substr(0, search(piece.substr(0, end), scratch)), scratch, ids);
    if (ids.size() - before >= most) return;
    ids.resize(before);
  }
  append(piece, scratch, ids);
}

void Unigram::append_path(std::string_view piece, Scratch& scratch, std::vector<std::int64_t>& ids) const {
  // From the end to the beginning.
  std::vector<std::uint32_t>& ends = scratch.ends;
  ends.clear();
  for (std::size_t end = piece.size(); end > 0; end = scratch.previous[end]) {
    ends.push_back(static_cast<std::uint32_t>(end));
  }
  std::size_t begin = 0;
  for (std::size_t n = ends.size(); n-- > 0;) {
    const std::uint32_t id = scratch.symbols[ends[n]];
    if (id != unknown_) {
      ids.push_back(id);
      begin = ends[n];
      continue;
    }
    // Unknown characters side by side are one token.
    if (n > 0 && scratch.symbols[ends[n - 1]] == unknown_) continue;
    append_unknown(piece.substr(begin, ends[n] - begin), ids);
    begin = ends[n];
  }
}

void Unigram::append_unknown(std::string_view text, std::vector<std::int64_t>& ids) const {
  const std::uint32_t id = text.size() <= kLongestToken ? find(text) : kNone;
  if (id != kNone) return ids.push_back(id);
  if (!fallback_.take_bytes(text, [&](std::uint32_t token) { ids.push_back(token); })) ids.push_back(unknown_);
}

}  // namespace headlight::text
