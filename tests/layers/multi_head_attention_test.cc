// The attention layer against its float64 twin.
#include "headlight/layers/multi_head_attention.h"

#include "gtest/gtest.h"
#include "layers/twins.h"
#include "support/compare.h"
#include "support/isas.h"
#include "support/quick.h"
#include "support/refusal.h"

namespace headlight::test::multi_head_attention_test {

using MultiHeadAttentionTest = EachIsa;
HEADLIGHT_ON_EVERY_ISA(MultiHeadAttentionTest);

struct LayerCase {
  MultiHeadAttentionOptions layer;
  SharedInputs inputs = SharedInputs::all;
  std::int64_t batch = 1;
  std::int64_t query_length = 1;
  std::int64_t key_length = 1;
  bool residual = false;
  bool gaps = false;  // samples that do not lie one after another
  Causal causal = Causal::none;
  bool key_lengths = false;

  static LayerCase random(Random& random) {
    LayerCase made;
    const std::int64_t key_value_heads = random.integer(1, 3);
    made.layer.heads = key_value_heads * random.integer(1, 3);
    made.layer.key_value_heads = key_value_heads;
    made.layer.width = made.layer.heads * random.integer(1, 17);
    made.layer.bias = random.once_in(2);
    made.layer.packed_projection = random.once_in(2);
    made.layer.merge = random.once_in(2) ? Merge::concatenate : static_cast<Merge>(random.integer(0, 5));
    made.inputs = static_cast<SharedInputs>(random.integer(0, 2));
    if (made.inputs != SharedInputs::all) made.layer.key_width = random.integer(1, 40);
    made.layer.value_width = made.inputs == SharedInputs::none ? random.integer(1, 40) : made.layer.key_width;
    made.batch = random.integer(0, 3);
    made.query_length = random.integer(0, 21);
    made.key_length = made.inputs == SharedInputs::all ? made.query_length : random.integer(0, 30);
    made.residual = random.once_in(2);
    made.gaps = random.once_in(3);
    made.causal = static_cast<Causal>(random.integer(0, 2));
    made.key_lengths = random.once_in(3);
    return made;
  }

  [[nodiscard]] std::string text() const {
    return (testing::Message() << "width " << layer.width << ", heads " << layer.heads << " / " << layer.key_value_heads
                               << ", key width " << layer.key_width << ", value width " << layer.value_width
                               << ", bias " << layer.bias << ", packed " << layer.packed_projection << ", merge "
                               << static_cast<int>(layer.merge) << ", inputs " << static_cast<int>(inputs) << ", batch "
                               << batch << ", lengths " << query_length << ", " << key_length << ", residual "
                               << residual << ", gaps " << gaps << ", causal " << static_cast<int>(causal)
                               << ", key lengths " << key_lengths)
        .GetString();
  }
};

// [B, L, E] with rows (or only samples) a little apart.
class Spaced {
 public:
  Spaced(Random& random, std::int64_t batch, std::int64_t length, std::int64_t width, bool gaps)
      : memory_({batch * (length * (width + 3 * gaps) + 5 * gaps) + 1}),
        view_(memory_.data(), {batch, length, width}, {length * (width + 3 * gaps) + 5 * gaps, width + 3 * gaps, 1}) {
    for (float& element : memory_) element = random.normal();
  }
  [[nodiscard]] View<float, 3> view() const { return view_; }
  template <class To>
  [[nodiscard]] Tensor<To, 3> to() const {
    Tensor<To, 3> copy(view_.shape);
    for (std::int64_t b = 0; b < view_.extent(0); ++b) {
      for (std::int64_t i = 0; i < view_.extent(1); ++i) {
        for (std::int64_t e = 0; e < view_.extent(2); ++e) copy(b, i, e) = static_cast<To>(view_(b, i, e));
      }
    }
    return copy;
  }

 private:
  Tensor<float, 1> memory_;
  View<float, 3> view_;
};

template <class Scalar>
Tensor<Scalar, 3> twin(const MultiHeadAttention& layer, const Spaced& query, const Spaced& key, const Spaced& value,
                       const AttentionOptions& options, const Spaced* residual) {
  TwinWeights<Scalar> weights(layer.weights());
  const auto made =
      weights.attention("", layer.options().heads, layer.options().key_value_heads, layer.options().merge);
  const Tensor<Scalar, 3> query_in = query.to<Scalar>();
  const Tensor<Scalar, 3> key_in = key.to<Scalar>();
  const Tensor<Scalar, 3> value_in = value.to<Scalar>();
  Tensor<Scalar, 3> out(query_in.shape());
  reference::multi_head_attention<Scalar>(made, query_in, key_in, value_in, out, options);
  if (residual != nullptr) {
    const Tensor<Scalar, 3> added = residual->to<Scalar>();
    for (std::int64_t n = 0; n < out.size(); ++n) out.data()[n] += added.data()[n];
  }
  return out;
}

void check(Engine& engine, Random& random, const LayerCase& made) {
  SCOPED_TRACE(made.text());
  MultiHeadAttention layer(made.layer);
  randomize(layer, random);
  const MultiHeadAttentionOptions& options = layer.options();
  const Spaced query(random, made.batch, made.query_length, options.width, made.gaps);
  const Spaced other_key(random, made.batch, made.key_length, options.key_width, made.gaps);
  const Spaced other_value(random, made.batch, made.key_length, options.value_width, made.gaps);
  const Spaced& key = made.inputs == SharedInputs::all ? query : other_key;
  const Spaced& value = made.inputs == SharedInputs::none ? other_value : key;
  const Spaced added(random, made.batch, made.query_length, options.width, made.gaps);
  std::vector<std::int64_t> lengths;
  for (std::int64_t b = 0; b < made.batch; ++b) lengths.push_back(random.integer(0, made.key_length));
  AttentionOptions attention_options;
  attention_options.causal = made.causal;
  if (made.key_lengths) attention_options.key_lengths = lengths;

  const Spaced out(random, made.batch, made.query_length, options.width, made.gaps);
  layer.forward(engine, query.view(), key.view(), value.view(), out.view(), attention_options,
                made.residual ? View<const float, 3>(added.view()) : View<const float, 3>());
  const Spaced* residual = made.residual ? &added : nullptr;
  const Tensor<double, 3> truth = twin<double>(layer, query, key, value, attention_options, residual);
  const Tensor<float, 3> plain = twin<float>(layer, query, key, value, attention_options, residual);
  EXPECT_TRUE(at_most_twice_the_plain_error(out.view(), plain.view(), truth.view()));
}

TEST_P(MultiHeadAttentionTest, AgreesWithTheTwin) {
  Engine engine(options());
  Random random(1);
  for (int repeat = 0; repeat < count(300, 40); ++repeat) {
    check(engine, random, LayerCase::random(random));
    if (HasFailure()) return;
  }
}

// x → x, and the memory of the keys → x: all is read before anything is written.
TEST_P(MultiHeadAttentionTest, MayWriteOverItsInputs) {
  Engine engine(options());
  Random random(2);
  MultiHeadAttention layer({.width = 24, .heads = 3});
  randomize(layer, random);
  const Tensor<float, 3> x = random.normal_tensor<3>({2, 9, 24});
  const Tensor<float, 3> memory = random.normal_tensor<3>({2, 9, 24});
  Tensor<float, 3> expected(x.shape());
  layer.forward(engine, x.view(), memory.view(), memory.view(), expected.view(), {}, x.view());
  Tensor<float, 3> over_query = converted<float>(x);
  layer.forward(engine, over_query.view(), memory.view(), memory.view(), over_query.view(), {}, over_query.view());
  EXPECT_TRUE(same_bits(over_query.view(), expected.view()));
  Tensor<float, 3> over_memory = converted<float>(memory);
  layer.forward(engine, x.view(), over_memory.view(), over_memory.view(), over_memory.view(), {}, x.view());
  EXPECT_TRUE(same_bits(over_memory.view(), expected.view()));
}

// One product for three, or three products, packed or packed anew: always the same bits.
TEST_P(MultiHeadAttentionTest, GivesTheSameBitsHoweverTheProductsAreGrouped) {
  Engine engine(options());
  Random random(3);
  MultiHeadAttention layer({.width = 48, .heads = 4, .key_value_heads = 2});
  randomize(layer, random);
  const Tensor<float, 3> x = random.normal_tensor<3>({2, 19, 48});
  const Tensor<float, 3> second = converted<float>(x);
  const Tensor<float, 3> third = converted<float>(x);
  Tensor<float, 3> together(x.shape());
  Tensor<float, 3> apart(x.shape());
  layer.forward(engine, x.view(), x.view(), x.view(), together.view());
  layer.forward(engine, x.view(), second.view(), second.view(), apart.view());
  EXPECT_TRUE(same_bits(apart.view(), together.view())) << "keys and values together";
  layer.forward(engine, x.view(), second.view(), third.view(), apart.view());
  EXPECT_TRUE(same_bits(apart.view(), together.view())) << "each for itself";
  (void)layer.parameters();  // opens the layer
  layer.forward(engine, x.view(), x.view(), x.view(), apart.view());
  EXPECT_TRUE(same_bits(apart.view(), together.view())) << "weights not packed beforehand";
}

TEST_P(MultiHeadAttentionTest, PassesProbabilitiesAndLogSumExpOn) {
  Engine engine(options());
  Random random(4);
  MultiHeadAttention layer({.width = 12, .heads = 2});
  randomize(layer, random);
  const Tensor<float, 3> x = random.normal_tensor<3>({2, 7, 12});
  Tensor<float, 3> y(x.shape());
  Tensor<float, 4> probabilities({2, 2, 7, 7});
  Tensor<float, 3> log_sum_exp({2, 2, 7});
  AttentionOptions options;
  options.probabilities.per_head = probabilities;
  options.log_sum_exp = log_sum_exp;
  options.causal = Causal::top_left;
  layer.forward(engine, x.view(), x.view(), x.view(), y.view(), options);
  for (std::int64_t i = 0; i < 7; ++i) {
    double sum = 0;
    for (std::int64_t j = 0; j < 7; ++j) {
      sum += probabilities(1, 1, i, j);
      if (j > i) {
        EXPECT_EQ(probabilities(1, 1, i, j), 0.0f);
      }
    }
    EXPECT_NEAR(sum, 1.0, 1e-6);
    EXPECT_TRUE(std::isfinite(log_sum_exp(1, 1, i)));
  }
}

TEST(MultiHeadAttentionArguments, AreNamedWhenTheyAreWrong) {
  EXPECT_EQ(refusal([] { MultiHeadAttention({.width = 12, .heads = 3, .merge = static_cast<Merge>(6)}); }),
            "MultiHeadAttention: merge is 6, expected one of the enum");
  try {
    MultiHeadAttention({.width = std::int64_t{1} << 40});
    FAIL() << "it was not refused";
  } catch (const OutOfMemory& error) {
    EXPECT_STREQ(error.what(),
                 "MultiHeadAttention of width 1099511627776: 18446744073709551615 bytes of memory cannot be had");
  }
  EXPECT_EQ(refusal([] { MultiHeadAttention({.width = 10, .heads = 3}); }),
            "MultiHeadAttention: heads is 3, expected a divisor of width, which is 10");
  EXPECT_EQ(refusal([] { MultiHeadAttention({.width = 12, .heads = 6, .key_value_heads = 4}); }),
            "MultiHeadAttention: key_value_heads is 4, expected a divisor of heads, which is 6");
  EXPECT_EQ(refusal([] { MultiHeadAttention({.width = 0, .heads = 1}); }),
            "MultiHeadAttention: width is 0, expected at least 1");
  EXPECT_EQ(refusal([] { MultiHeadAttention({.width = 4, .heads = -1}); }),
            "MultiHeadAttention: heads is -1, expected at least 1");
  Engine engine;
  const MultiHeadAttention layer({.width = 4, .heads = 2, .key_width = 6});
  const Tensor<float, 3> x({1, 5, 4});
  const Tensor<float, 3> memory({1, 3, 6});
  Tensor<float, 3> y({1, 5, 4});
  EXPECT_EQ(refusal([&] { layer.forward(engine, x.view(), x.view(), x.view(), y.view()); }),
            "MultiHeadAttention: key has shape [1, 5, 4], expected [1, any, 6] ([B, Lk, key_width])");
  EXPECT_EQ(refusal([&] { layer.forward(engine, memory.view(), x.view(), x.view(), y.view()); }),
            "MultiHeadAttention: query has shape [1, 3, 6], expected [any, any, 4] ([B, Lq, E])");
  EXPECT_EQ(refusal([&] { layer.forward(engine, x.view(), memory.view(), x.view(), y.view()); }),
            "MultiHeadAttention: value has shape [1, 5, 4], expected [1, 3, 4] ([B, Lk, value_width])");
}

TEST(MultiHeadAttentionArguments, OfOneWidthAloneAreOneInput) {
  Engine engine({.threads = 1});
  const auto refused = [&](const MultiHeadAttentionOptions& options, SharedInputs inputs) {
    const MultiHeadAttention layer(options);
    const MultiHeadAttentionShape shape{1, 8, 8, inputs};
    const std::string reserved = refusal([&] { layer.reserve(engine, shape); });
    EXPECT_EQ(reserved, refusal([&] { static_cast<void>(layer.workspace_bytes(engine, shape)); }));
    return reserved;
  };
  const MultiHeadAttentionOptions one = {.width = 64, .heads = 4};
  const MultiHeadAttentionOptions two = {.width = 64, .heads = 4, .key_width = 48, .value_width = 48};
  const MultiHeadAttentionOptions three = {.width = 64, .heads = 4, .key_width = 64, .value_width = 48};
  for (const SharedInputs inputs : {SharedInputs::all, SharedInputs::key_and_value, SharedInputs::none}) {
    EXPECT_EQ(refused(one, inputs), "");
  }
  EXPECT_EQ(refused(two, SharedInputs::all),
            "MultiHeadAttention: shape.inputs is 0, expected key_and_value (1) or none (2) of query, key and value of "
            "widths 64, 48 and 48");
  EXPECT_EQ(refused(two, SharedInputs::key_and_value), "");
  EXPECT_EQ(refused(two, SharedInputs::none), "");
  for (const SharedInputs inputs : {SharedInputs::all, SharedInputs::key_and_value}) {
    EXPECT_NE(refused(three, inputs).find("expected none (2) of query, key and value of widths 64, 64 and 48"),
              std::string::npos);
  }
  EXPECT_EQ(refused(three, SharedInputs::none), "");
  EXPECT_NE(refused(one, static_cast<SharedInputs>(7)).find("shape.inputs is 7, expected all (0)"), std::string::npos);
}

// Samples are written one after another: what one writes must be neither another's output nor its residual.
TEST(MultiHeadAttentionArguments, SamplesOfTheOutputLieApart) {
  Engine engine;
  const MultiHeadAttention layer({.width = 4, .heads = 2});
  const Tensor<float, 3> x({2, 5, 4});
  Tensor<float, 1> memory({100});
  EXPECT_EQ(refusal([&] {
              layer.forward(engine, x.view(), x.view(), x.view(), {memory.data(), {2, 5, 4}, {4, 4, 1}});
            }),
            "MultiHeadAttention: out of shape [2, 5, 4] and strides [4, 4, 1] overlaps itself in memory");
  EXPECT_EQ(refusal([&] {
              layer.forward(engine, x.view(), x.view(), x.view(), {memory.data(), {2, 5, 4}, {40, 4, 1}}, {},
                            View<const float, 3>(memory.data() + 20, {2, 5, 4}));
            }),
            "MultiHeadAttention: out overlaps residual in memory");
}

}  // namespace headlight::test::multi_head_attention_test
