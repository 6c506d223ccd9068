// Structural masks as intervals: query row i sees the keys [begin, end) and no L × L mask ever exists.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "headlight/attention.h"
#include "runtime/inner_api.h"

namespace headlight::ops {

struct KeyInterval {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

struct RowInterval {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

// One sample up to its lengths, or one of the packed sequences: the rows and keys that belong together.
struct AttentionSequence {
  std::int64_t first_query = 0;  // in the tensor's rows
  std::int64_t queries = 0;
  std::int64_t first_key = 0;  // in the tensor's keys
  std::int64_t keys = 0;
  // Where its first key and its first row stand; the row where the alignment says, if nothing is given.
  std::int64_t key_start = 0;
  std::optional<std::int64_t> query_start{};
};

// The keys of each packed sequence.
[[nodiscard]] inline std::span<const std::int64_t> packed_key_offsets(const AttentionOptions& options) noexcept {
  return options.key_offsets.empty() ? options.query_offsets : options.key_offsets;
}
// Of the sequence that has the most; 0 where none are packed.
[[nodiscard]] std::int64_t longest_packed_keys(const AttentionOptions& options) noexcept;

// The sequences of sample b: one, or with packed offsets as many as they name.
class AttentionSequences {
 public:
  AttentionSequences(const AttentionOptions& options, std::int64_t query_length, std::int64_t key_length) noexcept
      : options_(&options), query_length_(query_length), key_length_(key_length) {}
  // Of a tensor that holds the rows of queries from that one on alone. What is said of sequences stays as it is, but
  // for the tensor's row where one begins: before the first, it is negative.
  AttentionSequences(const AttentionOptions& options, std::int64_t query_length, std::int64_t key_length,
                     std::int64_t first_query) noexcept
      : options_(&options), query_length_(query_length), key_length_(key_length), first_query_(first_query) {}

  [[nodiscard]] HEADLIGHT_INNER_API std::int64_t count() const noexcept;
  [[nodiscard]] HEADLIGHT_INNER_API AttentionSequence operator()(std::int64_t b, std::int64_t s) const noexcept;
  // The last sequence that begins at or before that row (key) of the tensor; those before it may be empty.
  [[nodiscard]] std::int64_t of_query(std::int64_t row) const noexcept;
  [[nodiscard]] std::int64_t of_key(std::int64_t key) const noexcept;

 private:
  const AttentionOptions* options_;
  std::int64_t query_length_;
  std::int64_t key_length_;
  std::int64_t first_query_ = 0;
};

// Causal, window, chunk and the sequence's end as one interval for each row; rows and keys, and the positions here,
// count from the sequence's first.
class IntervalRule {
 public:
  IntervalRule(const AttentionOptions& options, const AttentionSequence& sequence) noexcept;
  [[nodiscard]] KeyInterval operator()(std::int64_t row) const noexcept;
  // All rows that see any of the keys [first, last) lie in there.
  [[nodiscard]] RowInterval rows_that_see(std::int64_t first_key, std::int64_t last_key) const noexcept;
  // Where a row stands for window, chunk and slopes.
  [[nodiscard]] std::int64_t position(std::int64_t row) const noexcept { return row + shift_; }
  [[nodiscard]] bool same_for_all_rows() const noexcept { return !causal_ && left_ < 0 && right_ < 0 && chunk_ == 0; }

 private:
  std::int64_t queries_;
  std::int64_t keys_;
  std::int64_t key_start_;
  std::int64_t shift_;         // from key 0 to row 0, for window, chunk and slopes
  std::int64_t causal_shift_;  // and for causal
  std::int64_t left_;          // −1: unbounded
  std::int64_t right_;
  std::int64_t chunk_;  // 0: none
  bool causal_;
};

// Where a query of the tensor stands, counted in the tensor's keys.
[[nodiscard]] inline std::int64_t position_of(const AttentionOptions& options, const AttentionSequence& sequence,
                                              std::int64_t query) noexcept {
  return sequence.first_key + IntervalRule(options, sequence).position(query - sequence.first_query);
}

}  // namespace headlight::ops
