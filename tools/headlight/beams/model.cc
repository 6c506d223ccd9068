// A sentence through a model, with what every head of every layer looked at and brought.
#include <algorithm>
#include <numeric>

#include "headlight/analysis/head_parts.h"
#include "tools/headlight/beams/beams.h"
#include "tools/headlight/support/word_tokens.h"

namespace headlight::program {
namespace {

// What one forward pass leaves behind, token by token.
struct Traces {
  std::vector<Tensor<float, 3>> weights;  // [H, N, N] a layer
  std::vector<Tensor<float, 2>> outputs;  // [N, E] a layer: the heads' with their weights and gates, before W_O
};

Traces trace(Engine& engine, const models::TextEncoder& model, std::span<const std::int64_t> ids) {
  const EncoderOptions& options = model.options().encoder;
  const auto tokens = static_cast<std::int64_t>(ids.size());
  Traces traces;
  std::vector<LayerProbabilities> probabilities;
  std::vector<LayerHeads> heads;
  for (std::int64_t layer = 0; layer < options.layers; ++layer) {
    Tensor<float, 3>& weights = traces.weights.emplace_back(Tensor<float, 3>({options.heads, tokens, tokens}));
    Tensor<float, 2>& outputs = traces.outputs.emplace_back(Tensor<float, 2>({tokens, options.width}));
    probabilities.push_back({.layer = layer});
    probabilities.back().probabilities.per_head = View<float, 4>(weights.data(), {1, options.heads, tokens, tokens});
    heads.push_back({.layer = layer, .scaled_outputs = outputs});
  }
  std::vector<std::int64_t> positions(ids.size());
  std::iota(positions.begin(), positions.end(), 0);
  const std::vector<std::int64_t> types(options.token_types > 0 ? ids.size() : 0);
  const std::vector<std::int64_t> offsets{0, tokens};
  Tensor<float, 2> hidden({tokens, options.width});
  model.network().forward(engine, {ids, positions, types, offsets}, hidden, probabilities, heads);
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

Tensor<float, 2> part_lengths(Engine& engine, const Weights& weights, std::int64_t layer, std::int64_t heads,
                              const Tensor<float, 2>& outputs) {
  const std::int64_t width = outputs.shape()[1];
  const WeightView& merge = weights.at("layers." + std::to_string(layer) + ".self_attn.out_proj.weight");
  Tensor<float, 2> lengths({outputs.shape()[0], heads});
  analysis::head_part_norms(engine, outputs, {merge.values.data(), {width, merge.shape[1]}}, lengths);
  return lengths;
}

}  // namespace

Beams beams_of_text(Engine& engine, const models::TextEncoder& model, const std::string& text, bool pieces) {
  const std::vector<std::int64_t> ids = model.tokenizer().encode(text, model.options().max_length);
  const std::vector<WordTokens> words = words_of(model.tokenizer(), text, ids, pieces);
  const Traces traces = trace(engine, model, ids);
  const Weights weights = model.network().weights();
  Beams beams;
  beams.title = text;
  beams.heads = model.options().encoder.heads;
  for (const WordTokens& word : words) beams.words.push_back(word.word);
  for (std::size_t layer = 0; layer < traces.weights.size(); ++layer) {
    const Tensor<float, 2> lengths =
        part_lengths(engine, weights, static_cast<std::int64_t>(layer), beams.heads, traces.outputs[layer]);
    beams.layers.push_back({joined(traces.weights[layer], words), joined(lengths, words)});
  }
  return beams;
}

}  // namespace headlight::program
