// Trains a small encoder to turn sequences around: what stands at place i of the input is to be said at place L − 1 −
// i. No token can know its answer but by looking at the right place, so attention has to learn where to look.
#include <headlight/layers.h>
#include <headlight/loss.h>
#include <headlight/optimizer.h>

#include <cstdint>
#include <iostream>
#include <random>
#include <vector>

namespace {

constexpr std::int64_t kVocabulary = 12, kLength = 8, kSequences = 32, kTokens = kSequences * kLength, kWidth = 32;

// A batch of random sequences, one behind another, and what is to be said for each token.
struct Batch {
  explicit Batch(std::uint64_t seed) : ids(kTokens), positions(kTokens), labels(kTokens), offsets(kSequences + 1) {
    std::mt19937_64 random(seed);
    for (std::int64_t n = 0; n < kTokens; ++n) {
      ids[n] = static_cast<std::int64_t>(random() % kVocabulary);
      positions[n] = n % kLength;
    }
    for (std::int64_t n = 0; n < kTokens; ++n) labels[n] = ids[n - n % kLength + kLength - 1 - n % kLength];
    for (std::int64_t s = 0; s <= kSequences; ++s) offsets[s] = s * kLength;
  }
  headlight::EncoderInput input() const { return {.ids = ids, .positions = positions, .offsets = offsets}; }

  std::vector<std::int64_t> ids, positions, labels, offsets;
};

// The share of tokens for which the largest logit is that of the label.
double accuracy(const headlight::Tensor<float, 2>& logits, const Batch& batch) {
  int right = 0;
  for (std::int64_t n = 0; n < kTokens; ++n) {
    std::int64_t best = 0;
    for (std::int64_t c = 1; c < kVocabulary; ++c) best = logits(n, c) > logits(n, best) ? c : best;
    right += best == batch.labels[n];
  }
  return static_cast<double>(right) / kTokens;
}

}  // namespace

int main() {
  headlight::Engine engine;
  headlight::Encoder encoder({.vocabulary = kVocabulary,
                              .max_positions = kLength,
                              .width = kWidth,
                              .heads = 4,
                              .layers = 2,
                              .norm = headlight::Norm::pre,
                              .layer_norm_epsilon = 1e-5f,
                              .dropout = 0.05f});
  headlight::Linear head(kWidth, kVocabulary);
  encoder.initialize(/*seed=*/1);
  head.initialize(/*seed=*/2);

  // In training every parameter has a gradient, and the optimiser follows it.
  encoder.set_training(true);
  head.set_training(true);
  std::vector<headlight::Parameter> parameters = encoder.parameters();
  for (const headlight::Parameter& parameter : head.parameters()) parameters.push_back(parameter);
  headlight::AdamW optimizer(parameters, {.weight_decay = 0.01});

  constexpr std::int64_t kIterations = 300;
  const headlight::WarmupCosine rate = {.peak = 5e-3, .least = 1e-4, .warmup = 20, .total = kIterations};
  headlight::SavedState saved(headlight::Checkpoint::keep_linear);
  headlight::Tensor<float, 2> hidden({kTokens, kWidth}), hidden_gradient({kTokens, kWidth});
  headlight::Tensor<float, 2> logits({kTokens, kVocabulary});
  for (std::int64_t step = 0; step < kIterations; ++step) {
    const Batch batch(static_cast<std::uint64_t>(step));
    optimizer.zero_gradients();
    encoder.forward(engine, batch.input(), hidden, saved, {.seed = 3, .step = static_cast<std::uint64_t>(step)});
    head.forward(engine, hidden, logits);
    // The gradient takes the place of the logits, and goes back the way that they came.
    const auto [loss, rows] = headlight::cross_entropy(engine, logits, batch.labels, {.logits_gradient = logits});
    head.backward(engine, hidden, logits, hidden_gradient);
    encoder.backward(engine, batch.input(), saved, hidden_gradient);
    const headlight::StepReport report = optimizer.step(engine, {.learning_rate = rate(step), .max_norm = 1.0});
    if (!report.taken()) std::cerr << "step " << step << ": " << report.non_finite << " has no finite gradient\n";
    if (step % 100 == 0) std::cout << "step " << step << ": loss " << loss << " over " << rows << " tokens\n";
  }

  // Done: frozen again, layers keep their weights in the order in which the kernels read them.
  encoder.set_training(false);
  encoder.freeze();
  const Batch unseen(/*seed=*/1234567);
  encoder.forward(engine, unseen.input(), hidden);
  head.forward(engine, hidden, logits);
  std::cout << "of sequences never seen, " << 100 * accuracy(logits, unseen) << " % of the tokens are right\n";
}
