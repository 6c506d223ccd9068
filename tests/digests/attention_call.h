// A random call of attention(): sizes, options, and what they point to.
#pragma once

#include <cstdint>
#include <sstream>
#include <vector>

#include "digests/draws.h"
#include "headlight/attention.h"

namespace headlight::test {

struct AttentionSize {
  std::int64_t batch = 1, query_length = 0, key_length = 0, query_heads = 1, key_value_heads = 1;
  std::int64_t head_dim = 0, value_dim = 0;
};

// From one row to 700, on none to 2000 keys; `work`: about how many multiply-adds at most.
AttentionSize draw_attention_size(Random& random, double work);
std::ostream& operator<<(std::ostream& words, const AttentionSize& size);

// Masks, lengths, offsets, bias, scale and dropout for calls of one size. Makes the batch 1 where it draws sequences
// that lie one after another. The options point into this object.
class AttentionChoice {
 public:
  // What a stream of keys, which has no end yet, can take too.
  enum class Kind : std::uint8_t { all, of_streams };
  AttentionChoice(Random& random, AttentionSize& size, Kind kind, std::ostream& words);
  AttentionChoice(const AttentionChoice&) = delete;
  AttentionChoice& operator=(const AttentionChoice&) = delete;

  AttentionOptions options;

  // Probabilities to write out, for some or all rows, each head's or their mean or both.
  void ask_for_probabilities(Random& random, const AttentionSize& size, std::ostream& words);

 private:
  void draw_intervals(Random& random, const AttentionSize& size, Kind kind, std::ostream& words);
  void draw_sequences(Random& random, AttentionSize& size, std::ostream& words);
  void draw_mask_and_bias(Random& random, const AttentionSize& size, std::ostream& words);

  DigestMemory memory_;
  std::vector<std::int64_t> query_lengths_, key_lengths_, query_offsets_, key_offsets_, rows_;
  std::vector<std::uint8_t> mask_;
};

// Query, key and value of that size with numbers in them, now and then with some that are huge or not finite.
struct AttentionOperands {
  AttentionOperands(Random& random, const AttentionSize& size, std::ostream& words);

  DigestMemory memory;
  View<float, 4> query, key, value;
};

}  // namespace headlight::test
