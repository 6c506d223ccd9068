// What each option hides, or weighs differently. Scores are all alike here, 0 unless said otherwise, so a row spreads
// its weight evenly over what it sees.
#include <headlight/attention.h>

#include <cmath>
#include <iostream>
#include <string>

int main() {
  constexpr std::int64_t kBatch = 2, kLength = 6, kHeads = 2;
  headlight::Engine engine;
  headlight::Tensor<float, 4> weights({kBatch, kHeads, kLength, kLength});
  bool good = true;

  // Runs attention over `batch` samples whose queries and keys hold that number: scores are number² · 8 / √8.
  const auto run = [&](std::int64_t batch, headlight::AttentionOptions options, float number = 0) {
    headlight::Tensor<float, 4> x({batch, kLength, kHeads, 8}), out({batch, kLength, kHeads, 8});
    for (float& element : x) element = number;
    options.probabilities.per_head = {weights.data(), {batch, kHeads, kLength, kLength}};
    headlight::attention(engine, x, x, x, out, options);
  };
  // Compares what a row of head 0 sees with a text: # is a key that it sees.
  const auto sees = [&](std::int64_t sample, std::int64_t row, const std::string& expected) {
    std::string seen;
    for (std::int64_t key = 0; key < kLength; ++key) seen += weights(sample, 0, row, key) > 0 ? '#' : '.';
    if (seen != expected) std::cerr << "row " << row << " sees " << seen << ", not " << expected << '\n';
    good = good && seen == expected;
  };
  const auto weighs = [&](std::int64_t head, std::int64_t row, std::int64_t key, double expected) {
    const double weight = weights(0, head, row, key);
    if (std::abs(weight - expected) > 1e-5) std::cerr << "a weight of " << weight << ", not " << expected << '\n';
    good = good && std::abs(weight - expected) <= 1e-5;
  };

  // Causal: a row sees itself and what is before it.
  run(kBatch, {.causal = headlight::Causal::top_left});
  sees(0, 2, "###...");

  // A window: two keys back and one on. Together with causal: two back and itself.
  run(kBatch, {.window = {.left = 2, .right = 1}});
  sees(0, 3, ".####.");
  run(kBatch, {.causal = headlight::Causal::top_left, .window = {.left = 2}});
  sees(0, 3, ".###..");

  // Lengths: sample 1 has four keys, the others are padding.
  const std::int64_t lengths[] = {6, 4};
  run(kBatch, {.key_lengths = lengths});
  sees(0, 0, "######");
  sees(1, 0, "####..");

  // Packed: sequences of 2, 1 and 3 rows one after another, as one sample. Each sees only itself.
  const std::int64_t offsets[] = {0, 2, 3, 6};
  run(1, {.causal = headlight::Causal::top_left, .query_offsets = offsets});
  sees(0, 2, "..#...");
  sees(0, 4, "...##.");

  // A boolean mask, one byte an entry. An axis of 1 serves all samples, heads or rows.
  const std::uint8_t entries[] = {1, 0, 1, 0, 1, 0};
  const headlight::View<const std::uint8_t, 4> mask(entries, {1, 1, 1, kLength});
  run(kBatch, {.mask = headlight::BooleanMask(mask, headlight::MaskMeans::attend)});
  sees(1, 5, "#.#.#.");

  // A bias is added to the scores: log(3) triples a weight, −inf hides a key.
  const float biases[] = {std::log(3.0f), 0, 0, 0, 0, -INFINITY};
  run(kBatch, {.bias = headlight::View<const float, 4>(biases, {1, 1, 1, kLength})});
  sees(0, 0, "#####.");
  weighs(0, 0, 0, 3.0 / 7);

  // ALiBi: a slope for each head, times the distance.
  const float alibi[] = {0.5f, 0};
  run(kBatch, {.causal = headlight::Causal::top_left, .alibi = alibi});
  weighs(0, 1, 0, std::exp(-0.5) / (1 + std::exp(-0.5)));
  weighs(1, 1, 0, 0.5);

  // A sink takes its share of the weight and gives nothing for it: six keys and the sink share it here.
  const float sinks[] = {0, -INFINITY};
  run(kBatch, {.sinks = sinks});
  weighs(0, 0, 0, 1.0 / 7);
  weighs(1, 0, 0, 1.0 / 6);

  // A soft cap of 2: scores of √8 become 2 · tanh(√8 / 2). The sink, which is not capped, shows it.
  run(kBatch, {.softcap = 2.0f, .sinks = sinks}, 1.0f);
  const double capped = std::exp(2 * std::tanh(std::sqrt(8.0) / 2));
  weighs(0, 0, 0, capped / (6 * capped + 1));
  return good ? 0 : 1;
}
