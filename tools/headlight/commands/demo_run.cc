#include "tools/headlight/commands/demo_run.h"

#include <algorithm>
#include <utility>

#include "headlight/analysis/presets.h"
#include "headlight/layers/transformer.h"
#include "tools/headlight/support/repeated_times.h"

namespace headlight::program {
namespace {

const std::vector<std::string> kSentences{
    "A man is eating a piece of bread.",       "Somebody is having a meal.",
    "The engine computes attention on a CPU.", "Transformers run well on processors.",
    "A cheetah chases its prey at dusk.",      "The big cat hunts in the evening."};
const std::string kQuestion = "The animal didn't cross the street because it was too tired.";

// Tokens of all sentences, one after another: what the network computes in one go.
struct Packed {
  std::vector<std::int64_t> ids, positions, token_types, offsets{0};

  [[nodiscard]] std::int64_t tokens() const { return offsets.back(); }
  // Pairs of tokens that see each other.
  [[nodiscard]] double pairs() const {
    double sum = 0;
    for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
      const auto length = static_cast<double>(offsets[s + 1] - offsets[s]);
      sum += length * length;
    }
    return sum;
  }
};

Packed pack(const models::TextEncoder& model) {
  Packed packed;
  for (const std::string& sentence : kSentences) {
    const std::vector<std::int64_t> ids = model.tokenizer().encode(sentence, model.options().max_length);
    for (const std::int64_t id : ids) {
      packed.positions.push_back(static_cast<std::int64_t>(packed.ids.size()) - packed.offsets.back());
      packed.ids.push_back(id);
    }
    packed.offsets.push_back(static_cast<std::int64_t>(packed.ids.size()));
  }
  if (model.options().encoder.token_types > 0) packed.token_types.resize(packed.ids.size());
  return packed;
}

// What goes into the first layer.
Tensor<float, 3> embedded(Engine& engine, const models::TextEncoder& model, const Weights& weights,
                          const Packed& packed) {
  EncoderOptions options = model.options().encoder;
  options.layers = 0;
  headlight::Encoder embeddings(options);
  embeddings.load(weights, {.ignore_extra = true});
  Tensor<float, 3> hidden({1, packed.tokens(), options.width});
  embeddings.forward(engine, {packed.ids, packed.positions, packed.token_types, packed.offsets},
                     {hidden.data(), {packed.tokens(), options.width}});
  return hidden;
}

// x → y by one layer, again and again for a while.
LayerTime time_layer(Engine& engine, const TransformerEncoderLayer& layer, const AttentionOptions& options,
                     const Tensor<float, 3>& x, Tensor<float, 3>& y) {
  constexpr double kLongEnough = 0.06;   // seconds
  layer.forward(engine, x, y, options);  // packs the weights
  RepeatedTimes times;
  int runs = 0;
  for (double spent = 0; runs < 3 || spent < kLongEnough; ++runs) {
    spent += times.run([&] { layer.forward(engine, x, y, options); });
  }
  return {.seconds = times.best(), .runs = runs, .busy = times.disagree()};
}

// Every layer as a layer of its own, on what really goes into it.
std::vector<LayerTime> time_layers(Engine& engine, const models::TextEncoder& model, const Packed& packed) {
  const EncoderOptions& options = model.options().encoder;
  const Weights weights = model.network().weights();
  const TransformerLayerOptions layer_options = options.layer_options();
  const AttentionOptions sequences{.query_offsets = packed.offsets};
  Tensor<float, 3> x = embedded(engine, model, weights, packed);
  Tensor<float, 3> y(x.shape());
  const analysis::MergeCost merge =
      analysis::merge_costs(options.width, options.heads, packed.tokens())[static_cast<std::size_t>(options.merge)];
  std::vector<LayerTime> times;
  for (std::int64_t index = 0; index < options.layers; ++index) {
    TransformerEncoderLayer layer(layer_options);
    layer.set_precision(model.network().precision());
    layer.load(weights, {.prefix = "layers." + std::to_string(index) + "."});
    times.push_back(time_layer(engine, layer, sequences, x, y));
    std::swap(x, y);
    const auto width = static_cast<double>(options.width);
    const auto inner = static_cast<double>(options.feed_forward_width);
    // Three projections, two feed-forward products and what merges the heads for each token, two products for each pair
    // that sees each other.
    times.back().flops = 2 * static_cast<double>(packed.tokens()) * (3 * width * width + 2 * width * inner) +
                         merge.flops + 4 * packed.pairs() * width;
  }
  return times;
}

Tensor<float, 2> similarities(Engine& engine, const models::TextEncoder& model) {
  const Tensor<float, 2> vectors = model.embed(engine, kSentences);
  const auto [count, width] = vectors.shape();
  Tensor<float, 2> table({count, count});
  gemm(engine, vectors.view(), vectors.view(), table.view(), {.transpose_b = Transpose::yes});
  return table;
}

std::optional<Looks> look(Engine& engine, const models::TextEncoder& model) {
  Looks looks;
  const std::vector<std::int64_t> ids = model.tokenizer().encode(kQuestion, model.options().max_length);
  for (const std::int64_t id : ids) looks.tokens.emplace_back(model.tokenizer().find_token(id));
  const auto word = std::find(looks.tokens.begin(), looks.tokens.end(), kDemoWord);
  if (word == looks.tokens.end()) return std::nullopt;
  looks.from = static_cast<std::size_t>(word - looks.tokens.begin());
  const EncoderOptions& options = model.options().encoder;
  for (std::int64_t layer = 0; layer < options.layers; ++layer) {
    const Tensor<float, 3> weights = model.probabilities(engine, ids, layer);
    auto& heads = looks.weights.emplace_back();
    for (std::int64_t head = 0; head < options.heads; ++head) {
      const float* const row = &weights(head, static_cast<std::int64_t>(looks.from), 0);
      heads.emplace_back(row, row + ids.size());
    }
  }
  return looks;
}

}  // namespace

models::TextEncoder make_demo_model(std::uint64_t seed) {
  // Every word is a token, so that nothing is unknown.
  std::vector<std::string> vocabulary{"[PAD]", "[UNK]", "[CLS]", "[SEP]"};
  const auto add = [&](const std::string& word) {
    if (!word.empty() && std::find(vocabulary.begin(), vocabulary.end(), word) == vocabulary.end())
      vocabulary.push_back(word);
  };
  std::vector<std::string> all = kSentences;
  all.push_back(kQuestion);
  for (const std::string& sentence : all) {
    std::string word;
    for (const char letter : sentence) {
      const bool in_word = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
      if (in_word) {
        word += static_cast<char>(letter | 0x20);
        continue;
      }
      add(word);
      word.clear();
      if (letter != ' ') add(std::string(1, letter));
    }
  }
  models::ModelOptions options;
  options.encoder = {.max_positions = 64, .token_types = 2, .width = 128, .heads = 4, .layers = 2};
  return models::make_random(options, models::Tokenizer(std::move(vocabulary)), seed);
}

Demo run_demo(Engine& engine, const models::TextEncoder& model) {
  const Packed packed = pack(model);
  return {.sentences = kSentences,
          .question = kQuestion,
          .similarity = similarities(engine, model),
          .tokens = packed.tokens(),
          .layers = time_layers(engine, model, packed),
          .looks = look(engine, model)};
}

}  // namespace headlight::program
