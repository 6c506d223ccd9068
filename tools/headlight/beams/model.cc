// A sentence through a model, with what every head of every layer looked at and brought.
#include <algorithm>

#include "headlight/analysis/head_parts.h"
#include "tools/headlight/beams/beams.h"
#include "tools/headlight/support/word_tokens.h"

namespace headlight::program {
namespace {

// What one forward pass leaves behind, token by token.
struct Traces {
  std::vector<Tensor<float, 3>> weights;  // [H, N, N] a layer
  std::vector<Tensor<float, 2>> outputs;  // [N, H · D] a layer: the heads' with their weights and gates, before W_O
};

Traces trace(Engine& engine, const models::TextEncoder& model, const ModelNetwork& network,
             std::span<const std::int64_t> ids) {
  const NetworkSizes& sizes = network.sizes();
  const auto tokens = static_cast<std::int64_t>(ids.size());
  Traces traces;
  std::vector<LayerProbabilities> probabilities;
  std::vector<LayerHeads> heads;
  for (std::int64_t layer = 0; layer < sizes.layers; ++layer) {
    Tensor<float, 3>& weights = traces.weights.emplace_back(Tensor<float, 3>({sizes.heads, tokens, tokens}));
    Tensor<float, 2>& outputs = traces.outputs.emplace_back(Tensor<float, 2>({tokens, sizes.columns()}));
    probabilities.push_back({.layer = layer});
    probabilities.back().probabilities.per_head = View<float, 4>(weights.data(), {1, sizes.heads, tokens, tokens});
    heads.push_back({.layer = layer, .scaled_outputs = outputs});
  }
  const std::vector<std::int64_t> types(network.has_token_types() ? ids.size() : 0);
  const std::vector<std::int64_t> offsets{0, tokens}, positions = model.positions(ids, offsets);
  Tensor<float, 2> hidden({tokens, sizes.width});
  network.forward(engine, {ids, positions, types, offsets}, hidden, probabilities, heads);
  return traces;
}

// Tokens to words: columns are summed, rows averaged.
Tensor<float, 3> joined(const Tensor<float, 3>& tokens, const std::vector<WordTokens>& words) {
  const std::int64_t heads = tokens.shape()[0];
  const auto length = static_cast<std::int64_t>(words.size());
  Tensor<float, 3> result({heads, length, length});
  for (std::int64_t head = 0; head < heads; ++head) {
    for (std::int64_t i = 0; i < length; ++i) {
      const WordTokens& from = words[static_cast<std::size_t>(i)];
      for (std::int64_t j = 0; j < length; ++j) {
        const WordTokens& to = words[static_cast<std::size_t>(j)];
        double sum = 0;
        for (std::int64_t row = from.begin; row < from.end; ++row) {
          for (std::int64_t column = to.begin; column < to.end; ++column) {
            sum += static_cast<double>(tokens(head, row, column));
          }
        }
        result(head, i, j) = static_cast<float>(sum / static_cast<double>(from.end - from.begin));
      }
    }
  }
  return result;
}

// [N, H] → [L, H], the mean over a word's tokens.
Tensor<float, 2> joined(const Tensor<float, 2>& tokens, const std::vector<WordTokens>& words) {
  const std::int64_t heads = tokens.shape()[1];
  Tensor<float, 2> result({static_cast<std::int64_t>(words.size()), heads});
  for (std::int64_t i = 0; i < result.shape()[0]; ++i) {
    const WordTokens& word = words[static_cast<std::size_t>(i)];
    for (std::int64_t head = 0; head < heads; ++head) {
      double sum = 0;
      for (std::int64_t row = word.begin; row < word.end; ++row) sum += static_cast<double>(tokens(row, head));
      result(i, head) = static_cast<float>(sum / static_cast<double>(word.end - word.begin));
    }
  }
  return result;
}

Tensor<float, 2> part_lengths(Engine& engine, const ModelNetwork& network, const Weights& weights, std::int64_t layer,
                              const Tensor<float, 2>& outputs) {
  Tensor<float, 2> lengths({outputs.shape()[0], network.sizes().heads});
  analysis::head_part_norms(engine, outputs, network.projections(weights, layer).output, lengths);
  return lengths;
}

}  // namespace

Beams beams_of_text(Engine& engine, const models::TextEncoder& model, const ModelNetwork& network,
                    const std::string& text, bool pieces) {
  const std::vector<std::int64_t> ids = model.tokenize(text);
  const std::vector<WordTokens> words = words_of(model, text, ids, pieces);
  const Traces traces = trace(engine, model, network, ids);
  const Weights weights = network.weights();
  Beams beams;
  beams.title = text;
  beams.heads = network.sizes().heads;
  for (const WordTokens& word : words) beams.words.push_back(word.word);
  for (std::size_t layer = 0; layer < traces.weights.size(); ++layer) {
    const Tensor<float, 2> lengths =
        part_lengths(engine, network, weights, static_cast<std::int64_t>(layer), traces.outputs[layer]);
    beams.layers.push_back({joined(traces.weights[layer], words), joined(lengths, words)});
  }
  return beams;
}

}  // namespace headlight::program
