#include "ops/attention_masks.h"

#include <algorithm>

namespace headlight::ops {
namespace {

std::int64_t last_at_or_before(std::span<const std::int64_t> offsets, std::int64_t position) noexcept {
  const auto after = std::upper_bound(offsets.begin(), offsets.end() - 1, position);
  return std::max<std::int64_t>(after - offsets.begin() - 1, 0);
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
  return options_.query_offsets.empty() ? 1 : static_cast<std::int64_t>(options_.query_offsets.size()) - 1;
}

AttentionSequence AttentionSequences::operator()(std::int64_t b, std::int64_t s) const noexcept {
  if (!options_.query_offsets.empty()) {
    const auto sequence = static_cast<std::size_t>(s);
    const auto queries = options_.query_offsets;
    const auto keys = packed_key_offsets(options_);
    return {queries[sequence], queries[sequence + 1] - queries[sequence], keys[sequence],
            keys[sequence + 1] - keys[sequence]};
  }
  const auto sample = static_cast<std::size_t>(b);
  return {0, options_.query_lengths.empty() ? query_length_ : options_.query_lengths[sample], 0,
          options_.key_lengths.empty() ? key_length_ : options_.key_lengths[sample]};
}

std::int64_t AttentionSequences::of_query(std::int64_t row) const noexcept {
  return options_.query_offsets.empty() ? 0 : last_at_or_before(options_.query_offsets, row);
}

std::int64_t AttentionSequences::of_key(std::int64_t key) const noexcept {
  return options_.query_offsets.empty() ? 0 : last_at_or_before(packed_key_offsets(options_), key);
}

IntervalRule::IntervalRule(const AttentionOptions& options, const AttentionSequence& sequence) noexcept
    : queries_(sequence.queries), keys_(sequence.keys), chunk_(options.chunk), causal_(options.causal != Causal::none) {
  const std::int64_t difference = sequence.keys - sequence.queries;
  const bool causal_at_end = options.causal == Causal::bottom_right;
  const Align align = options.align.value_or(causal_at_end ? Align::bottom_right : Align::top_left);
  causal_shift_ = causal_at_end ? difference : 0;
  shift_ = align == Align::bottom_right ? difference : 0;
  // No two positions are further apart than this, so that a window of 2⁶³ − 1 overflows nothing.
  const std::int64_t furthest = 2 * (sequence.keys + sequence.queries);
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
    const std::int64_t chunk = floor_divide(position, chunk_);
    if (chunk < 0) return {0, 0};
    const std::int64_t begin = chunk * chunk_;
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
    rows.first = std::max(rows.first, first_key / chunk_ * chunk_ - shift_);
    // Chunks may be longer than any sequence.
    const std::int64_t chunk_end = (last_key - 1) / chunk_ * chunk_;
    if (chunk_ < queries_ + shift_ - chunk_end) rows.last = std::min(rows.last, chunk_end + chunk_ - shift_);
  }
  return rows.first < rows.last ? rows : RowInterval{0, 0};
}

}  // namespace headlight::ops
