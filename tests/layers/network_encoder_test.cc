// An Encoder, and a network by the specification of one: the bits of a chain of TransformerEncoderLayer, both ways.
#include <array>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/layers/network.h"
#include "headlight/row_shards.h"
#include "layers/encoder_chain.h"
#include "layers/encoder_specification.h"
#include "layers/encoder_twin.h"
#include "layers/every_merge.h"
#include "layers/twins.h"
#include "support/compare.h"
#include "support/isas.h"
#include "support/quick.h"

namespace headlight::test::network_encoder_test {

using NetworkEncoderTest = EachIsa;
HEADLIGHT_ON_EVERY_ISA(NetworkEncoderTest);

// Where a network has what an encoder calls so: a part of one, or all of it.
struct Renamed {
  std::string network;
  std::string encoder;
  std::int64_t part = 0;
  std::int64_t parts = 1;
};

std::vector<Renamed> names(const EncoderOptions& options) {
  const bool post = options.norm == Norm::post;
  std::vector<Renamed> list = {{"embeddings.word.weight", "word_embeddings.weight"},
                               {"embeddings.position.weight", "position_embeddings.weight"}};
  if (options.token_types > 0) list.push_back({"embeddings.token_type.weight", "token_type_embeddings.weight"});
  for (std::int64_t n = 0; n < options.layers; ++n) {
    const std::string block = "blocks." + std::to_string(n) + ".attention.";
    const std::string layer = "layers." + std::to_string(n) + ".self_attn.";
    if (options.merge == Merge::weighted) list.push_back({block + "merge_logits", layer + "merge_logits"});
    if (options.merge == Merge::weighted_by_input)
      list.push_back({block + "merge.weight", layer + "merge_proj.weight"});
    if (options.merge >= Merge::gated_by_head) list.push_back({block + "gate.weight", layer + "gate_proj.weight"});
  }
  for (const std::string end : {"weight", "bias"}) {
    list.push_back({(post ? "embeddings.norm." : "norm.") + end, "norm." + end});
    for (std::int64_t n = 0; n < options.layers; ++n) {
      const std::string block = "blocks." + std::to_string(n) + ".", layer = "layers." + std::to_string(n) + ".";
      list.push_back({block + "attention.query." + end, layer + "self_attn.in_proj_" + end, 0, 3});
      list.push_back({block + "attention.key." + end, layer + "self_attn.in_proj_" + end, 1, 3});
      list.push_back({block + "attention.value." + end, layer + "self_attn.in_proj_" + end, 2, 3});
      list.push_back({block + "attention.output." + end, layer + "self_attn.out_proj." + end});
      list.push_back({block + "attention." + (post ? "sum." : "before.") + end, layer + "norm1." + end});
      list.push_back({block + "feed_forward.up." + end, layer + "linear1." + end});
      list.push_back({block + "feed_forward.down." + end, layer + "linear2." + end});
      list.push_back({block + "feed_forward." + (post ? "sum." : "before.") + end, layer + "norm2." + end});
    }
  }
  return list;
}

template <class Number>
std::span<Number> part_of(std::span<Number> all, const Renamed& name) {
  const std::size_t count = all.size() / static_cast<std::size_t>(name.parts);
  return all.subspan(count * static_cast<std::size_t>(name.part), count);
}

// Those of a chain in the names of a network.
Weights renamed(const EncoderChain& chain) {
  const Weights from = chain.weights();
  Weights named;
  for (const Renamed& name : names(chain.options())) {
    WeightView weight = from.at(name.encoder);
    weight.values = part_of(weight.values, name);
    weight.shape[0] /= name.parts;
    named[name.network] = weight;
  }
  return named;
}

View<const float, 1> numbers(std::span<const float> values) {
  return {values.data(), {static_cast<std::int64_t>(values.size())}};
}

std::span<const float> gradient_of(const std::vector<Parameter>& parameters, const std::string& name) {
  for (const Parameter& parameter : parameters) {
    if (parameter.name == name) return parameter.gradient;
  }
  return {};
}

// The chain, and the two that are to give its bits.
struct Three {
  Three(const EncoderOptions& options, Random& random)
      : chain(options), encoder(options), network(specification(options)) {
    chain.draw(random);
    encoder.load(chain.weights());
    network.load(renamed(chain));
  }
  void set_precision(NumberType type) {
    chain.set_precision(type);
    encoder.set_precision(type);
    network.set_precision(type);
  }
  void set_training() {
    chain.set_training(true);
    encoder.set_training(true);
    network.set_training(true);
  }
  EncoderChain chain;
  Encoder encoder;
  Network network;
};

// One of them with a feed-forward that goes through its rows in pieces.
EncoderOptions small(Norm norm, float dropout, Merge merge) {
  return {.vocabulary = 30,
          .max_positions = 300,
          .token_types = 2,
          .width = 24,
          .heads = 3,
          .feed_forward_width = merge == Merge::concatenate ? 5000 : 40,
          .layers = 2,
          .norm = norm,
          .dropout = dropout,
          .merge = merge};
}

// More rows than a piece of a feed-forward of 5,000 has, and in a text more than a block of attention has.
std::vector<std::int64_t> lengths() {
  return quick() ? std::vector<std::int64_t>{40, 1, 130, 130, 130} : std::vector<std::int64_t>{40, 1, 250, 17, 200};
}

TEST_P(NetworkEncoderTest, ComputesTheSameBits) {
  Engine engine(options(2));
  Random random(1);
  for (const Merge merge : kMerges) {
    for (const Norm norm : {Norm::post, Norm::pre}) {
      for (const NumberType type : {NumberType::float32, NumberType::bfloat16, NumberType::int8}) {
        Three three(small(norm, 0, merge), random);
        three.set_precision(type);
        const Tokens tokens(random, 30, lengths());
        Tensor<float, 2> expected({tokens.count(), 24}), hidden(expected.shape());
        three.chain.forward(engine, tokens.input(), expected.view());
        three.encoder.forward(engine, tokens.input(), hidden.view());
        EXPECT_TRUE(same_bits(hidden.view(), expected.view())) << name(merge);
        three.network.forward(engine, tokens.input(), hidden.view());
        EXPECT_TRUE(same_bits(hidden.view(), expected.view())) << name(merge);
      }
    }
  }
}

TEST_P(NetworkEncoderTest, ShowsTheSameHeads) {
  Engine engine(options(2));
  Random random(3);
  for (const Merge merge : kMerges) {
    for (const NumberType type : {NumberType::float32, NumberType::bfloat16}) {
      Three three(small(Norm::post, 0, merge), random);
      three.set_precision(type);
      const Tokens tokens(random, 30, {20, 5});
      const std::int64_t count = tokens.count();
      const std::vector<std::int64_t> silenced = {1};
      std::vector<Tensor<float, 2>> hidden, outputs, scaled, only_scaled;
      std::vector<Tensor<float, 4>> weights;
      const auto run = [&](const auto& model) {
        for (auto* const tensors : {&hidden, &outputs, &scaled, &only_scaled}) {
          tensors->emplace_back(Tensor<float, 2>::Shape{count, 24});
        }
        weights.emplace_back(Tensor<float, 4>::Shape{1, 3, count, count});
        const std::vector<LayerProbabilities> probabilities = {{1, {.per_head = weights.back().view()}}};
        const std::vector<LayerHeads> heads = {{.layer = 0,
                                                .outputs = outputs.back().view(),
                                                .silenced = silenced,
                                                .scaled_outputs = scaled.back().view()},
                                               {.layer = 1, .scaled_outputs = only_scaled.back().view()}};
        model.forward(engine, tokens.input(), hidden.back().view(), probabilities, heads);
      };
      run(three.chain);
      run(three.encoder);
      run(three.network);
      for (const std::size_t model : {1u, 2u}) {
        for (const auto* const tensors : {&hidden, &outputs, &scaled, &only_scaled}) {
          EXPECT_TRUE(same_bits((*tensors)[model].view(), (*tensors)[0].view())) << name(merge);
        }
        EXPECT_TRUE(same_bits(weights[model].view(), weights[0].view()));
      }
    }
  }
}

struct Trained {
  Merge merge;
  Norm norm;
  float dropout = 0.2f;
  Checkpoint checkpoint = Checkpoint::keep_linear;
  NumberType activations = NumberType::float32;
};

// Everywhere, what reaches each operation; on one instruction set, the graph of each option.
std::vector<Trained> trained(Isa isa) {
  std::vector<Trained> all;
  if (isa != available_isas().back()) {
    return {{Merge::concatenate, Norm::post, 0.2f},
            {Merge::gated_by_element, Norm::pre, 0},
            {Merge::weighted_by_input, Norm::post, 0.2f, Checkpoint::every_k_layers},
            {Merge::gated_by_head, Norm::pre, 0.2f, Checkpoint::layer_input, NumberType::bfloat16}};
  }
  for (const Norm norm : {Norm::post, Norm::pre}) {
    for (const float dropout : {0.0f, 0.2f}) {
      for (const Merge merge : kMerges) all.push_back({merge, norm, dropout});
      for (const Merge merge : {Merge::concatenate, Merge::gated_by_head}) {
        all.push_back({merge, norm, dropout, Checkpoint::layer_input, NumberType::bfloat16});
      }
    }
    all.push_back({Merge::concatenate, norm, 0, Checkpoint::keep_linear, NumberType::bfloat16});
    for (const Merge merge : {Merge::concatenate, Merge::weighted_by_input}) {
      all.push_back({merge, norm, 0.2f, Checkpoint::layer_input});
      all.push_back({merge, norm, 0.2f, Checkpoint::every_k_layers});
    }
  }
  return all;
}

// Of the parameters that `expected` has.
void expect_same_gradients(Three& three, const std::vector<Parameter>& expected) {
  const std::vector<Parameter> of_encoder = three.encoder.parameters(), of_network = three.network.parameters();
  for (const Renamed& name : names(three.chain.options())) {
    const std::span<const float> of_chain = gradient_of(expected, name.encoder);
    if (of_chain.empty()) continue;
    EXPECT_TRUE(same_bits(numbers(gradient_of(of_encoder, name.encoder)), numbers(of_chain))) << name.encoder;
    EXPECT_TRUE(same_bits(numbers(gradient_of(of_network, name.network)), numbers(part_of(of_chain, name))))
        << name.network;
  }
}

TEST_P(NetworkEncoderTest, TrainsWithTheSameBits) {
  Engine engine(options(2));
  Random random(2);
  for (const Trained& of : trained(engine.isa())) {
    EncoderOptions made = small(of.norm, of.dropout, of.merge);
    made.layers = of.checkpoint == Checkpoint::every_k_layers ? 5 : 2;
    if (of.checkpoint != Checkpoint::every_k_layers) made.feed_forward_width = 40;
    Three three(made, random);
    const Tokens tokens(random, 30, lengths());
    const Tensor<float, 2> by = random.uniform_tensor<2>({tokens.count(), 24});
    Tensor<float, 2> expected(by.shape()), hidden(by.shape());
    const TrainingStep step = {.seed = 5, .step = 3, .layer = 1, .layers = 2};
    three.set_training();
    three.chain.forward(
        engine, tokens.input(), expected.view(), [&] { return SavedState(of.activations); }, step);
    three.chain.backward(engine, tokens.input(), by.view());
    const auto train = [&](auto& model) {
      SavedState saved(of.activations, of.checkpoint);
      model.forward(engine, tokens.input(), hidden.view(), saved, step);
      EXPECT_TRUE(same_bits(hidden.view(), expected.view())) << name(of.merge);
      model.backward(engine, tokens.input(), saved, by.view());
    };
    train(three.encoder);
    train(three.network);
    EXPECT_EQ(three.chain.parameters().size(), three.encoder.parameters().size());
    expect_same_gradients(three, three.chain.parameters());
  }
}

TEST_P(NetworkEncoderTest, TrainsBySharesWithTheSameBits) {
  Engine engine(options(2));
  Random random(6);
  for (const Norm norm : {Norm::post, Norm::pre}) {
    for (const Merge merge : {Merge::concatenate, Merge::weighted, Merge::gated_by_element}) {
      Three three(small(norm, 0.1f, merge), random);
      three.set_training();
      const Tokens tokens(random, 30, lengths());
      const Tensor<float, 2> by = random.uniform_tensor<2>({tokens.count(), 24});
      const RowShardsOptions shared = {.length = tokens.count(), .shards = 3, .offsets = tokens.input().offsets};
      Tensor<float, 2> expected(by.shape()), hidden(by.shape());
      RowShards of_chain(three.chain.layer_parameters(), shared);
      const ShardedAttention attention_of_chain(of_chain);
      three.chain.forward(engine, tokens.input(), expected.view(),
                          [&] { return SavedState(Checkpoint::keep_linear, 0, attention_of_chain); }, {});
      three.chain.backward(engine, tokens.input(), by.view());
      const auto train = [&](auto& model) {
        auto rows = std::make_unique<RowShards>(model.parameters(), shared);
        const ShardedAttention attention(*rows);
        SavedState saved(Checkpoint::keep_linear, 0, attention);
        model.forward(engine, tokens.input(), hidden.view(), saved, TrainingStep());
        EXPECT_TRUE(same_bits(hidden.view(), expected.view())) << name(merge);
        model.backward(engine, tokens.input(), saved, by.view());
        return rows;
      };
      const auto of_encoder = train(three.encoder), of_network = train(three.network);
      for (std::int64_t shard = 0; shard < of_chain.count(); ++shard) {
        of_chain.give(engine, shard);
        of_encoder->give(engine, shard);
        of_network->give(engine, shard);
        expect_same_gradients(three, three.chain.layer_parameters());
      }
    }
  }
}

TEST(NetworkEncoder, BeginWithTheSameValues) {
  for (const Merge merge : kMerges) {
    for (const Norm norm : {Norm::post, Norm::pre}) {
      EncoderOptions options = small(norm, 0, merge);
      options.orthogonal = merge == Merge::concatenate || norm == Norm::pre;
      options.token_types = norm == Norm::pre ? 0 : 2;
      EncoderChain chain(options);
      Encoder encoder(options);
      Network network(specification(options));
      chain.initialize(7);
      encoder.initialize(7);
      network.initialize(7);
      const Weights expected = chain.weights(), of_encoder = encoder.weights(), of_network = network.weights();
      for (const Renamed& name : names(options)) {
        const std::span<const float> of_chain = expected.at(name.encoder).values;
        EXPECT_TRUE(same_bits(numbers(of_encoder.at(name.encoder).values), numbers(of_chain))) << name.encoder;
        EXPECT_TRUE(same_bits(numbers(of_network.at(name.network).values), numbers(part_of(of_chain, name))))
            << name.network;
      }
    }
  }
}

// Looks at heads, and asks something of them beside the loss.
class Looker final : public HeadVisitor {
 public:
  void visit(Engine&, std::int64_t layer, View<const float, 3> outputs, View<float, 3> gradient) override {
    seen.push_back(static_cast<float>(layer));
    for (std::int64_t n = 0; n < outputs.extent(1); ++n) {
      for (std::int64_t e = 0; e < outputs.extent(2); ++e) {
        seen.push_back(outputs(0, n, e));
        seen.push_back(gradient(0, n, e));
        gradient(0, n, e) += outputs(0, n, e) / 8;
      }
    }
  }
  std::vector<float> seen;
};

TEST_P(NetworkEncoderTest, ShowsTheSameHeadsOnTheWayBack) {
  Engine engine(options(2));
  Random random(4);
  for (const Merge merge : kMerges) {
    for (const Checkpoint checkpoint : {Checkpoint::keep_linear, Checkpoint::layer_input}) {
      const NumberType activations = checkpoint == Checkpoint::keep_linear ? NumberType::float32 : NumberType::bfloat16;
      Three three(small(Norm::pre, 0.1f, merge), random);
      three.set_training();
      const Tokens tokens(random, 30, {20, 5});
      const Tensor<float, 2> by = random.uniform_tensor<2>({tokens.count(), 24});
      Tensor<float, 2> hidden(by.shape());
      Looker of_chain;
      three.chain.forward(engine, tokens.input(), hidden.view(), [&] { return SavedState(activations); }, {});
      three.chain.backward(engine, tokens.input(), by.view(), &of_chain);
      EXPECT_EQ(of_chain.seen.size(), std::size_t{2 * (1 + 2 * 25 * 24)});
      const auto train = [&](auto& model) {
        Looker looker;
        SavedState saved(activations, checkpoint);
        model.forward(engine, tokens.input(), hidden.view(), saved, TrainingStep());
        model.backward(engine, tokens.input(), saved, by.view(), &looker);
        EXPECT_TRUE(same_bits(numbers(looker.seen), numbers(of_chain.seen))) << name(merge);
      };
      train(three.encoder);
      train(three.network);
      expect_same_gradients(three, three.chain.parameters());
    }
  }
}

}  // namespace headlight::test::network_encoder_test
