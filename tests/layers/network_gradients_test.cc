// The way back through networks: against differences of the float64 twin, along random directions of each parameter.
#include <algorithm>
#include <cmath>
#include <string>

#include "gtest/gtest.h"
#include "headlight/layers/network.h"
#include "headlight/row_shards.h"
#include "layers/network_case.h"
#include "layers/shards.h"
#include "support/compare.h"
#include "support/quick.h"
#include "support/refusal.h"

namespace headlight::test::network_gradients_test {

// For sequences of up to 200 tokens.
NetworkSpec with_dropout(NetworkSpec spec, float dropout) {
  if (spec.embedding.positions > 0) spec.embedding.positions = 200;
  spec.dropout = dropout;
  return spec;
}

struct Case {
  explicit Case(Random& random, float dropout = 0) : Case(random, dropout, {random.integer(1, 9), 1, 5}) {}
  Case(Random& random, float dropout, const std::vector<std::int64_t>& lengths)
      : network(with_dropout(draw_network(random), dropout)), tokens(random, 20, lengths) {
    randomize(network, random);
    network.set_training(true);
    hidden = Tensor<float, 2>({tokens.count(), network.spec().width});
    weights = random.uniform_tensor<2>(hidden.shape());
    logits_weights = random.uniform_tensor<2>({tokens.count(), network.spec().embedding.vocabulary});
  }

  // Of hidden states alone.
  std::vector<float> gradients(Engine& engine, SavedState& saved) {
    zero_gradients(network.parameters());
    network.forward(engine, tokens.input(), hidden.view(), saved);
    network.backward(engine, tokens.input(), saved, weights.view());
    return gradients_of(network.parameters());
  }
  void run(Engine& engine, SavedState& saved) {
    network.forward(engine, tokens.input(), hidden.view(), saved);
    Tensor<float, 2> gradient(hidden.shape());
    if (network.spec().logits) {
      Tensor<float, 2> logits(logits_weights.shape()), logits_gradient(logits.shape());
      std::copy(logits_weights.begin(), logits_weights.end(), logits_gradient.begin());
      network.logits(engine, hidden.view(), logits.view());
      network.logits_backward(engine, hidden.view(), logits.view(), logits_gradient.view(), gradient.view());
    }
    for (std::int64_t i = 0; i < gradient.size(); ++i) gradient.data()[i] += weights.data()[i];
    network.backward(engine, tokens.input(), saved, gradient.view());
  }

  // Σ hidden ∘ weights of the twin, and the same of logits.
  [[nodiscard]] double loss(const TwinWeights<double>& twin) const {
    double sum = 0;
    for (std::size_t s = 0; s + 1 < tokens.offsets.size(); ++s) {
      const Tensor<double, 2> rows = network_twin(network.spec(), twin, tokens.only(s));
      const float* const by = weights.data() + tokens.offsets[s] * network.spec().width;
      for (std::int64_t i = 0; i < rows.size(); ++i) sum += rows.data()[i] * static_cast<double>(by[i]);
      if (!network.spec().logits) continue;
      const Tensor<double, 2> logits = logits_twin(network.spec(), twin, rows);
      const float* const by_logits = &logits_weights(tokens.offsets[s], 0);
      for (std::int64_t i = 0; i < logits.size(); ++i) sum += logits.data()[i] * static_cast<double>(by_logits[i]);
    }
    return sum;
  }

  Network network;
  Tokens tokens;
  Tensor<float, 2> hidden;
  Tensor<float, 2> weights;
  Tensor<float, 2> logits_weights;
};

double norm_of(std::span<const float> values) {
  double squares = 0;
  for (const float value : values) squares += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(squares);
}

TEST(NetworkGradients, AgreeWithDifferencesOfTheTwin) {
  Engine engine({.threads = 2});
  Random random(11);
  std::int64_t compared = 0, without_gradient = 0;
  for (std::int64_t n = 0; n < count<std::int64_t>(300, 40); ++n) {
    Case drawn(random);
    SavedState saved;
    drawn.run(engine, saved);
    TwinWeights<double> twin(drawn.network.weights());
    const std::vector<Parameter> parameters = drawn.network.parameters();
    double largest = 0;
    for (const Parameter& parameter : parameters) largest = std::max(largest, norm_of(parameter.gradient));
    for (const Parameter& parameter : parameters) {
      std::vector<double>& values = twin.values(parameter.name);
      const std::vector<double> before = values;
      std::vector<double> direction;
      double expected = 0, length = 0;
      for (std::size_t i = 0; i < before.size(); ++i) {
        direction.push_back(static_cast<double>(random.uniform()));
        expected += direction.back() * static_cast<double>(parameter.gradient[i]);
        length += direction.back() * direction.back();
      }
      // Options take sinks and biases in float32, to which the twin's step is exact only if it is long.
      const bool is_float = parameter.name.ends_with("sinks") || parameter.name == "relative_bias.weight";
      const double step = is_float ? 0x1p-6 : 1e-5;
      const auto loss_at = [&](double distance) {
        for (std::size_t i = 0; i < before.size(); ++i) values[i] = before[i] + distance * direction[i];
        return drawn.loss(twin);
      };
      const auto difference_of = [&](double by) { return (loss_at(by) - loss_at(-by)) / (2 * by); };
      const double difference = difference_of(step), closer = difference_of(step / 8);
      values = before;
      // Sums of float32 over some hundred terms, through as many as a dozen operations one behind the other.
      const double tolerance = is_float ? 1e-3 : 2048 * kUnitRoundoff;
      const double allowed = tolerance * largest * std::sqrt(length) + 1e-7;
      ++compared;
      // At a kink of an activation, or where a normalised row is nearly constant, no difference tells a gradient.
      if (std::abs(difference - closer) > allowed) {
        ++without_gradient;
        continue;
      }
      EXPECT_NEAR(expected, closer, allowed) << "specification " << n << ", " << parameter.name;
    }
  }
  EXPECT_LE(without_gradient, compared / 100);
}

// The forward pass of training has the bits of the other one.
TEST(NetworkGradients, KeepTheBitsOfTheForwardPass) {
  Engine engine({.threads = 1});
  Random random(12);
  for (std::int64_t n = 0; n < 40; ++n) {
    Case drawn(random);
    SavedState saved;
    drawn.run(engine, saved);
    Tensor<float, 2> again(drawn.hidden.shape());
    drawn.network.forward(engine, drawn.tokens.input(), again.view());
    EXPECT_TRUE(same_bits(again.view(), drawn.hidden.view())) << "specification " << n;
  }
}

TEST(NetworkGradients, HaveTheSameBitsOnAnyNumberOfThreadsAndWhateverIsKept) {
  Random random(13);
  for (std::int64_t n = 0; n < 80; ++n) {
    Case drawn(random, n % 2 == 0 ? 0.0f : 0.3f);
    std::vector<std::vector<float>> gradients;
    const NumberType activations = n % 4 < 2 ? NumberType::float32 : NumberType::bfloat16;
    const Checkpoint again = n % 3 == 0 ? Checkpoint::every_k_layers : Checkpoint::layer_input;
    for (const int threads : {1, 3}) {
      Engine engine({.threads = threads});
      zero_gradients(drawn.network.parameters());
      SavedState saved(activations, threads == 1 ? Checkpoint::keep_linear : again, n % 3 == 0 ? 2 : 0);
      drawn.run(engine, saved);
      gradients.push_back(gradients_of(drawn.network.parameters()));
    }
    const View<const float, 1> first(gradients[0].data(), {static_cast<std::int64_t>(gradients[0].size())});
    EXPECT_TRUE(same_bits(View<const float, 1>(gradients[1].data(), first.shape), first)) << "specification " << n;
  }
}

double distance(std::span<const float> a, std::span<const float> b) {
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    squares += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
  return std::sqrt(squares);
}

// From a number of bfloat16 to the next one, of the number.
constexpr float kBFloat16Step = 0x1p-8f;

// How far the gradients of a network go where its weights move by such steps: a network may magnify roundings, such as
// one that normalises two numbers that are nearly the same.
double moved_by_roundings(Case& drawn, Engine& engine, Random& random, std::span<const float> truth) {
  const std::vector<Parameter> parameters = drawn.network.parameters();
  std::vector<std::vector<float>> before;
  for (const Parameter& parameter : parameters) before.emplace_back(parameter.values.begin(), parameter.values.end());
  double furthest = 0;
  for (int draw = 0; draw < 8; ++draw) {
    for (std::size_t n = 0; n < parameters.size(); ++n) {
      std::transform(before[n].begin(), before[n].end(), parameters[n].values.begin(),
                     [&](float value) { return value * (1 + (random.once_in(2) ? kBFloat16Step : -kBFloat16Step)); });
    }
    SavedState saved;
    furthest = std::max(furthest, distance(drawn.gradients(engine, saved), truth));
  }
  for (std::size_t n = 0; n < parameters.size(); ++n) std::ranges::copy(before[n], parameters[n].values.begin());
  return furthest;
}

// Up to three blocks of seven products (query, key and value as one, scores, weighted values, output, and three of the
// feed-forward part), each of which rounds its two operands and, on the way back, a gradient: 63 roundings, which are
// at most a step and half of one on average. So none may be further off than 32 times what steps of the weights alone
// move gradients by. Signs differ, and most are far nearer: the geometric mean was 0.04 to 0.08 with each of 30 seeds
// (and the furthest 26), from which the band is a factor of three away. What rounds nothing has a mean of 2^-10.
TEST(NetworkGradients, AreNearInBFloat16) {
  Random random(16);
  Engine engine({.threads = 2});
  double sum_of_logarithms = 0;
  const auto networks = count<std::int64_t>(300, 40);
  for (std::int64_t n = 0; n < networks; ++n) {
    Case drawn(random);
    SavedState plain, rounded(NumberType::bfloat16);
    const std::vector<float> truth = drawn.gradients(engine, plain);
    const double off = distance(drawn.gradients(engine, rounded), truth);
    const double moved =
        moved_by_roundings(drawn, engine, random, truth) + static_cast<double>(kBFloat16Step) * norm_of(truth);
    EXPECT_LE(off, 32 * moved) << "specification " << n;
    sum_of_logarithms += std::log(std::max(off / std::max(moved, 1e-30), 0x1p-10));
  }
  EXPECT_LE(sum_of_logarithms / static_cast<double>(networks), std::log(0.25));
  EXPECT_GT(sum_of_logarithms / static_cast<double>(networks), std::log(0x1p-6));
}

// Sinks and biases by distance, turned heads and all else: the sums of some rows by themselves add up to those of all.
TEST(NetworkGradients, AddUpByShards) {
  Random random(20);
  Engine engine({.threads = 2});
  for (std::int64_t n = 0; n < count<std::int64_t>(150, 25); ++n) {
    Case drawn(random, n % 2 == 0 ? 0.0f : 0.2f, {random.integer(60, 200), 0, 1, random.integer(100, 150)});
    const std::vector<Parameter> parameters = drawn.network.parameters();
    SavedState plain;
    const std::vector<float> truth = drawn.gradients(engine, plain);
    Tensor<float, 2> hidden(drawn.hidden.shape());
    std::ranges::copy(drawn.hidden, hidden.begin());
    RowShards rows(parameters,
                   {.length = drawn.tokens.count(), .shards = 3, .block = 64, .offsets = drawn.tokens.offsets});
    const ShardedAttention attention(rows);
    SavedState shared(Checkpoint::keep_linear, 0, attention);
    drawn.gradients(engine, shared);
    EXPECT_TRUE(same_bits(drawn.hidden.view(), hidden.view()));
    std::vector<float> sum(truth.size());
    double norms = 0;  // of what is summed, of which much may cancel
    for (const std::vector<float>& shard : shards_of(engine, rows, parameters)) {
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += shard[i];
      norms += norm_of(shard);
    }
    EXPECT_LE(distance(sum, truth), 64 * kUnitRoundoff * norms) << "specification " << n;
  }
}

// Those of sinks and of the table of biases, too.
TEST(NetworkGradients, AreAddedToWhatIsThere) {
  Random random(21);
  Engine engine({.threads = 1});
  BlockSpec block;
  block.attention = {.heads = 2, .sinks = true};
  block.attention.relative_bias = {.buckets = 8, .max_distance = 10};
  block.feed_forward.hidden_width = 5;
  NetworkSpec spec = {.width = 4, .embedding = {.vocabulary = 20}};
  spec.blocks = {block};
  Network network(spec);
  randomize(network, random);
  network.set_training(true);
  const Tokens tokens(random, 20, {7, 2});
  const Tensor<float, 2> gradient = random.uniform_tensor<2>({tokens.count(), spec.width});
  Tensor<float, 2> hidden(gradient.shape());
  SavedState saved;
  network.forward(engine, tokens.input(), hidden.view(), saved);
  network.backward(engine, tokens.input(), saved, gradient.view());
  const std::vector<float> once = gradients_of(network.parameters());
  network.backward(engine, tokens.input(), saved, gradient.view());
  const std::vector<float> twice = gradients_of(network.parameters());
  std::vector<float> doubled = once;
  for (float& number : doubled) number *= 2;
  EXPECT_LE(distance(twice, doubled), 8 * kUnitRoundoff * norm_of(doubled));
  for (const Parameter& parameter : network.parameters()) EXPECT_GT(norm_of(parameter.gradient), 0) << parameter.name;
}

// Blocks whose feed-forward goes through its rows in pieces, gated and normalised inside of a run.
TEST(NetworkGradients, HaveTheSameBitsInPieces) {
  Random random(15);
  NetworkSpec spec;
  spec.width = 6;
  spec.embedding.vocabulary = 20;
  for (const bool parallel : {false, true}) {
    BlockSpec block;
    block.parallel = parallel;
    block.attention.heads = 2;
    block.feed_forward = {.hidden_width = 9000, .activation = Activation::silu, .gated = true};
    block.attention_residual.before = block.feed_forward_residual.before = {.kind = NormKind::rms};
    block.feed_forward_residual.after = {.kind = NormKind::rms};
    spec.blocks.push_back(block);
  }
  Network network(spec);
  randomize(network, random);
  network.set_training(true);
  const Tokens tokens(random, 20, {150, 300});
  const Tensor<float, 2> weights = random.uniform_tensor<2>({tokens.count(), spec.width});
  std::vector<std::vector<float>> gradients;
  for (const Checkpoint checkpoint : {Checkpoint::keep_linear, Checkpoint::layer_input}) {
    Engine engine({.threads = gradients.empty() ? 1 : 3});
    zero_gradients(network.parameters());
    SavedState saved(checkpoint);
    Tensor<float, 2> hidden(weights.shape());
    network.forward(engine, tokens.input(), hidden.view(), saved);
    network.backward(engine, tokens.input(), saved, weights.view());
    gradients.push_back(gradients_of(network.parameters()));
  }
  EXPECT_EQ(gradients[0], gradients[1]);
  EXPECT_GT(norm_of(gradients[0]), 0);
}

// An attention that holds some of the shards has to tell what depends on all of them.
TEST(NetworkGradients, AskForAllRowsWhatDependsOnThem) {
  Engine engine({.threads = 1});
  NetworkSpec spec = {.width = 4, .embedding = {.vocabulary = 3}};
  spec.blocks.resize(2);
  for (BlockSpec& block : spec.blocks) block.feed_forward.hidden_width = 4;
  const std::vector<std::int64_t> ids(64), offsets = {0, 128};
  const EncoderInput input = {.ids = ids, .positions = ids, .offsets = offsets};
  Tensor<float, 2> hidden({64, 4});
  // Of both ways.
  const auto says = [&] {
    Network network(spec);
    network.set_training(true);
    RowShards rows(network.parameters(), {.length = 128, .shards = 2, .block = 64}, {0, 1});
    const OfSome attention(rows);
    SavedState saved(Checkpoint::keep_linear, 0, attention);
    const std::string forward = refusal([&] { network.forward(engine, input, hidden.view(), saved); });
    if (!forward.empty()) return "forward: " + forward;
    return refusal([&] { network.backward(engine, input, saved, hidden.view()); });
  };
  const std::string expected = ": shards() holds 1 shards, expected all 2, or an attention that overrides it";
  RotarySpec& rotary = spec.blocks[1].attention.rotary;
  rotary.dims = 4;
  EXPECT_EQ(says(), "");
  rotary.scaling = {.kind = RotaryScalingKind::dynamic, .factor = 2, .original_length = 8};
  EXPECT_EQ(says(), "forward: TrainingAttention::find_largest" + expected);
  rotary.scaling = {.kind = RotaryScalingKind::longrope,
                    .factor = 2,
                    .original_length = 8,
                    .short_factors = {1, 2},
                    .long_factors = {2, 1}};
  EXPECT_EQ(says(), "forward: TrainingAttention::find_largest" + expected);
  rotary = {};
  spec.blocks[0].attention.relative_bias.buckets = 32;
  spec.blocks[1].attention.relative_bias.buckets = 32;
  EXPECT_EQ(says(), "TrainingAttention::differentiate_distances" + expected);
}

TEST(NetworkGradients, RefuseWhatIsNotTheLastForwardPass) {
  Engine engine({.threads = 1});
  Random random(14);
  Case drawn(random);
  SavedState saved;
  EXPECT_EQ(refusal([&] { drawn.network.backward(engine, drawn.tokens.input(), saved, drawn.weights.view()); }),
            "Network: saved holds no forward pass, expected that of this layer");
  drawn.run(engine, saved);
  // Refused before any gradient is added to.
  zero_gradients(drawn.network.parameters());
  Tokens others = drawn.tokens;
  others.ids[0] = 20;
  EXPECT_EQ(refusal([&] { drawn.network.backward(engine, others.input(), saved, drawn.weights.view()); }),
            "Network: ids[0] is 20, expected 0 to 19");
  others = drawn.tokens;
  others.offsets[1] = 0;
  EXPECT_EQ(refusal([&] { drawn.network.backward(engine, others.input(), saved, drawn.weights.view()); }),
            "Network: offsets are others than those of the forward pass, expected the same");
  for (const Parameter& parameter : drawn.network.parameters()) EXPECT_EQ(norm_of(parameter.gradient), 0);
  drawn.network.set_training(false);
  EXPECT_EQ(refusal([&] { drawn.network.backward(engine, drawn.tokens.input(), saved, drawn.weights.view()); }),
            "Network: is not in training, expected set_training(true) before backward()");
}

}  // namespace headlight::test::network_gradients_test
