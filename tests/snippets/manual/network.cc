// A network of two Llama-like blocks: RMS norms, rotary embeddings, gated feed-forward; and one step of training.
#include <headlight/layers.h>

#include <vector>

int main() {
  headlight::BlockSpec block;
  block.attention = {.heads = 4, .key_value_heads = 2, .rotary = {.dims = 16}, .causal = true};
  block.feed_forward = {.hidden_width = 128, .activation = headlight::Activation::silu, .gated = true};
  block.attention_residual.before = block.feed_forward_residual.before = {.kind = headlight::NormKind::rms};

  headlight::NetworkSpec spec = {.width = 64, .embedding = {.vocabulary = 100}};
  spec.blocks = {block, block};
  spec.last_norm = {.kind = headlight::NormKind::rms};
  spec.logits = {.weight = headlight::LogitsSpec::Weight::word_embeddings};

  headlight::Engine engine;
  headlight::Network network(spec);
  network.initialize(/*seed=*/1);  // or network.load(weights)

  // Two sequences, of three tokens and of one.
  const std::vector<std::int64_t> ids = {5, 17, 99, 3}, positions = {0, 1, 2, 0}, offsets = {0, 3, 4};
  const headlight::EncoderInput input = {.ids = ids, .positions = positions, .offsets = offsets};
  headlight::Tensor<float, 2> hidden({4, 64}), logits({4, 100}), gradient({4, 64});
  network.forward(engine, input, hidden.view());
  network.logits(engine, hidden.view(), logits.view());

  network.set_training(true);
  headlight::SavedState saved;
  network.forward(engine, input, hidden.view(), saved);
  for (float& number : gradient) number = 1;
  network.backward(engine, input, saved, gradient.view());
  return network.parameters()[0].name == "embeddings.word.weight" ? 0 : 1;
}
