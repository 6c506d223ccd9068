// Counting by formula agrees with what was published, and with the layers that are there to be counted.
#include "headlight/analysis/presets.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "headlight/layers/encoder.h"

namespace headlight::test::presets_test {

const analysis::Preset& preset(std::string_view name) {
  for (const analysis::Preset& found : analysis::presets()) {
    if (found.name == name) return found;
  }
  throw std::invalid_argument(std::string(name));
}

TEST(Presets, PartsAddUpToWhatWasPublished) {
  ASSERT_EQ(analysis::presets().size(), 5u);
  for (const analysis::Preset& found : analysis::presets()) {
    EXPECT_EQ(analysis::parameter_count(found.shape), found.published_parameters) << found.name;
  }
}

TEST(Presets, HeadsAreAsManyAsTheWidthHasSixtyFours) {
  for (const analysis::Preset& found : analysis::presets()) {
    const std::int64_t head_dim = found.shape.width / found.shape.heads;
    EXPECT_EQ(head_dim, found.name == "MiniLM-L6" ? 32 : 64) << found.name;
  }
}

TEST(Presets, OneHeadOfFullWidthHasAsManyWeightsAsMany) {
  const analysis::AttentionParameters twelve = analysis::attention_parameters(768, 12);
  EXPECT_EQ(twelve.head_dim, 64);
  EXPECT_EQ(twelve.one_projection, 49'152);
  EXPECT_EQ(twelve.projections_per_head, 147'456);
  EXPECT_EQ(twelve.projections, 1'769'472);
  EXPECT_EQ(twelve.output, 589'824);
  EXPECT_EQ(twelve.weights, 2'359'296);
  for (const std::int64_t heads : {1, 2, 8, 768}) {
    EXPECT_EQ(analysis::attention_parameters(768, heads).weights, twelve.weights) << heads;
    EXPECT_EQ(analysis::attention_parameters(768, heads).biases, twelve.biases) << heads;
  }
}

// BERT without its pooler is an encoder that can be made and counted.
TEST(Presets, TheFormulaCountsWhatTheLayersHave) {
  for (const std::int64_t heads : {1, 3, 12}) {
    analysis::ModelShape shape = preset("MiniLM-L6").shape;
    shape.heads = heads;
    shape.vocabulary = 1001;
    shape.pooler = false;
    const Encoder encoder({.vocabulary = shape.vocabulary,
                           .max_positions = shape.positions,
                           .token_types = shape.token_types,
                           .width = shape.width,
                           .heads = shape.heads,
                           .feed_forward_width = shape.feed_forward_width,
                           .layers = shape.layers});
    EXPECT_EQ(analysis::parameter_count(shape), encoder.parameter_count());
    EXPECT_EQ(analysis::weight_bytes(shape, NumberType::float32), 4 * encoder.parameter_count());
    std::int64_t multiplied = 0, columns = 0, groups = 0, bytes_of_halves = 0;
    for (const auto& [name, weight] : encoder.weights()) {
      if (!name.starts_with("layers.") || weight.shape.size() != 2) continue;
      multiplied += weight.shape[0] * weight.shape[1];
      columns += weight.shape[0];
      groups += weight.shape[0] * ((weight.shape[1] + 31) / 32);
      bytes_of_halves += weight.shape[0] * ((weight.shape[1] + 1) / 2);
    }
    const std::int64_t others = 4 * (encoder.parameter_count() - multiplied);
    EXPECT_EQ(analysis::weight_bytes(shape, NumberType::bfloat16), others + 2 * multiplied);
    EXPECT_EQ(analysis::weight_bytes(shape, NumberType::float16), others + 2 * multiplied);
    EXPECT_EQ(analysis::weight_bytes(shape, NumberType::int8), others + multiplied + 8 * columns);
    EXPECT_EQ(analysis::weight_bytes(shape, NumberType::int4), others + bytes_of_halves + 2 * groups);
  }
}

TEST(Presets, OperationsAndBytesGrowAsTheyShould) {
  const analysis::ModelShape& bert = preset("BERT-base").shape;
  const analysis::ForwardFlops at_512 = analysis::forward_flops(bert, 512);
  EXPECT_EQ(at_512.projections, 12 * 2 * 512 * std::int64_t{2'359'296});
  EXPECT_EQ(at_512.attention, 12 * 4 * 12 * std::int64_t{512} * 512 * 64);
  EXPECT_EQ(at_512.feed_forward, 12 * 2 * std::int64_t{512} * 2 * 768 * 3072);
  EXPECT_EQ(analysis::forward_flops(bert, 1024).attention, 4 * at_512.attention);
  EXPECT_EQ(analysis::forward_flops(bert, 1024).projections, 2 * at_512.projections);

  analysis::ModelShape causal = bert;
  causal.causal = true;
  EXPECT_EQ(analysis::forward_flops(causal, 512).attention * 2 * 512, at_512.attention * 513);

  analysis::ModelShape one_head = bert;
  one_head.heads = 1;
  EXPECT_EQ(analysis::attention_bytes(one_head, 1000).scores, 4'000'000);
  EXPECT_EQ(analysis::attention_bytes(one_head, 100'000).scores, 40'000'000'000);
  const analysis::AttentionBytes bytes = analysis::attention_bytes(bert, 512);
  EXPECT_EQ(bytes.kept_plain - bytes.scores, 4 * 4 * 512 * 768);
  EXPECT_EQ(bytes.kept_rebuilt, 4 * 4 * 512 * 768 + 4 * 512 * 12);
}

// Against layers that are there to be counted.
TEST(Presets, MergesCostWhatTheirLayersHave) {
  const std::vector<analysis::MergeCost> costs = analysis::merge_costs(48, 6, 100);
  ASSERT_EQ(costs.size(), 6u);
  for (std::size_t n = 0; n < costs.size(); ++n) {
    EXPECT_EQ(costs[n].merge, static_cast<Merge>(n));
    const MultiHeadAttention layer({.width = 48, .heads = 6, .bias = false, .merge = costs[n].merge});
    EXPECT_EQ(costs[n].weights, layer.parameter_count() - 3 * 48 * 48) << name(costs[n].merge);
  }
  // 100 tokens, E = 48, six heads of D = 8: two for each multiply-add.
  constexpr double kProducts[] = {460'800, 76'800, 76'800, 134'400, 518'400, 921'600};
  // D sums of six, divided; six products and five additions of D; and a softmax of six; six gates on all 48; 48 gates.
  constexpr double kRows[] = {0, 100 * 48, 100 * 88 + 18, 100 * (88 + 18), 100 * (18 + 48), 100 * (144 + 48)};
  for (std::size_t n = 0; n < costs.size(); ++n) {
    EXPECT_EQ(costs[n].flops, kProducts[n]) << name(costs[n].merge);
    EXPECT_EQ(costs[n].row_flops, kRows[n]) << name(costs[n].merge);
  }
  EXPECT_THROW((void)analysis::merge_costs(48, 5, 1), std::invalid_argument);
  EXPECT_THROW((void)analysis::merge_costs(48, 6, 0), std::invalid_argument);
}

TEST(Presets, TheLargestSizesStayWhole) {
  const analysis::ModelShape largest{.width = (1 << 20) - 1,
                                     .heads = 1,
                                     .feed_forward_width = 4 * ((1 << 20) - 1),
                                     .layers = 1 << 16,
                                     .vocabulary = std::int64_t{1} << 40,
                                     .positions = std::int64_t{1} << 40};
  EXPECT_GT(analysis::parameter_count(largest), std::int64_t{1} << 59);
  EXPECT_GT(analysis::forward_flops(largest, INT64_MAX).all(), 1e49);
}

TEST(Presets, SizesThatMakeNoSense) {
  EXPECT_THROW((void)analysis::attention_parameters(768, 5), std::invalid_argument);
  EXPECT_THROW((void)analysis::attention_parameters(0, 1), std::invalid_argument);
  EXPECT_THROW((void)analysis::attention_parameters(std::int64_t{1} << 40, 1), std::invalid_argument);
  EXPECT_THROW((void)analysis::attention_parameters(8, 0), std::invalid_argument);
  const analysis::ModelShape& bert = preset("BERT-base").shape;
  for (const std::int64_t length : {std::int64_t{0}, std::int64_t{-1}, INT64_MIN}) {
    EXPECT_THROW((void)analysis::forward_flops(bert, length), std::invalid_argument) << length;
    EXPECT_THROW((void)analysis::attention_bytes(bert, length), std::invalid_argument) << length;
  }
  analysis::ModelShape shape = bert;
  shape.layers = std::int64_t{1} << 62;
  EXPECT_THROW((void)analysis::parameter_count(shape), std::invalid_argument);
  shape = bert;
  shape.vocabulary = -1;
  EXPECT_THROW((void)analysis::parameter_count(shape), std::invalid_argument);
}

}  // namespace headlight::test::presets_test
