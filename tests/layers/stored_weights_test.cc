// Weights in every storage format: read where they lie, packed a few rows at a time, integers as they are.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/layers.h"
#include "headlight/layers/network.h"
#include "headlight/layers/weight_matrix.h"
#include "headlight/storage_format.h"
#include "headlight/storage_types.h"
#include "storage/formats.h"
#include "support/compare.h"
#include "support/isas.h"
#include "support/random.h"
#include "support/stored_rows.h"

namespace headlight::test::stored_weights_test {

using Rows = WeightMatrix::Rows;

using StoredWeights = EachIsaAndFeature;
HEADLIGHT_ON_EVERY_FEATURE(StoredWeights);

// Numbers of a row, one of them not a whole number of groups where the format allows that.
std::vector<std::int64_t> columns_of(StorageFormat format) {
  const StorageFormatInfo& of = info(format);
  if (of.has_whole_blocks) return {of.numbers, 3 * of.numbers};
  return {1, 37, 96};
}

Tensor<float, 2> widened(const StoredNumbers& stored, std::int64_t columns) {
  Tensor<float, 2> values({stored.count / columns, columns});
  widen_rows(stored, columns, 0, values.shape()[0], values.data());
  return values;
}

// A matrix [70, K] of three parts, as a file has query, key and value; and its numbers.
struct Lent {
  Lent(Random& random, StorageFormat format, std::int64_t columns) : matrix({70, columns}), values({70, columns}) {
    std::vector<WeightMatrix::Lent> parts;
    for (const Rows rows : {Rows{0, 8}, Rows{8, 3}, Rows{11, 59}}) {
      owners.push_back(std::make_shared<StoredRows>(random, format, rows.count, columns));
      parts.push_back({rows, owners.back()->view(), owners.back()});
      widen_rows(owners.back()->view(), columns, 0, rows.count, &values(rows.first, 0));
    }
    matrix.borrow(std::move(parts));
  }

  WeightMatrix matrix;
  Tensor<float, 2> values;
  std::vector<std::shared_ptr<StoredRows>> owners;
};

Tensor<float, 2> product(Engine& engine, const Tensor<float, 2>& a, const PackedMatrix& b) {
  Tensor<float, 2> c({a.shape()[0], b.columns()});
  gemm(engine, a, b, c);
  return c;
}

TEST_P(StoredWeights, AreReadWhereTheyLie) {
  Engine engine(options());
  Random random(1);
  for (const StorageFormatInfo& of : storage_formats()) {
    for (const std::int64_t columns : columns_of(of.format)) {
      SCOPED_TRACE(std::string(of.name) + " " + std::to_string(columns));
      Lent lent(random, of.format, columns);
      const auto a = random.normal_tensor<2>({5, columns});
      for (const Rows rows : {Rows{0, 70}, Rows{8, 3}, Rows{5, 20}}) {
        const View<const float, 2> expected(&lent.values(rows.first, 0), {rows.count, columns});
        Tensor<float, 2> read({rows.count, columns});
        lent.matrix.read(rows, read.data());
        EXPECT_TRUE(same_bits(read.view(), expected));
        for (const NumberType type : kNumberTypes) {
          if (of.panels == type) continue;
          lent.matrix.set_type(type);
          const PackedMatrix of_floats(engine, expected, Transpose::yes, type);
          EXPECT_TRUE(same_bits(product(engine, a, *lent.matrix.packed(engine, rows)), product(engine, a, of_floats)))
              << name(type);
        }
      }
      EXPECT_TRUE(lent.matrix.is_borrowed());
      EXPECT_EQ(lent.owners[1].use_count(), 2) << "of this test and of the matrix";
      EXPECT_TRUE(same_bits(lent.matrix.shown(), View<const float, 2>(lent.values)));
    }
  }
}

// Row k of A is 1 at k alone: its integer is the largest, and C what the formulas of gemm.h make of one integer of B.
Tensor<float, 2> ones(std::int64_t columns) {
  Tensor<float, 2> a({columns, columns});
  for (std::int64_t k = 0; k < columns; ++k) a(k, k) = 1.0f;
  return a;
}

TEST_P(StoredWeights, OfIntegersBecomePanelsAsTheyAre) {
  Engine engine(options());
  Random random(2);
  for (const StorageFormatInfo& of : storage_formats()) {
    if (!of.panels) continue;
    for (const std::int64_t columns : columns_of(of.format)) {
      SCOPED_TRACE(std::string(of.name) + " " + std::to_string(columns));
      Lent lent(random, of.format, columns);
      lent.matrix.set_type(*of.panels);
      const float most = *of.panels == NumberType::int8 ? 255.0f : 127.0f;
      const auto c = product(engine, ones(columns), *lent.matrix.packed(engine, lent.matrix.all()));
      std::vector<float> integers(static_cast<std::size_t>(columns)), scales = integers;
      for (std::int64_t row = 0; row < 70; ++row) {
        const std::size_t part = row < 8 ? 0 : row < 11 ? 1 : 2;
        const std::int64_t in_part = row - std::array{0, 8, 11}[part];
        storage::table_entry(of.format).integers(storage::row_of(lent.owners[part]->view(), columns, in_part), columns,
                                                 integers.data(), scales.data());
        for (std::int64_t k = 0; k < columns; ++k) {
          float scale = scales[of.numbers_of_scale == 0 ? 0 : static_cast<std::size_t>(k / of.numbers_of_scale)];
          if (*of.panels == NumberType::int4) scale = static_cast<float>(BFloat16(scale));
          const float sum = most * integers[static_cast<std::size_t>(k)];
          ASSERT_EQ(c(k, row), sum * scale * (1.0f / most)) << row << ", " << k;
        }
      }
    }
  }
}

// Whoever saves a model is shown floats; the panels that are made then are the same.
TEST(StoredWeightsOnce, OfIntegersStayWhatTheyAreWhenTheyAreShown) {
  Engine engine({.threads = 1});
  Random random(3);
  for (const StorageFormatInfo& of : storage_formats()) {
    if (!of.panels) continue;
    Lent lent(random, of.format, 96);
    lent.matrix.set_type(*of.panels);
    const auto a = random.normal_tensor<2>({5, 96});
    const auto expected = product(engine, a, *lent.matrix.packed(engine, lent.matrix.all()));
    (void)lent.matrix.shown();
    lent.matrix.set_type(NumberType::float32);
    lent.matrix.set_type(*of.panels);
    EXPECT_TRUE(same_bits(product(engine, a, *lent.matrix.packed(engine, lent.matrix.all())), expected)) << of.name;
  }
}

TEST(StoredWeightsOnce, SameBitsOfPanelsOnAnyNumberOfThreads) {
  Random random(4);
  for (const StorageFormatInfo& of : storage_formats()) {
    const StoredRows rows(random, of.format, 700, 256);
    const auto a = random.normal_tensor<2>({3, 256});
    for (const NumberType type : kNumberTypes) {
      std::vector<Tensor<float, 2>> results;
      for (const int threads : {1, 3}) {
        Engine engine({.threads = threads});
        WeightMatrix matrix({700, 256});
        matrix.set_type(type);
        matrix.borrow({{matrix.all(), rows.view(), nullptr}});
        results.push_back(product(engine, a, *matrix.packed(engine, matrix.all())));
      }
      EXPECT_TRUE(same_bits(results[0], results[1])) << of.name << " as " << name(type);
    }
  }
}

// A layer takes them with an owner, where they stay, and without, copied as they are.
TEST(StoredWeightsOnce, AreLoadedByLayers) {
  Engine engine({.threads = 1});
  Random random(5);
  const auto x = random.normal_tensor<2>({5, 256});
  for (const StorageFormatInfo& of : storage_formats()) {
    SCOPED_TRACE(of.name);
    const auto owner = std::make_shared<StoredRows>(random, of.format, 7, 256);
    const auto values = widened(owner->view(), 256);
    const std::span<const float> floats(values.data(), static_cast<std::size_t>(values.size()));
    Linear lent(256, 7, false), copied(256, 7, false), expected(256, 7, false);
    lent.load({{"weight", {.shape = {7, 256}, .owner = owner, .stored = owner->view()}}});
    copied.load({{"weight", {.shape = {7, 256}, .stored = owner->view()}}});
    expected.load({{"weight", {{7, 256}, floats}}});
    Tensor<float, 2> y({5, 7}), expected_y({5, 7});
    expected.forward(engine, x, expected_y);
    for (const Linear* layer : {&lent, &copied}) {
      layer->forward(engine, x, y);
      EXPECT_TRUE(same_bits(y, expected_y));
      EXPECT_TRUE(std::ranges::equal(layer->weights().at("weight").values, floats));
    }
    for (const NumberType precision : kNumberTypes) {
      lent.set_precision(precision);
      copied.set_precision(precision);
      lent.forward(engine, x, expected_y);
      copied.forward(engine, x, y);
      EXPECT_TRUE(same_bits(y, expected_y)) << name(precision);
    }
    EXPECT_EQ(owner.use_count(), 2) << "of this test and of the layer";
  }
}

TEST(StoredWeightsOnce, AreTablesOfEmbeddings) {
  Random random(6);
  Encoder floats({.vocabulary = 50, .max_positions = 9, .token_types = 2, .width = 256, .heads = 2, .layers = 0});
  const std::vector<std::int64_t> ids{49, 0, 7, 7}, positions{0, 1, 2, 8}, types{0, 1, 1, 0}, offsets{0, 4};
  const EncoderInput input = {ids, positions, types, offsets};
  for (const StorageFormatInfo& of : storage_formats()) {
    SCOPED_TRACE(of.name);
    Encoder stored(floats.options());
    Weights of_floats = floats.weights(), of_stored = of_floats;
    std::vector<std::shared_ptr<StoredRows>> owners;
    std::vector<Tensor<float, 2>> values;
    for (const auto& [name, rows] : {std::pair{"word_embeddings.weight", 50}, {"token_type_embeddings.weight", 2}}) {
      owners.push_back(std::make_shared<StoredRows>(random, of.format, rows, 256));
      values.push_back(widened(owners.back()->view(), 256));
      of_floats[name].values = {values.back().data(), static_cast<std::size_t>(values.back().size())};
      of_stored[name] = {.shape = {rows, 256}, .owner = owners.back(), .stored = owners.back()->view()};
    }
    floats.load(of_floats);
    stored.load(of_stored);
    EXPECT_EQ(owners[0].use_count(), 3) << "they stay where they are";
    for (const int threads : {1, 2}) {
      Engine engine({.threads = threads});
      Tensor<float, 2> found({4, 256}), expected({4, 256});
      floats.forward(engine, input, expected);
      stored.forward(engine, input, found);
      EXPECT_TRUE(same_bits(found, expected));
    }
  }
}

// Every matrix of a network, its tables too.
TEST(StoredWeightsOnce, AreThoseOfANetwork) {
  Random random(7);
  NetworkSpec spec{.width = 256, .embedding = {.vocabulary = 50, .positions = 9}};
  spec.blocks.resize(2);
  for (BlockSpec& block : spec.blocks) {
    block.attention.heads = 2;
    block.feed_forward = {.hidden_width = 256, .activation = Activation::silu, .gated = true};
    block.attention_residual.before = block.feed_forward_residual.before = {.kind = NormKind::rms};
  }
  const std::vector<std::int64_t> ids{49, 0, 7, 7}, positions{0, 1, 2, 8}, offsets{0, 4};
  const EncoderInput input = {.ids = ids, .positions = positions, .offsets = offsets};
  Network floats(spec), stored(spec);
  for (const StorageFormatInfo& of : storage_formats()) {
    SCOPED_TRACE(of.name);
    Weights of_floats = floats.weights(), of_stored = of_floats;
    std::vector<Tensor<float, 2>> values;
    for (auto& [name, weight] : of_stored) {
      if (weight.shape.size() != 2) continue;
      ASSERT_EQ(weight.shape[1], 256) << name;
      const auto owner = std::make_shared<StoredRows>(random, of.format, weight.shape[0], 256);
      values.push_back(widened(owner->view(), 256));
      of_floats[name].values = {values.back().data(), static_cast<std::size_t>(values.back().size())};
      weight = {.shape = weight.shape, .owner = owner, .stored = owner->view()};
    }
    EXPECT_EQ(values.size(), 16u);
    floats.load(of_floats);
    stored.load(of_stored);
    Engine engine({.threads = 2});
    stored.reserve(engine, 4);
    Tensor<float, 2> found({4, 256}), expected({4, 256});
    floats.forward(engine, input, expected);
    stored.forward(engine, input, found);
    EXPECT_TRUE(same_bits(found, expected));
  }
}

}  // namespace headlight::test::stored_weights_test
