// Which query row sees which key, pair by pair, as the definitions say it. (The engine computes intervals instead.)
#include "reference/attention.h"

namespace headlight::reference {
namespace {

// The rows and keys that row i belongs with: a sample up to its lengths, or one of the packed sequences.
struct Sequence {
  std::int64_t number;
  std::int64_t first_query;
  std::int64_t queries;
  std::int64_t first_key;
  std::int64_t keys;
};

Sequence sequence_of(const AttentionOptions& options, std::int64_t query_length, std::int64_t key_length,
                     std::int64_t b, std::int64_t i) {
  if (!options.query_offsets.empty()) {
    const auto queries = options.query_offsets;
    const auto keys = options.key_offsets.empty() ? queries : options.key_offsets;
    // The last sequence that starts at or before i; those before it may be empty.
    std::size_t s = 0;
    while (queries[s + 1] <= i) ++s;
    return {static_cast<std::int64_t>(s), queries[s], queries[s + 1] - queries[s], keys[s], keys[s + 1] - keys[s]};
  }
  const auto sample = static_cast<std::size_t>(b);
  return {b, 0, options.query_lengths.empty() ? query_length : options.query_lengths[sample], 0,
          options.key_lengths.empty() ? key_length : options.key_lengths[sample]};
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) { return a >= 0 ? a / b : -1 - (-1 - a) / b; }

bool allows(const BooleanMask& mask, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  const auto& shape = mask.entries.shape;
  const bool entry =
      mask.entries(shape[0] == 1 ? 0 : b, shape[1] == 1 ? 0 : h, shape[2] == 1 ? 0 : i, shape[3] == 1 ? 0 : j) != 0;
  return entry == (mask.means == MaskMeans::attend);
}

std::int64_t start_of(const Start& start, const Sequence& sequence) {
  if (start.of_all) return *start.of_all;
  return start.of_each.empty() ? 0 : start.of_each[static_cast<std::size_t>(sequence.number)];
}

// Where the sequence's first row stands, if nobody says but the alignment.
std::int64_t named_start(const AttentionOptions& options, const Sequence& sequence, Align align) {
  if (options.query_start) return start_of(options.query_start, sequence);
  const std::int64_t first = start_of(options.key_start, sequence);
  return align == Align::bottom_right ? first + sequence.keys - sequence.queries : first;
}

// For windows, chunks and slopes.
std::int64_t query_start(const AttentionOptions& options, const Sequence& sequence) {
  const bool at_end = options.causal == Causal::bottom_right;
  return named_start(options, sequence, options.align.value_or(at_end ? Align::bottom_right : Align::top_left));
}

// And for causal.
std::int64_t causal_start(const AttentionOptions& options, const Sequence& sequence) {
  return named_start(options, sequence, options.causal == Causal::bottom_right ? Align::bottom_right : Align::top_left);
}

}  // namespace

PlaceInSequence place_in_sequence(const AttentionOptions& options, std::int64_t query_length, std::int64_t key_length,
                                  std::int64_t b, std::int64_t i, std::int64_t j) {
  const Sequence sequence = sequence_of(options, query_length, key_length, b, i);
  const std::int64_t row = i - sequence.first_query;
  const std::int64_t key = j - sequence.first_key;
  return {row, key, row >= sequence.queries,
          query_start(options, sequence) + row - (start_of(options.key_start, sequence) + key)};
}

bool visible(const AttentionOptions& options, std::int64_t query_length, std::int64_t key_length, std::int64_t b,
             std::int64_t h, std::int64_t i, std::int64_t j) {
  const Sequence sequence = sequence_of(options, query_length, key_length, b, i);
  const std::int64_t row = i - sequence.first_query;
  if (row >= sequence.queries || j < sequence.first_key || j >= sequence.first_key + sequence.keys) return false;

  const std::int64_t key = start_of(options.key_start, sequence) + j - sequence.first_key;
  if (options.causal != Causal::none && key > causal_start(options, sequence) + row) return false;

  const std::int64_t position = query_start(options, sequence) + row;
  if (options.window.left >= 0 && position - key > options.window.left) return false;
  if (options.window.right >= 0 && key - position > options.window.right) return false;
  if (options.chunk > 0 && key / options.chunk != floor_divide(position, options.chunk)) return false;

  return !options.mask || allows(*options.mask, b, h, i, j);
}

}  // namespace headlight::reference
