#include "mpi/estimate.h"

#include <algorithm>
#include <bit>

#include "ops/attention/masks.h"

namespace headlight::mpi {
namespace {

// Pairs that are visible in one head of all samples or sequences, from some rows of each.
double visible_pairs(const ops::AttentionSizes& whole, const AttentionOptions& options) {
  constexpr std::int64_t kSamples = 32;
  const ops::AttentionSequences sequences(options, whole.query_length, whole.key_length);
  double pairs = 0;
  for (std::int64_t b = 0; b < whole.batch; ++b) {
    for (std::int64_t s = 0; s < sequences.count(); ++s) {
      const ops::AttentionSequence sequence = sequences(b, s);
      const ops::IntervalRule rule(options, sequence);
      const std::int64_t looked_at = std::min(sequence.queries, kSamples);
      double keys = 0;
      for (std::int64_t n = 0; n < looked_at; ++n) {
        const ops::KeyInterval interval = rule((2 * n + 1) * sequence.queries / (2 * looked_at));
        keys += static_cast<double>(interval.end - interval.begin);
      }
      if (looked_at > 0) pairs += keys * static_cast<double>(sequence.queries) / static_cast<double>(looked_at);
    }
  }
  return pairs;
}

double numbers(std::int64_t batch, std::int64_t length, std::int64_t heads, std::int64_t of_each) noexcept {
  return static_cast<double>(batch) * static_cast<double>(length) * static_cast<double>(heads) *
         static_cast<double>(of_each);
}

constexpr double share_of_others(int ranks) noexcept { return static_cast<double>(ranks - 1) / ranks; }

// In each round a block goes down a tree, to all ranks of its column. So a round takes as long as ⌈log₂ ring⌉ copies of
// it, one behind the other, and all rounds as long as so many copies of everything.
Cost cost_of(double broadcast, double exchanged, double flops, int ring, int head_ranks, double bytes) noexcept {
  const int ranks = ring * head_ranks;
  const double of_column = bytes * broadcast / head_ranks;
  const auto copies = static_cast<int>(std::bit_width(static_cast<unsigned>(ring - 1)));
  return {of_column * share_of_others(ring), of_column * copies,
          bytes * exchanged / ranks * share_of_others(head_ranks), flops / ranks};
}

}  // namespace

double Cost::seconds(const Spread& spread) const noexcept {
  return std::max(flops / spread.flops_per_second, sent_bytes / spread.bytes_per_second) +
         exchanged_bytes / spread.bytes_per_second;
}

Cost forward_cost(const ops::AttentionSizes& whole, const AttentionOptions& options, int ring, int head_ranks,
                  const Spread& spread) {
  const std::int64_t dims = whole.head_dim + whole.value_dim;
  const double keys = numbers(whole.batch, whole.key_length, whole.key_value_heads, dims);
  const double rows = numbers(whole.batch, whole.query_length, whole.query_heads, dims + 1);
  const double flops = visible_pairs(whole, options) * static_cast<double>(whole.query_heads * 2 * dims);
  return cost_of(keys, keys + rows, flops, ring, head_ranks, spread.bytes_per_number);
}

Cost backward_cost(const ops::AttentionSizes& whole, const AttentionOptions& options, int ring, int head_ranks,
                   const Spread& spread) {
  const std::int64_t dims = whole.head_dim + whole.value_dim;
  const double keys = numbers(whole.batch, whole.key_length, whole.key_value_heads, dims);
  const double rows = numbers(whole.batch, whole.query_length, whole.query_heads, dims + 2);
  const double flops = visible_pairs(whole, options) * static_cast<double>(whole.query_heads * 2) *
                       static_cast<double>(4 * whole.head_dim + 3 * whole.value_dim);
  return cost_of(keys + rows, 2 * keys + 2 * rows, flops, ring, head_ranks, spread.bytes_per_number);
}

int fastest_head_ranks(const ops::AttentionSizes& whole, const AttentionOptions& options, int ranks,
                       const Spread& spread) {
  int best = 1;
  double best_seconds = forward_cost(whole, options, ranks, 1, spread).seconds(spread);
  for (int n = 2; n <= ranks; ++n) {
    if (ranks % n != 0 || whole.key_value_heads % n != 0) continue;
    const double seconds = forward_cost(whole, options, ranks / n, n, spread).seconds(spread);
    if (seconds >= best_seconds) continue;
    best = n;
    best_seconds = seconds;
  }
  return best;
}

}  // namespace headlight::mpi
