// Which query row sees which key, pair by pair, as the definitions say it. (The engine computes intervals instead.)
#include "reference/attention.h"

namespace headlight::reference {
namespace {

// The rows and keys that row i belongs with: a sample up to its lengths, or one of the packed sequences.
struct Sequence {
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
    return {queries[s], queries[s + 1] - queries[s], keys[s], keys[s + 1] - keys[s]};
  }
  const auto sample = static_cast<std::size_t>(b);
  return {0, options.query_lengths.empty() ? query_length : options.query_lengths[sample], 0,
          options.key_lengths.empty() ? key_length : options.key_lengths[sample]};
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

bool allows(const BooleanMask& mask, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  const auto& shape = mask.entries.shape;
  const bool entry =
      mask.entries(shape[0] == 1 ? 0 : b, shape[1] == 1 ? 0 : h, shape[2] == 1 ? 0 : i, shape[3] == 1 ? 0 : j) != 0;
  return entry == (mask.means == MaskMeans::attend);
}

}  // namespace

PlaceInSequence place_in_sequence(const AttentionOptions& options, std::int64_t query_length, std::int64_t key_length,
                                  std::int64_t b, std::int64_t i, std::int64_t j) {
  const Sequence sequence = sequence_of(options, query_length, key_length, b, i);
  return {i - sequence.first_query, j - sequence.first_key};
}

bool visible(const AttentionOptions& options, std::int64_t query_length, std::int64_t key_length, std::int64_t b,
             std::int64_t h, std::int64_t i, std::int64_t j) {
  const Sequence sequence = sequence_of(options, query_length, key_length, b, i);
  const std::int64_t row = i - sequence.first_query;
  const std::int64_t key = j - sequence.first_key;
  if (row >= sequence.queries || key < 0 || key >= sequence.keys) return false;

  const std::int64_t shift = sequence.keys - sequence.queries;
  const bool causal_bottom_right = options.causal == Causal::bottom_right;
  if (options.causal != Causal::none && key > row + (causal_bottom_right ? shift : 0)) return false;

  const Align align = options.align.value_or(causal_bottom_right ? Align::bottom_right : Align::top_left);
  const std::int64_t position = row + (align == Align::bottom_right ? shift : 0);
  if (options.window.left >= 0 && position - key > options.window.left) return false;
  if (options.window.right >= 0 && key - position > options.window.right) return false;
  if (options.chunk > 0 && key / options.chunk != floor_divide(position, options.chunk)) return false;

  return !options.mask || allows(*options.mask, b, h, i, j);
}

}  // namespace headlight::reference
