// Shapes whose sizes pass 64 bits, as a file or a caller's arithmetic may hand them over: refused in words, or by
// std::bad_alloc where memory was asked for, and never wrapped around into something small.
#include <array>
#include <cmath>
#include <limits>
#include <new>
#include <utility>

#include "baseline/attention_unfused.h"
#include "gtest/gtest.h"
#include "headlight/attention.h"
#include "headlight/attention_backward.h"
#include "headlight/attention_stream.h"
#include "headlight/gemm.h"
#include "headlight/normalization.h"
#include "support/refusal.h"

namespace headlight::hostile_shapes_test {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kHuge = std::int64_t{1} << 40;

TEST(HostileShapes, ViewsTakeThemWithoutWrappingAround) {
  float number = 0;
  const View<const float, 4> view(&number, {kHuge, kHuge, kHuge, 3});
  EXPECT_EQ(view.size(), kMost);
  EXPECT_EQ(view.strides, (View<const float, 4>::Shape{kMost, 3 * kHuge, 3, 1}));
  EXPECT_EQ((View<const float, 3>(&number, {kHuge, kHuge, 0}).size()), 0);
  EXPECT_EQ((View<const float, 3>(&number, {0, kHuge, kHuge}).size()), 0);
  EXPECT_EQ((View<const float, 2>(&number, {std::numeric_limits<std::int64_t>::min(), kMost}).size()), 0);
}

TEST(HostileShapes, TensorsAreNotMade) {
  // 2⁶² floats are 2⁶⁴ bytes, which are 0 in 64 bits.
  EXPECT_THROW((Tensor<float, 1>({std::int64_t{1} << 62})), std::bad_alloc);
  EXPECT_THROW((Tensor<float, 2>({kHuge, kHuge})), std::bad_alloc);
  EXPECT_THROW((Tensor<float, 2>({-1, 4})), std::bad_alloc);
  EXPECT_THROW((Tensor<float, 2>({-2, -2})), std::bad_alloc);
}

TEST(HostileShapes, ATensorThatWasMovedFromShowsNothing) {
  Tensor<float, 2> from({3, 4});
  const float* const memory = from.data();
  Tensor<float, 2> to(std::move(from));
  EXPECT_EQ(to.view().data, memory);
  EXPECT_FALSE(from.view());  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(from.size(), 0);
  from = std::move(to);
  EXPECT_EQ(from.view().data, memory);
  EXPECT_FALSE(to.view());  // NOLINT(bugprone-use-after-move)
}

TEST(HostileShapes, AttentionRefusesThem) {
  Engine engine({.threads = 1});
  std::array<float, 64> memory{};
  const View<const float, 4> good(memory.data(), {1, 1, 1, 8});
  const View<float, 4> out(memory.data() + 32, {1, 1, 1, 8});
  const auto refusal = [&](View<const float, 4> query, View<const float, 4> key, View<const float, 4> value,
                           View<float, 4> to) {
    return test::refusal([&] { attention(engine, query, key, value, to); });
  };
  const View<const float, 4> bad(memory.data(), {kHuge, kHuge, 1, 8});
  EXPECT_NE(refusal(bad, good, good, out).find("query of shape"), std::string::npos);
  EXPECT_NE(refusal(good, bad, good, out).find("key of shape"), std::string::npos);
  EXPECT_NE(refusal(good, good, bad, out).find("value of shape"), std::string::npos);
  EXPECT_NE(refusal(good, good, good, {memory.data(), {kHuge, kHuge, 1, 8}}).find("out"), std::string::npos);
}

// Without elements, or with strides of 0, sizes may be large where no memory is: their product still has an end.
TEST(HostileShapes, AttentionRefusesWorkThat64BitsDoNotCount) {
  Engine engine({.threads = 1});
  std::array<float, 8> memory{};
  const auto refusal = [&](const View<const float, 4>& query, const View<const float, 4>& key) {
    return test::refusal([&] { attention(engine, query, key, key, {memory.data(), query.shape}); });
  };
  const View<const float, 4> empty(memory.data(), {kHuge, 1, kHuge, 0});
  EXPECT_NE(refusal(empty, empty).find("64 bits"), std::string::npos);
  const View<const float, 4> long_one(memory.data(), {1, kMost, 1, 0});
  EXPECT_NE(refusal(long_one, long_one).find("64 bits"), std::string::npos);
  const View<const float, 4> one(memory.data(), {1, 1, 1, 1});
  const View<const float, 4> repeated(memory.data() + 1, {1, std::int64_t{1} << 60, 1, 1}, {0, 0, 0, 1});
  EXPECT_NE(test::refusal([&] {
              attention(engine, one, repeated, repeated, {memory.data() + 4, one.shape});
            }).find("64 bits"),
            std::string::npos);

  const auto asked = [&](const AttentionShape& shape) {
    return test::refusal([&] { static_cast<void>(workspace_bytes(engine, shape)); });
  };
  EXPECT_NE(asked({kHuge, 13, 1, 1 << 20, 1 << 20, 1, 1}).find("64 bits"), std::string::npos);
  EXPECT_NE(asked({1, 1, 1, 1, 1, kHuge, 1}).find("64 bits"), std::string::npos);
  EXPECT_NE(asked({kHuge, 1, 1, kHuge, kHuge, 0, 0}).find("64 bits"), std::string::npos);
}

// 2^30 sequences without a column: no loop goes over them, whatever shape a view has that is not given.
TEST(HostileShapes, AttentionThatWritesNothingCountsNothing) {
  Engine engine({.threads = 1});
  constexpr std::int64_t kMany = std::int64_t{1} << 30;
  const View<float, 4> nothing(nullptr, {kMany, 1, 1, 0});
  const AttentionOptions not_given = {
      .log_sum_exp = {nullptr, {kMany, 1, 1}},
      .probabilities = {.per_head = {nullptr, {kMany, 1, 1, 1}}, .averaged = {nullptr, {kMany, 1, 1}}}};
  attention(engine, nothing, nothing, nothing, nothing, not_given);
  baseline::attention_unfused(engine, nothing, nothing, nothing, nothing, not_given);
  EXPECT_EQ(engine.scratch_bytes(), 0);
}

// Scores of queries without a column are 0, whatever the scratch memory held before: each row is the mean of the
// values.
TEST(HostileShapes, QueriesWithoutColumnsScoreNothing) {
  constexpr std::int64_t kKeys = 100;
  Tensor<float, 4> value({1, kKeys, 1, 3}), key({1, kKeys, 1, 0}), nan({1, kKeys, 1, 8});
  for (float& number : value) number = 2.0f;
  for (float& number : nan) number = std::numeric_limits<float>::quiet_NaN();
  for (const Isa isa : available_isas()) {
    Engine engine({.threads = 1, .isa = isa});
    for (std::int64_t rows = 1; rows <= 26; ++rows) {
      const View<const float, 4> dirty(nan.data(), {1, rows, 1, 8});
      Tensor<float, 4> out({1, rows, 1, 3});
      attention(engine, dirty, nan, value, out);
      ASSERT_TRUE(std::isnan(out(0, 0, 0, 0)));
      attention(engine, Tensor<float, 4>({1, rows, 1, 0}), key, value, out, {.scale = 1.0f, .softcap = 3.0f});
      for (const float number : out) ASSERT_NEAR(number, 2.0f, 1e-5f) << name(isa) << ", " << rows << " rows";
    }
  }
}

// Rows that have no columns need no memory, and their strides, whatever they are, are not multiplied: where a row has
// no columns of values there are a log-sum-exp and gradients all the same.
TEST(HostileShapes, RowsWithoutColumnsLieNowhere) {
  Engine engine({.threads = 1});
  constexpr std::int64_t kStride = std::int64_t{1} << 62;
  for (const std::int64_t head_dim : {0, 3}) {
    for (const std::int64_t value_dim : {0, 3}) {
      for (const std::int64_t length : {2, 40, 600}) {
        const auto view = [&](Tensor<float, 4>& tensor) {
          View<float, 4> shown = tensor;
          if (tensor.size() == 0) shown = {nullptr, tensor.shape(), {kStride, kStride, kStride, 1}};
          return shown;
        };
        Tensor<float, 4> query({1, length, 2, head_dim}), key({1, length, 2, head_dim});
        Tensor<float, 4> value({1, length, 2, value_dim}), out({1, length, 2, value_dim});
        Tensor<float, 3> rows({1, 2, length}), streamed({1, 2, length});
        AttentionOptions options{.causal = Causal::top_left};
        AttentionStream stream(engine, view(query), 2, value_dim, options);
        stream.append(view(key), view(value));
        stream.finish(view(out), streamed);
        options.log_sum_exp = rows;
        attention(engine, view(query), view(key), view(value), view(out), options);
        for (std::int64_t i = 0; i < length; ++i) {  // row i sees i + 1 keys, whose scores are 0
          EXPECT_NEAR(rows(0, 1, i), std::log(static_cast<double>(i + 1)), 1e-6 * static_cast<double>(i + 1));
          EXPECT_EQ(rows(0, 1, i), streamed(0, 1, i));
        }
        options.log_sum_exp = {};
        const AttentionGradients gradients{view(query), view(key), view(value)};
        Tensor<float, 4> out_gradient({1, length, 2, value_dim});
        Tensor<float, 4> query_again({1, length, 2, head_dim}), key_again({1, length, 2, head_dim});
        Tensor<float, 4> value_again({1, length, 2, value_dim});
        attention_backward(engine, view(query_again), view(key_again), view(value_again), view(out), rows,
                           view(out_gradient), gradients, options);
      }
    }
  }
}

// Rows without end of an empty batch are no work to plan: it took for ever.
TEST(HostileShapes, AnEmptyBatchIsPlannedAtOnce) {
  const Engine engine({.threads = 3});
  constexpr std::int64_t kEndless = std::int64_t{1} << 38;
  const AttentionShape shape{
      .batch = 0, .query_length = kEndless, .key_length = kEndless, .head_dim = 8, .value_dim = 8};
  EXPECT_NO_THROW(static_cast<void>(workspace_bytes(engine, shape)));
}

TEST(HostileShapes, GemmRefusesThem) {
  Engine engine({.threads = 1});
  std::array<float, 64> memory{};
  const View<const float, 2> good(memory.data(), {4, 4});
  const View<float, 2> c(memory.data() + 32, {4, 4});
  const View<const float, 2> bad(memory.data(), {kHuge, kHuge});
  EXPECT_NE(test::refusal([&] { gemm(engine, bad, good, c); }).find("a of shape"), std::string::npos);
  EXPECT_NE(test::refusal([&] { gemm(engine, good, bad, c); }).find("b of shape"), std::string::npos);
  EXPECT_NE(test::refusal([&] {
              gemm(engine, good, good, {memory.data(), {kHuge, kHuge}});
            }).find("c of shape"),
            std::string::npos);
  EXPECT_NE(test::refusal([&] { PackedMatrix(engine, bad); }).find("b of shape"), std::string::npos);
}

// The stride from a single row to the next is taken by no index, and may be any.
TEST(HostileShapes, ASingleRowHasAnyStride) {
  Engine engine({.threads = 1});
  const float one = 2;
  const View<const float, 2> row(&one, {1, 1}, {kMost, 1});
  for (const NumberType type : {NumberType::float32, NumberType::bfloat16}) {
    float product = 0;
    gemm(engine, row, PackedMatrix(engine, row, Transpose::no, type), {&product, {1, 1}});
    EXPECT_EQ(product, 4.0f);
  }
  // A product of one column is computed as one of a row.
  const std::array<float, 5> across = {1, 2, 3, 4, 5};
  std::array<float, 5> column{};
  gemm(engine, View<const float, 2>(across.data(), {1, 5}, {kMost / 2, 1}), row, View<float, 2>(column.data(), {5, 1}),
       {.transpose_a = Transpose::yes});
  EXPECT_EQ(column[4], 10.0f);
  // Rows without elements, of either operand.
  const View<const float, 2> nothing(nullptr, {5, 0}, {kMost / 2, 1}), none(nullptr, {0, 1});
  gemm(engine, nothing, none, View<float, 2>(column.data(), {5, 1}));
  EXPECT_EQ(column[4], 0.0f);
  gemm(engine, View<const float, 2>(nullptr, {1, 0}), nothing, View<float, 2>(column.data(), {1, 5}),
       {.transpose_b = Transpose::yes});
}

// Also where it lies between the rows of another: whether they share a byte is asked of strides that some index takes.
TEST(HostileShapes, ASingleRowLiesBetweenOthers) {
  Engine engine({.threads = 1});
  std::array<float, 12> memory{};
  const View<const float, 2> row(memory.data() + 4, {1, 4}, {kMost, 1});
  const View<float, 2> rows(memory.data(), {2, 4}, {8, 1});
  const std::array<std::int64_t, 2> offsets = {0, 2};
  EXPECT_EQ(test::refusal([&] { mean_pool_backward(engine, rows, offsets, row, rows, false); }), "");
}

// So may that from a single key, by every route: asking for the memory ahead of it passed 64 bits.
TEST(HostileShapes, ASingleKeyHasAnyStride) {
  Engine engine({.threads = 1});
  constexpr std::int64_t kWidth = 4, kRows = 40;
  const Tensor<float, 4> query({1, kRows, 1, kWidth}), key({1, 1, 1, kWidth});
  const View<const float, 4> distant(key.data(), key.shape(), {kMost, kMost, kMost, 1});
  Tensor<float, 4> out(query.shape()), query_gradient(query.shape()), key_gradient(key.shape());
  Tensor<float, 3> log_sum_exp({1, 1, kRows});
  for (const std::int64_t rows : {std::int64_t{1}, kRows}) {
    const View<const float, 4> some(query.data(), {1, rows, 1, kWidth});
    const View<float, 4> to(out.data(), some.shape);
    const View<float, 3> sums(log_sum_exp.data(), {1, 1, rows});
    EXPECT_NO_THROW(attention(engine, some, distant, distant, to, {.log_sum_exp = sums}));
    EXPECT_NO_THROW(attention_backward(engine, some, distant, distant, to, sums, some,
                                       {.query = {query_gradient.data(), some.shape},
                                        .key = {key_gradient.data(), key.shape(), {kMost, kMost, kMost, 1}}}));
  }
}

// What has no elements may have any number of rows, or of columns.
TEST(HostileShapes, NothingIsPacked) {
  Engine engine({.threads = 1});
  const PackedMatrix rows(engine, {nullptr, {kMost, 0}});
  EXPECT_EQ(rows.rows(), kMost);
  const PackedMatrix columns(engine, {nullptr, {0, kMost}});
  EXPECT_EQ(columns.columns(), kMost);
  EXPECT_EQ(rows.bytes() + columns.bytes(), 0u);
}

TEST(HostileShapes, SoftmaxRefusesThem) {
  Engine engine({.threads = 1});
  std::array<float, 8> memory{};
  const View<const float, 2> bad(memory.data(), {kHuge, kHuge});
  EXPECT_NE(test::refusal([&] {
              softmax(engine, bad, {memory.data(), {2, 2}});
            }).find("x of shape"),
            std::string::npos);
  const View<const float, 2> last(memory.data(), {2, 1}, {kMost, 1});  // whose second row begins at the last number
  EXPECT_NE(test::refusal([&] {
              softmax(engine, last, {memory.data(), {2, 1}});
            }).find("more bytes than 64 bits"),
            std::string::npos);
}

}  // namespace headlight::hostile_shapes_test
