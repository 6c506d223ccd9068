// A weight matrix whose panels are of a narrower type than float32: which rows stay beside them, and how much memory
// they take.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/layers/weight_matrix.h"
#include "headlight/storage_types.h"
#include "headlight/typed_view.h"
#include "ops/gemm/internal.h"
#include "support/compare.h"
#include "support/isas.h"
#include "support/narrow_types.h"
#include "support/random.h"

namespace headlight::test::weight_matrix_type_test {

using Rows = WeightMatrix::Rows;

using WeightMatrixPanels = EachIsaAndFeature;
HEADLIGHT_ON_EVERY_FEATURE(WeightMatrixPanels);

WeightMatrix with_values(const Tensor<float, 2>& values, NumberType type) {
  WeightMatrix matrix(values.shape());
  matrix.set_type(type);
  std::copy(values.begin(), values.end(), matrix.own().data);
  return matrix;
}

// What a type of 16 bits holds: signs, the least subnormal number, infinities.
template <class Stored>
Tensor<float, 2> values_of(Random& random, const std::array<std::int64_t, 2>& shape) {
  auto values = random.normal_tensor<2>(shape);
  for (float& value : values) value = static_cast<float>(Stored(value));
  const std::array edges = {-0.0f, static_cast<float>(Stored::from_bits(1)), -0x1.02p-14f,
                            std::numeric_limits<float>::infinity()};
  std::copy_n(edges.begin(), std::min<std::int64_t>(4, values.size()), values.data());
  return values;
}

constexpr std::array<std::array<std::int64_t, 2>, 5> kShapes = {{{1, 1}, {3, 5}, {50, 33}, {97, 768}, {70, 1701}}};

TEST_P(WeightMatrixPanels, RowsStayBesidePanelsThatAreRounded) {
  Engine engine(options());
  Random random(7);
  for (const auto& shape : kShapes) {
    auto values = random.normal_tensor<2>(shape);
    values.data()[values.size() - 1] = 0x1.0001p0f;  // of no narrower type
    for (const NumberType type : kNarrow) {
      WeightMatrix matrix = with_values(values, type);
      const PackedMatrix* const packed = matrix.packed(engine, matrix.all());
      ASSERT_NE(packed, nullptr);
      EXPECT_EQ(packed->type(), type);
      EXPECT_EQ(matrix.packed(engine, matrix.all()), packed);
      EXPECT_TRUE(same_bits(matrix.plain(), View<const float, 2>(values)));
      EXPECT_TRUE(same_bits(matrix.shown(), View<const float, 2>(values)));
    }
  }
}

template <class Stored>
void expect_that_rows_go(Engine& engine, NumberType type) {
  Random random(8);
  for (const auto& shape : kShapes) {
    auto values = values_of<Stored>(random, shape);
    WeightMatrix matrix = with_values(values, type);
    ASSERT_NE(matrix.packed(engine, matrix.all()), nullptr);
    EXPECT_EQ(matrix.plain().data, nullptr);
    for (std::int64_t first = 0; first < shape[0]; first += 7) {
      const Rows rows = {first, std::min<std::int64_t>(9, shape[0] - first)};
      Tensor<float, 2> read({rows.count, shape[1]});
      matrix.read(rows, read.data());
      EXPECT_TRUE(same_bits(read.view(), View<float, 2>(&values(first, 0), read.shape())));
    }
    // On to float32 and back.
    matrix.set_type(NumberType::float32);
    EXPECT_NE(matrix.packed(engine, matrix.all()), nullptr);
    EXPECT_EQ(matrix.plain().data, nullptr);
    EXPECT_TRUE(same_bits(matrix.shown(), View<const float, 2>(values)));
  }
  // A NaN might be another one behind a rounding.
  auto values = values_of<Stored>(random, {3, 5});
  values(1, 2) = std::numeric_limits<float>::quiet_NaN();
  WeightMatrix matrix = with_values(values, type);
  (void)matrix.packed(engine, matrix.all());
  EXPECT_NE(matrix.plain().data, nullptr);
}

TEST_P(WeightMatrixPanels, RowsGoWherePanelsHoldThemToTheBit) {
  Engine engine(options());
  expect_that_rows_go<BFloat16>(engine, NumberType::bfloat16);
  expect_that_rows_go<Float16>(engine, NumberType::float16);
}

TEST(WeightMatrixType, RowsThatAreLentStayWhereTheyLie) {
  Engine engine({.threads = 1});
  Random random(9);
  const auto values = random.normal_tensor<2>({30, 17});
  const auto owner = std::make_shared<std::vector<float>>(values.begin(), values.end());
  WeightMatrix matrix(values.shape());
  std::vector<WeightMatrix::Lent> parts = {{{0, 30}, {StorageFormat::float32, owner->data(), 510}, owner}};
  matrix.borrow(std::move(parts));
  for (const NumberType type : kNarrow) {
    matrix.set_type(type);
    ASSERT_EQ(matrix.packed(engine, matrix.all())->type(), type);
    EXPECT_TRUE(matrix.is_borrowed());
    EXPECT_EQ(matrix.plain().data, owner->data());
  }
}

// Numbers of 16 bits in three parts, as a file has query, key and value.
template <class Stored>
void expect_read_where_they_lie(Engine& engine) {
  Random random(10);
  const auto values = values_of<Stored>(random, {30, 17});
  for (const NumberType type : {NumberType::float32, number_type_of<Stored>}) {
    SCOPED_TRACE(name(type));
    WeightMatrix matrix(values.shape()), floats = with_values(values, type);
    matrix.set_type(type);
    std::vector<std::shared_ptr<std::vector<Stored>>> owners;
    std::vector<WeightMatrix::Lent> parts;
    for (const Rows rows : {Rows{0, 8}, Rows{8, 3}, Rows{11, 19}}) {
      const float* const begin = &values(rows.first, 0);
      owners.push_back(std::make_shared<std::vector<Stored>>());
      for (std::int64_t n = 0; n < rows.count * 17; ++n) owners.back()->push_back(Stored(begin[n]));
      parts.push_back(
          {rows, {format_of(number_type_of<Stored>), owners.back()->data(), rows.count * 17}, owners.back()});
    }
    matrix.borrow(parts);
    EXPECT_EQ(matrix.plain().data, nullptr);
    EXPECT_EQ(matrix.table().data, nullptr) << "they lie in three places";
    for (const Rows rows : {Rows{0, 30}, Rows{8, 3}, Rows{5, 20}}) {
      Tensor<float, 2> read({rows.count, 17}), expected({rows.count, 17});
      matrix.read(rows, read.data());
      EXPECT_TRUE(same_bits(read.view(), View<const float, 2>(&values(rows.first, 0), read.shape())));
      ops::unpack_columns(*matrix.packed(engine, rows), 0, rows.count, read.data());
      ops::unpack_columns(*floats.packed(engine, rows), 0, rows.count, expected.data());
      EXPECT_TRUE(same_bits(read, expected));
    }
    EXPECT_TRUE(matrix.is_borrowed());
    EXPECT_EQ(owners[1].use_count(), 3) << "of this test, of its list and of the matrix";
    EXPECT_TRUE(same_bits(matrix.shown(), View<const float, 2>(values)));
    EXPECT_TRUE(same_bits(matrix.own(), View<const float, 2>(values)));

    WeightMatrix table({8, 17});
    table.borrow({parts[0]});
    EXPECT_EQ(table.table().data, owners[0]->data());
    EXPECT_EQ(table.table().type, number_type_of<Stored>);
  }
}

TEST_P(WeightMatrixPanels, RowsOf16BitsAreReadWhereTheyLie) {
  Engine engine(options());
  expect_read_where_they_lie<BFloat16>(engine);
  expect_read_where_they_lie<Float16>(engine);
}

// A model that is saved while it computes.
TEST(WeightMatrixType, TablesOf16BitsAreReadWhileTheyAreShown) {
  Random random(12);
  const auto values = values_of<BFloat16>(random, {30, 17});
  const auto owner = std::make_shared<std::vector<BFloat16>>();
  for (const float value : values) owner->push_back(BFloat16(value));
  for (int round = 0; round < 20; ++round) {
    WeightMatrix matrix(values.shape());
    matrix.borrow({{matrix.all(), {StorageFormat::bfloat16, owner->data(), 510}, owner}});
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 3; ++thread) {
      threads.emplace_back([&] {
        const TypedView<2> table = matrix.table();
        EXPECT_EQ(static_cast<float>(*static_cast<const BFloat16*>(table.data)), values(0, 0));
      });
    }
    threads.emplace_back([&] { EXPECT_TRUE(same_bits(matrix.shown(), View<const float, 2>(values))); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(matrix.table().data, owner->data()) << "though there are rows that were shown";
  }
}

TEST(WeightMatrixType, IsWhatPanelsTake) {
  Engine engine({.threads = 1});
  WeightMatrix matrix({70, 1700});
  const std::size_t bytes = matrix.packed(engine, matrix.all())->bytes();
  matrix.set_type(NumberType::bfloat16);
  EXPECT_EQ(matrix.packed(engine, matrix.all())->bytes(), bytes / 2);
  matrix.set_type(NumberType::float16);
  EXPECT_EQ(matrix.packed(engine, matrix.all())->bytes(), bytes / 2);
  // A quarter, and eight bytes a column.
  matrix.set_type(NumberType::int8);
  EXPECT_EQ(matrix.packed(engine, matrix.all())->bytes(), bytes / 4 + bytes / (1700 * sizeof(float)) * 8);
  // Words of eight numbers, and a scale of two bytes for each 32.
  matrix.set_type(NumberType::int4);
  EXPECT_EQ(matrix.packed(engine, matrix.all())->bytes(), bytes / 1700 * ((1700 + 7) / 8 + (1700 / 32 + 2) / 2));
  EXPECT_GE(bytes, 70 * 1700 * sizeof(float));
}

TEST(WeightMatrixType, OfNoMatrixIsFloat32) {
  WeightMatrix none;
  none.set_type(NumberType::bfloat16);
  EXPECT_EQ(none.type(), NumberType::float32);
}

}  // namespace headlight::test::weight_matrix_type_test
