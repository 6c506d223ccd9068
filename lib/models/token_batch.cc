#include "models/token_batch.h"

namespace headlight::models {
namespace {

// Long enough that weights are read from memory seldom (a token of MiniLM takes 21 MFLOP, its weights 42 MB), short
// enough that the widest activations of a pass, tokens · F floats, stay in a last-level cache: 12 MB for MiniLM.
constexpr std::size_t kTokensAtATime = 2048;

}  // namespace

TokenBatch::TokenBatch(std::span<const Sequence> sequences, std::size_t first, std::size_t most_tokens)
    : first_(first) {
  for (std::size_t number = first; number < sequences.size(); ++number) {
    const Sequence& sequence = sequences[number];
    if (number > first && ids_.size() + sequence.size() > most_tokens) break;
    for (const Token& token : sequence) {
      ids_.push_back(token.id);
      positions_.push_back(token.position);
    }
    offsets_.push_back(tokens());
  }
  token_types_.assign(ids_.size(), 0);
}

EncoderInput TokenBatch::input(bool with_token_types) const {
  EncoderInput input{.ids = ids_, .positions = positions_, .offsets = offsets_};
  if (with_token_types) input.token_types = token_types_;
  return input;
}

void for_each_batch(Engine& engine, const headlight::Encoder& network, std::span<const Sequence> sequences,
                    const std::function<void(const TokenBatch&, View<const float, 2>)>& take) {
  const EncoderOptions& options = network.options();
  for (std::size_t first = 0; first < sequences.size();) {
    const TokenBatch batch(sequences, first, kTokensAtATime);
    Tensor<float, 2> hidden({batch.tokens(), options.width});
    if (batch.tokens() > 0) network.forward(engine, batch.input(options.token_types > 0), hidden);
    take(batch, hidden);
    first += batch.sequences();
  }
}

}  // namespace headlight::models
