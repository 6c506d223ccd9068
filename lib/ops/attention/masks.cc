#include "ops/attention/masks.h"

#include <algorithm>
#include <cstdlib>

namespace headlight::ops {
namespace {

std::int64_t last_at_or_before(std::span<const std::int64_t> offsets, std::int64_t position) noexcept {
  const auto after = std::upper_bound(offsets.begin(), offsets.end() - 1, position);
  return std::max<std::int64_t>(after - offsets.begin() - 1, 0);
}

std::int64_t start_of(const Start& start, std::size_t number) noexcept {
  if (start.of_all) return *start.of_all;
  return start.of_each.empty() ? 0 : start.of_each[number];
}

// Made where it is wanted: the wide loads of a copy would wait for the narrow stores that filled the sequence in, which
// would show in a call of one short head.
AttentionSequence sequence_of(const AttentionOptions& options, std::size_t number, KeyInterval queries,
                              KeyInterval keys, std::int64_t first_query) noexcept {
  return {.first_query = queries.begin - first_query,
          .queries = queries.end - queries.begin,
          .first_key = keys.begin,
          .keys = keys.end - keys.begin,
          .key_start = start_of(options.key_start, number),
          .query_start = options.query_start ? std::optional(start_of(options.query_start, number)) : std::nullopt};
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) noexcept { return a / b - (a % b < 0 ? 1 : 0); }

}  // namespace

std::int64_t longest_packed_keys(const AttentionOptions& options) noexcept {
  const std::span<const std::int64_t> offsets = packed_key_offsets(options);
  std::int64_t longest = 0;
  for (std::size_t s = 1; s < offsets.size(); ++s) longest = std::max(longest, offsets[s] - offsets[s - 1]);
  return longest;
}

std::int64_t AttentionSequences::count() const noexcept {
  return options_->query_offsets.empty() ? 1 : static_cast<std::int64_t>(options_->query_offsets.size()) - 1;
}

AttentionSequence AttentionSequences::operator()(std::int64_t b, std::int64_t s) const noexcept {
  if (!options_->query_offsets.empty()) {
    const auto sequence = static_cast<std::size_t>(s);
    const auto queries = options_->query_offsets;
    const auto keys = packed_key_offsets(*options_);
    return sequence_of(*options_, sequence, {queries[sequence], queries[sequence + 1]},
                       {keys[sequence], keys[sequence + 1]}, first_query_);
  }
  const auto sample = static_cast<std::size_t>(b);
  return sequence_of(*options_, sample,
                     {0, options_->query_lengths.empty() ? query_length_ : options_->query_lengths[sample]},
                     {0, options_->key_lengths.empty() ? key_length_ : options_->key_lengths[sample]}, first_query_);
}

std::int64_t AttentionSequences::of_query(std::int64_t row) const noexcept {
  return options_->query_offsets.empty() ? 0 : last_at_or_before(options_->query_offsets, row + first_query_);
}

std::int64_t AttentionSequences::of_key(std::int64_t key) const noexcept {
  return options_->query_offsets.empty() ? 0 : last_at_or_before(packed_key_offsets(*options_), key);
}

IntervalRule::IntervalRule(const AttentionOptions& options, const AttentionSequence& sequence) noexcept
    : queries_(sequence.queries),
      keys_(sequence.keys),
      key_start_(sequence.key_start),
      chunk_(options.chunk),
      causal_(options.causal != Causal::none) {
  const auto shift = [&](bool at_end) {
    if (sequence.query_start) return *sequence.query_start - sequence.key_start;
    return at_end ? sequence.keys - sequence.queries : 0;
  };
  const bool causal_at_end = options.causal == Causal::bottom_right;
  causal_shift_ = shift(causal_at_end);
  shift_ = shift(options.align ? *options.align == Align::bottom_right : causal_at_end);
  // No two positions are further apart than this, so that a window of 2⁶³ − 1 overflows nothing.
  const std::int64_t furthest = std::abs(shift_) + 2 * (sequence.keys + sequence.queries);
  left_ = std::min(options.window.left, furthest);
  right_ = std::min(options.window.right, furthest);
}

KeyInterval IntervalRule::operator()(std::int64_t row) const noexcept {
  const std::int64_t position = row + shift_;
  KeyInterval interval{0, keys_};
  if (causal_) interval.end = std::min(interval.end, row + causal_shift_ + 1);
  if (left_ >= 0) interval.begin = std::max(interval.begin, position - left_);
  if (right_ >= 0) interval.end = std::min(interval.end, position + right_ + 1);
  if (chunk_ > 0) {
    const std::int64_t chunk = floor_divide(key_start_ + position, chunk_);
    if (chunk < 0) return {0, 0};
    const std::int64_t begin = chunk * chunk_ - key_start_;
    interval.begin = std::max(interval.begin, begin);
    if (chunk_ < interval.end - begin) interval.end = begin + chunk_;
  }
  if (interval.begin >= interval.end) return {0, 0};
  return interval;
}

RowInterval IntervalRule::rows_that_see(std::int64_t first_key, std::int64_t last_key) const noexcept {
  RowInterval rows{0, queries_};
  if (causal_) rows.first = std::max(rows.first, first_key - causal_shift_);
  if (right_ >= 0) rows.first = std::max(rows.first, first_key - right_ - shift_);
  if (left_ >= 0) rows.last = std::min(rows.last, last_key + left_ - shift_);
  if (chunk_ > 0) {
    const auto chunk_of = [&](std::int64_t key) { return (key_start_ + key) / chunk_ * chunk_ - key_start_; };
    rows.first = std::max(rows.first, chunk_of(first_key) - shift_);
    // Chunks may be longer than any sequence.
    const std::int64_t last_chunk = chunk_of(last_key - 1);
    if (chunk_ < queries_ + shift_ - last_chunk) rows.last = std::min(rows.last, last_chunk + chunk_ - shift_);
  }
  return rows.first < rows.last ? rows : RowInterval{0, 0};
}

}  // namespace headlight::ops
