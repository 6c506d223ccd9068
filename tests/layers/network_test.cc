// Networks by specification: each against its twin, and what layers promise.
#include "headlight/layers/network.h"

#include <algorithm>
#include <cmath>

#include "gtest/gtest.h"
#include "layers/network_case.h"
#include "support/compare.h"
#include "support/isas.h"
#include "support/quick.h"
#include "support/refusal.h"

namespace headlight::test::network_test {

using NetworkTest = EachIsa;
HEADLIGHT_ON_EVERY_ISA(NetworkTest);

constexpr std::int64_t kSpecifications = 300;

TEST_P(NetworkTest, AgreesWithTheTwinWhateverItsSpecification) {
  Engine engine(options(2));
  Random random(1), moves(2);
  for (std::int64_t n = 0; n < count(kSpecifications, std::int64_t{60}); ++n) {
    Network network(draw_network(random));
    randomize(network, random);
    const Tokens tokens(random, 20, {random.integer(0, 12), 1, random.integer(1, 30)});
    const Tensor<float, 2> hidden = forward(engine, network, tokens);
    const TwinWeights<double> exact(network.weights());
    const TwinWeights<float> plain(network.weights());
    std::vector<TwinWeights<double>> moved;
    for (int move = 0; move < 4; ++move) moved.push_back(moved_weights(network, moves));
    for (std::size_t s = 0; s + 1 < tokens.offsets.size(); ++s) {
      const Tokens one = tokens.only(s);
      const View<const float, 2> rows(hidden.data() + tokens.offsets[s] * network.spec().width,
                                      {one.count(), network.spec().width});
      const Tensor<double, 2> truth = network_twin(network.spec(), exact, one);
      const Tensor<float, 2> in_floats = network_twin(network.spec(), plain, one);
      const double plain_error = worst_row_error(in_floats.view(), truth.view(), truth.view()).error;
      double moved_error = 0;
      for (const TwinWeights<double>& weights : moved) {
        const Tensor<double, 2> beside = network_twin(network.spec(), weights, one);
        moved_error = std::max(moved_error, worst_row_error(beside.view(), truth.view(), truth.view()).error);
      }
      // What each operation may err by, for a dozen of them in a block, one behind the other.
      const double operations = 3 + 12 * static_cast<double>(network.spec().blocks.size());
      EXPECT_TRUE(
          within(rows, truth.view(), 2 * (plain_error + moved_error) + 8 * kUnitRoundoff * operations, truth.view()))
          << "specification " << n << ", sequence " << s;
    }
  }
}

// Threads, and neighbours in the batch: none of them changes a bit.
TEST_P(NetworkTest, GivesTheSameBitsOnAnyNumberOfThreadsAndAlone) {
  Engine one(options(1)), three(options(3));
  Random random(2);
  for (std::int64_t n = 0; n < count<std::int64_t>(40, 10); ++n) {
    Network network(draw_network(random));
    randomize(network, random);
    if (n % 4 != 0)
      network.set_precision(n % 4 == 1 ? NumberType::bfloat16 : n % 4 == 2 ? NumberType::int8 : NumberType::float16);
    const Tokens tokens(random, 20, {5, 1, 33, 0, 17});
    const Tensor<float, 2> once = forward(one, network, tokens);
    EXPECT_TRUE(same_bits(forward(three, network, tokens).view(), once.view())) << "specification " << n;
    for (std::size_t s = 0; s + 1 < tokens.offsets.size(); ++s) {
      const Tensor<float, 2> alone = forward(one, network, tokens.only(s));
      const View<const float, 2> rows(once.data() + tokens.offsets[s] * network.spec().width, alone.shape());
      EXPECT_TRUE(same_bits(View<const float, 2>(alone.view()), rows)) << "specification " << n << ", sequence " << s;
    }
  }
}

TEST_P(NetworkTest, WritesRowsOfAnyDistance) {
  Engine engine(options(1));
  Random random(3);
  Network network(draw_network(random));
  randomize(network, random);
  const Tokens tokens(random, 20, {9, 4});
  const std::int64_t width = network.spec().width;
  Tensor<float, 2> wide({tokens.count(), width + 7});
  const View<float, 2> hidden(wide.data(), {tokens.count(), width}, {width + 7, 1});
  network.forward(engine, tokens.input(), hidden);
  EXPECT_TRUE(same_bits(hidden, forward(engine, network, tokens).view()));
  for (std::int64_t t = 0; t < tokens.count(); ++t) {
    for (std::int64_t e = width; e < width + 7; ++e) EXPECT_EQ(wide(t, e), 0.0f);
  }
}

// A wide feed-forward goes through its rows some at a time, and other rows stand first in the batch.
TEST_P(NetworkTest, GivesTheSameBitsInPieces) {
  Engine engine(options(2));
  Random random(6);
  NetworkSpec spec;
  spec.width = 6;
  spec.embedding = {.vocabulary = 20, .token_types = 2};
  for (const bool gated : {false, true}) {
    BlockSpec block;
    block.attention.heads = 2;
    block.feed_forward = {.hidden_width = 12000, .gated = gated, .input_bias = true};
    block.feed_forward_residual = {.before = {.kind = NormKind::rms}, .sum = {.kind = NormKind::layer}};
    spec.blocks.push_back(block);
  }
  Network network(spec);
  randomize(network, random);
  const Tokens tokens(random, 20, {150, 300});
  const Tensor<float, 2> once = forward(engine, network, tokens);
  for (std::size_t s = 0; s < 2; ++s) {
    const Tensor<float, 2> alone = forward(engine, network, tokens.only(s));
    const View<const float, 2> rows(once.data() + tokens.offsets[s] * spec.width, alone.shape());
    EXPECT_TRUE(same_bits(View<const float, 2>(alone.view()), rows)) << "sequence " << s;
  }
}

// So many sequences that they do not go through a block together, of one token and of hundreds; random specifications.
TEST_P(NetworkTest, GivesTheSameBitsInGroupsOfSequences) {
  Engine one(options(1)), two(options(2));
  Random random(8);
  for (std::int64_t n = 0; n < count<std::int64_t>(12, 4); ++n) {
    NetworkSpec spec = draw_network_for(random, 400);
    const std::vector<BlockSpec> drawn = spec.blocks;
    spec.blocks.insert(spec.blocks.end(), drawn.begin(), drawn.end());
    Network network(spec);
    randomize(network, random);
    network.set_precision(n % 3 == 0 ? NumberType::float32 : n % 3 == 1 ? NumberType::bfloat16 : NumberType::int8);
    std::vector<std::int64_t> lengths = {random.integer(300, 400), 0, 1};
    for (int s = 0; s < 20; ++s) lengths.push_back(random.integer(0, 90));
    lengths.insert(lengths.end(), 300, 1);  // more than are one group
    const Tokens tokens(random, 20, lengths);
    const Tensor<float, 2> once = forward(one, network, tokens);
    EXPECT_TRUE(same_bits(forward(two, network, tokens).view(), once.view())) << "specification " << n;
    for (const std::size_t s : {0U, 2U, 3U, 4U, 11U, 22U, 23U, 300U}) {
      const Tensor<float, 2> alone = forward(one, network, tokens.only(s));
      const View<const float, 2> rows(once.data() + tokens.offsets[s] * spec.width, alone.shape());
      EXPECT_TRUE(same_bits(View<const float, 2>(alone.view()), rows)) << "specification " << n << ", sequence " << s;
    }
  }
}

TEST(Network, TakesWeightsByTheirNames) {
  Engine engine({.threads = 1});
  Random random(5);
  for (std::int64_t n = 0; n < 20; ++n) {
    const NetworkSpec spec = draw_network(random);
    Network first(spec), second(spec);
    randomize(first, random);
    second.load(first.weights());
    const Tokens tokens(random, 20, {7, 12});
    EXPECT_TRUE(same_bits(forward(engine, second, tokens).view(), forward(engine, first, tokens).view()));
  }
}

TEST(Network, NamesItsParameters) {
  NetworkSpec spec;
  spec.width = 8;
  spec.embedding.vocabulary = 3;
  BlockSpec block;
  block.attention = {
      .heads = 4, .key_value_heads = 2, .input_bias = true, .sinks = true, .relative_bias = {.buckets = 6}};
  block.attention.query_norm = {.kind = NormKind::rms};
  block.attention_residual.before = {.kind = NormKind::rms};
  block.feed_forward = {.hidden_width = 5, .gated = true};
  spec.blocks = {block};
  spec.last_norm = {.kind = NormKind::layer, .bias = true};
  std::vector<std::string> names;
  for (const auto& [name, weight] : Network(spec).weights()) {
    names.push_back(name);
    for (const std::int64_t extent : weight.shape) names.back() += " " + std::to_string(extent);
  }
  const std::vector<std::string> expected = {"blocks.0.attention.before.weight 8",
                                             "blocks.0.attention.key.bias 4",
                                             "blocks.0.attention.key.weight 4 8",
                                             "blocks.0.attention.output.weight 8 8",
                                             "blocks.0.attention.query.bias 8",
                                             "blocks.0.attention.query.weight 8 8",
                                             "blocks.0.attention.query_norm.weight 2",
                                             "blocks.0.attention.sinks 4",
                                             "blocks.0.attention.value.bias 4",
                                             "blocks.0.attention.value.weight 4 8",
                                             "blocks.0.feed_forward.down.weight 8 5",
                                             "blocks.0.feed_forward.gate.weight 5 8",
                                             "blocks.0.feed_forward.up.weight 5 8",
                                             "embeddings.word.weight 3 8",
                                             "norm.bias 8",
                                             "norm.weight 8",
                                             "relative_bias.weight 6 4"};
  EXPECT_EQ(names, expected);
}

// Of two heads of 3 in a network of width 8: what each merge has beside, and what the last product takes.
TEST(Network, NamesTheParametersOfMerges) {
  using Shape = std::vector<std::int64_t>;
  NetworkSpec spec;
  spec.width = 8;
  spec.embedding.vocabulary = 3;
  spec.blocks.resize(1);
  spec.blocks[0].feed_forward.hidden_width = 5;
  const auto shape_of = [&spec](Merge merge, const std::string& name) {
    spec.blocks[0].attention = {.heads = 2, .head_dim = 3, .merge = merge};
    for (const ParameterShape& parameter : Network::parameter_shapes(spec)) {
      if (parameter.name == "blocks.0.attention." + name) return parameter.shape;
    }
    return Shape();
  };
  for (const Merge merge : {Merge::concatenate, Merge::gated_by_head, Merge::gated_by_element}) {
    EXPECT_EQ(shape_of(merge, "output.weight"), (Shape{8, 6})) << name(merge);
  }
  for (const Merge merge : {Merge::average, Merge::weighted, Merge::weighted_by_input}) {
    EXPECT_EQ(shape_of(merge, "output.weight"), (Shape{8, 3})) << name(merge);
  }
  EXPECT_EQ(shape_of(Merge::weighted, "merge_logits"), (Shape{2}));
  EXPECT_EQ(shape_of(Merge::weighted_by_input, "merge.weight"), (Shape{2, 8}));
  EXPECT_EQ(shape_of(Merge::gated_by_head, "gate.weight"), (Shape{2, 8}));
  EXPECT_EQ(shape_of(Merge::gated_by_element, "gate.weight"), (Shape{6, 8}));
  EXPECT_EQ(shape_of(Merge::average, "merge_logits"), Shape());
}

TEST(Network, TellsItsParametersBeforeItIsMade) {
  Random random(7);
  for (std::int64_t n = 0; n < 100; ++n) {
    const NetworkSpec spec = draw_network(random);
    Network network(spec);
    const std::vector<Parameter> made = network.parameters();
    const std::vector<ParameterShape> told = Network::parameter_shapes(spec);
    ASSERT_EQ(told.size(), made.size());
    for (std::size_t i = 0; i < made.size(); ++i) {
      EXPECT_EQ(told[i].name, made[i].name);
      EXPECT_EQ(told[i].shape, made[i].shape) << made[i].name;
    }
  }
}

TEST(Network, RefusesSpecificationsThatDoNotFit) {
  NetworkSpec good;
  good.width = 8;
  good.embedding.vocabulary = 3;
  good.blocks.resize(2);
  for (BlockSpec& block : good.blocks) block.feed_forward.hidden_width = 4;
  const auto refused = [&](auto change) {
    NetworkSpec spec = good;
    change(spec);
    return refusal([&] { Network network(spec); });
  };
  EXPECT_EQ(refused([](NetworkSpec& spec) { spec.width = 0; }), "Network: width is 0, expected at least 1");
  EXPECT_EQ(refused([](NetworkSpec& spec) { spec.blocks[1].attention.heads = 3; }),
            "Network: blocks[1].attention.heads is 3, expected a divisor of width 8, or head_dim given");
  EXPECT_EQ(refused([](NetworkSpec& spec) { spec.blocks[0].attention.rotary.dims = 3; }),
            "Network: blocks[0].attention.rotary: dims is 3, expected an even number from 0 to 8 (head_dim)");
  EXPECT_EQ(refused([](NetworkSpec& spec) {
              spec.blocks[0].attention.heads = std::int64_t{1} << 32;
              spec.blocks[0].attention.head_dim = std::int64_t{1} << 32;
            }),
            "Network: blocks[0].attention is 4294967296 x 4294967296 numbers wide, expected at most 2^40");
  EXPECT_EQ(refused([](NetworkSpec& spec) {
              spec.blocks[1].feed_forward.hidden_width = std::int64_t{1} << 62;
              spec.blocks[1].feed_forward.gated = true;
            }),
            "Network: blocks[1].feed_forward is 4611686018427387904 x 2 numbers wide, expected at most 2^40");
  for (const std::int64_t buckets : {2, 7, -4}) {
    EXPECT_EQ(refused([&](NetworkSpec& spec) { spec.blocks[0].attention.relative_bias.buckets = buckets; }),
              "Network: blocks[0].attention.relative_bias.buckets is " + std::to_string(buckets) +
                  ", expected 0 or an even number of 4 or more");
  }
  EXPECT_EQ(
      refused([](NetworkSpec& spec) { spec.blocks[1].attention.relative_bias = {.buckets = 32, .max_distance = 8}; }),
      "Network: blocks[1].attention.relative_bias.max_distance is 8, expected more than buckets / 4");
  EXPECT_EQ(refused([](NetworkSpec& spec) {
              spec.blocks[0].attention.relative_bias.buckets = 32;
              spec.blocks[1].attention.relative_bias.buckets = 16;
            }),
            "Network: blocks[1].attention.relative_bias or the heads beside it are not those of an earlier block, "
            "expected one table for all blocks");
  EXPECT_EQ(refused([](NetworkSpec& spec) { spec.embedding.norm.epsilon = INFINITY; }),
            "Network: embedding.norm.epsilon is inf, expected a finite number of 0 or more");
  EXPECT_EQ(refused([](NetworkSpec& spec) { spec.blocks[0].attention_residual.factor = NAN; }),
            "Network: blocks[0].attention_residual.factor is nan, expected a finite number");
  EXPECT_EQ(refused([](NetworkSpec& spec) { spec.blocks[1].attention.merge = static_cast<Merge>(6); }),
            "Network: blocks[1].attention.merge is 6, expected one of the enum");
  EXPECT_EQ(refused([](NetworkSpec& spec) { spec.last_norm.bias = true; }),
            "Network: last_norm.bias is true, expected NormKind::layer with it");
}

// Of any number of blocks: values that blocks have of their own share a few buffers.
TEST(Network, IsMadeOfManyBlocksThatDiffer) {
  NetworkSpec spec;
  spec.width = 4;
  spec.embedding.vocabulary = 3;
  for (int number = 0; number < 1000; ++number) {
    BlockSpec block;
    block.attention.rotary = {.dims = 4, .base = 100.0 + number};
    block.feed_forward.hidden_width = 1 + number % 7;
    spec.blocks.push_back(block);
  }
  Engine engine({.threads = 1});
  const Network network(spec);
  const std::vector<std::int64_t> ids = {0, 1}, positions = {0, 1}, offsets = {0, 2};
  Tensor<float, 2> hidden({2, 4});
  network.forward(engine, {.ids = ids, .positions = positions, .offsets = offsets}, hidden.view());
}

TEST(Network, RefusesInputsThatDoNotFit) {
  Engine engine({.threads = 1});
  NetworkSpec spec;
  spec.width = 4;
  spec.embedding = {.vocabulary = 3, .positions = 5};
  const Network network(spec);
  const std::vector<std::int64_t> ids = {0, 1}, offsets = {0, 2};
  Tensor<float, 2> hidden({2, 4});
  EXPECT_EQ(refusal([&] { network.forward(engine, {.ids = ids, .offsets = offsets}, hidden.view()); }),
            "Network: positions has 0 entries, expected 2 (one for each id)");
  EXPECT_EQ(refusal([&] { network.forward(engine, {.ids = ids, .positions = ids}, hidden.view()); }),
            "Network: offsets is empty, expected [n + 1] entries from 0 to N");
  const std::vector<LayerHeads> heads = {{.layer = 0}};
  EXPECT_EQ(refusal([&] {
              network.forward(engine, {.ids = ids, .positions = ids, .offsets = offsets}, hidden.view(), {}, heads);
            }),
            "Network: heads[0].layer is 0, but there are no layers");
  const std::vector<std::int64_t> beyond = {0, 5};
  EXPECT_EQ(
      refusal([&] { network.forward(engine, {.ids = ids, .positions = beyond, .offsets = offsets}, hidden.view()); }),
      "Network: positions[1] is 5, expected 0 to 4");
  EXPECT_EQ(refusal([&] { network.reserve(engine, -1); }), "Network: tokens is -1, expected at least 0");
}

}  // namespace headlight::test::network_test
