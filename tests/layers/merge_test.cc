// The ways to put heads together: PyTorch's numbers, weights that are saved and loaded, memory that is asked for once.
#include <map>
#include <sstream>

#include "gtest/gtest.h"
#include "headlight/layers/multi_head_attention.h"
#include "layers/twins.h"
#include "support/allocation_counter.h"
#include "support/compare.h"
#include "support/golden.h"
#include "support/isas.h"
#include "support/refusal.h"
#include "support/workers.h"

namespace headlight::test::merge_test {

using MergeTest = EachIsa;
HEADLIGHT_ON_EVERY_ISA(MergeTest);

const std::map<std::string, Merge> kMerges{
    {"concatenate", Merge::concatenate},     {"average", Merge::average},
    {"weighted", Merge::weighted},           {"weighted_by_input", Merge::weighted_by_input},
    {"gated_by_head", Merge::gated_by_head}, {"gated_by_element", Merge::gated_by_element}};

// A line of merges_cases.txt: words and their values.
std::map<std::string, std::string> words_of(const std::string& line) {
  std::map<std::string, std::string> words;
  std::stringstream stream(line);
  for (std::string word; stream >> word;) words[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
  return words;
}

// By ascending name, as merges.py does.
void fill(Layer& layer, Random& random) {
  for (auto& [name, weight] : layer.weights()) {
    const bool is_matrix = weight.shape.size() == 2;
    const auto scale = is_matrix ? static_cast<float>(1 / std::sqrt(static_cast<double>(weight.shape[1]))) : 0.1f;
    for (const Parameter& parameter : layer.parameters()) {
      if (parameter.name != name) continue;
      for (float& value : parameter.values) value = scale * random.normal();
    }
  }
  layer.freeze();
}

// A pass forward and backward; out_gradient is the direction.
void train(Engine& engine, MultiHeadAttention& layer, const Tensor<float, 3>& x, const Tensor<float, 3>& direction,
           Tensor<float, 3>& x_gradient, const AttentionOptions& options) {
  layer.set_training(true);
  SavedState saved;
  Tensor<float, 3> y(x.shape());
  layer.forward(engine, x, x, x, y, saved, {}, options);
  layer.backward(engine, x, x, x, saved, direction, {.query = x_gradient});
}

TEST_P(MergeTest, AgreesWithPyTorch) {
  Engine engine(options(2));
  GoldenNumbers golden("merges.npy");
  for (const std::string& line : golden_lines("merges_cases.txt")) {
    SCOPED_TRACE(line);
    std::map<std::string, std::string> words = words_of(line);
    Random random(std::stoull(words["seed"]));
    MultiHeadAttention layer({.width = std::stoll(words["width"]),
                              .heads = std::stoll(words["heads"]),
                              .merge = kMerges.at(words["merge"])});
    fill(layer, random);
    const auto x = random.normal_tensor<3>({std::stoll(words["B"]), std::stoll(words["L"]), layer.options().width});
    AttentionOptions attention_options;
    if (words["causal"] == "1") attention_options.causal = Causal::top_left;
    Tensor<float, 3> y(x.shape());
    layer.forward(engine, x.view(), x.view(), x.view(), y.view(), attention_options);
    const auto direction = random.normal_tensor<3>(x.shape());
    Tensor<float, 3> x_gradient(x.shape());
    train(engine, layer, x, direction, x_gradient, attention_options);

    TwinWeights<double> weights(layer.weights());
    const MultiHeadAttentionOptions& made = layer.options();
    Tensor<double, 3> twin(x.shape());
    reference::multi_head_attention<double>(weights.attention("", made.heads, made.heads, made.merge),
                                            converted<double>(x), converted<double>(x), converted<double>(x), twin,
                                            attention_options);
    const auto expected = golden.next<3>(x.shape());
    EXPECT_TRUE(within(twin.view(), expected.view(), 1e-13));
    for (std::int64_t n = 0; n < y.size(); ++n) EXPECT_NEAR(y.data()[n], expected.data()[n], 1e-5);
    EXPECT_TRUE(within(x_gradient.view(), golden.next<3>(x.shape()).view(), 1e-5));
    for (const auto& [name, weight] : layer.weights()) {
      const auto count = static_cast<std::int64_t>(weight.values.size());
      for (const Parameter& parameter : layer.parameters()) {
        if (parameter.name != name) continue;
        const View<const float, 1> gradient(parameter.gradient.data(), {count});
        EXPECT_TRUE(within(gradient, golden.next<1>({count}).view(), 1e-5)) << name;
      }
    }
  }
  EXPECT_TRUE(golden.at_end());
}

TEST(Merge, EachHasItsParameters) {
  const auto count = [](Merge merge) {
    return MultiHeadAttention({.width = 24, .heads = 3, .bias = false, .merge = merge}).parameter_count() - 3 * 24 * 24;
  };
  EXPECT_EQ(count(Merge::concatenate), 24 * 24);
  EXPECT_EQ(count(Merge::average), 24 * 8);
  EXPECT_EQ(count(Merge::weighted), 24 * 8 + 3);
  EXPECT_EQ(count(Merge::weighted_by_input), 24 * 8 + 3 * 24);
  EXPECT_EQ(count(Merge::gated_by_head), 24 * 24 + 3 * 24);
  EXPECT_EQ(count(Merge::gated_by_element), 2 * 24 * 24);
}

TEST(Merge, HasAName) {
  for (int number = 0; number < 6; ++number) {
    EXPECT_EQ(parse_merge(name(static_cast<Merge>(number))), static_cast<Merge>(number));
  }
  EXPECT_EQ(name(Merge::weighted_by_input), "weighted-by-input");
  EXPECT_EQ(parse_merge("add"), std::nullopt);
  EXPECT_EQ(name(static_cast<Merge>(6)), "unknown");
  EXPECT_EQ(name(static_cast<Merge>(255)), "unknown");
}

TEST(Merge, WeightsBeginEqual) {
  Engine engine({.threads = 1});
  Random random(6);
  MultiHeadAttention average({.width = 24, .heads = 4, .merge = Merge::average});
  MultiHeadAttention weighted({.width = 24, .heads = 4, .merge = Merge::weighted});
  average.initialize(5);
  weighted.initialize(5);
  const auto x = random.normal_tensor<3>({2, 7, 24});
  Tensor<float, 3> y(x.shape()), z(x.shape());
  average.forward(engine, x.view(), x.view(), x.view(), y.view());
  weighted.forward(engine, x.view(), x.view(), x.view(), z.view());
  EXPECT_TRUE(same_bits(y.view(), z.view()));
}

TEST(Merge, WeightsOfOneMergeLoadIntoTheSameOnly) {
  Random random(7);
  for (const auto& [name, merge] : kMerges) {
    MultiHeadAttention from({.width = 24, .heads = 3, .merge = merge});
    randomize(from, random);
    MultiHeadAttention to({.width = 24, .heads = 3, .merge = merge});
    to.load(from.weights());
    const Weights again = to.weights();
    for (const auto& [parameter, weight] : from.weights()) {
      const std::span<const float> values = again.at(parameter).values;
      EXPECT_TRUE(std::equal(weight.values.begin(), weight.values.end(), values.begin(), values.end())) << parameter;
    }
    for (const auto& [other_name, other] : kMerges) {
      if (other == merge) continue;
      MultiHeadAttention stranger({.width = 24, .heads = 3, .merge = other});
      EXPECT_NE(refusal([&] { stranger.load(from.weights()); }), "") << name << " into " << other_name;
    }
  }
}

// x → x: all is read before anything is written. And what is reserved is enough.
TEST_P(MergeTest, MayWriteOverItsInputsWithoutAllocating) {
  Random random(8);
  for (const auto& [name, merge] : kMerges) {
    SCOPED_TRACE(name);
    MultiHeadAttention layer({.width = 24, .heads = 3, .merge = merge});
    randomize(layer, random);
    const auto x = random.normal_tensor<3>({2, 9, 24});
    Tensor<float, 3> expected(x.shape());
    Engine other(options());
    layer.forward(other, x.view(), x.view(), x.view(), expected.view(), {}, x.view());

    Engine engine(options(2));
    wait_for_workers(engine);
    layer.reserve(engine, {.batch = 2, .query_length = 9, .key_length = 9});
    Tensor<float, 3> over = converted<float>(x);
    const AllocationCounter counter;
    layer.forward(engine, over.view(), over.view(), over.view(), over.view(), {}, over.view());
    const std::int64_t allocations = counter.count();
    EXPECT_EQ(allocations, 0);
    EXPECT_TRUE(same_bits(over.view(), expected.view()));
  }
}

}  // namespace headlight::test::merge_test
