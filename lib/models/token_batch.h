// Sequences laid end to end, as headlight::Encoder wants them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "headlight/layers/encoder.h"
#include "headlight/tensor.h"

namespace headlight::models {

// One token that is seen: its id, its position in its sequence.
struct Token {
  std::int64_t id = 0;
  std::int64_t position = 0;
};

using Sequence = std::vector<Token>;

// Some sequences in a row.
class TokenBatch {
 public:
  // Takes sequences[first], sequences[first + 1] … while they hold at most `most_tokens` together, but at least one.
  TokenBatch(std::span<const Sequence> sequences, std::size_t first, std::size_t most_tokens);

  [[nodiscard]] std::size_t first() const noexcept { return first_; }
  [[nodiscard]] std::size_t sequences() const noexcept { return offsets_.size() - 1; }
  [[nodiscard]] std::int64_t tokens() const noexcept { return static_cast<std::int64_t>(ids_.size()); }
  [[nodiscard]] std::span<const std::int64_t> offsets() const noexcept { return offsets_; }

  // For a network with or without a table of token types; all types are 0.
  [[nodiscard]] EncoderInput input(bool with_token_types) const;

 private:
  std::size_t first_;
  std::vector<std::int64_t> ids_;
  std::vector<std::int64_t> positions_;
  std::vector<std::int64_t> token_types_;
  std::vector<std::int64_t> offsets_{0};
};

// Runs all sequences through the network, a bounded number of tokens at a time; take(batch, its hidden states [N, E]).
void for_each_batch(Engine& engine, const headlight::Encoder& network, std::span<const Sequence> sequences,
                    const std::function<void(const TokenBatch&, View<const float, 2>)>& take);

}  // namespace headlight::models
