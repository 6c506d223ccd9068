// The small twins at points whose values anybody can check.
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "reference/activation.h"
#include "reference/embedding.h"
#include "reference/head_rows.h"
#include "reference/heads.h"
#include "reference/linear.h"
#include "reference/normalization.h"

namespace headlight::twins_test {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
// A few roundings at 2⁻⁵³ of numbers of size 1.
constexpr double kTolerance = 0x1p-50;

using Row = std::vector<double>;

View<const double, 2> rows(const Row& numbers, std::int64_t count = 1) {
  return {numbers.data(), {count, static_cast<std::int64_t>(numbers.size()) / count}};
}

Row softmax_of(const Row& scores) {
  Row shares(scores.size());
  reference::softmax<double>(rows(scores), {shares.data(), {1, static_cast<std::int64_t>(shares.size())}});
  return shares;
}

TEST(ReferenceTest, SoftmaxSharesOutOne) {
  EXPECT_EQ(softmax_of({7, 7}), (Row{0.5, 0.5}));
  EXPECT_NEAR(softmax_of({0, std::log(3.0)})[1], 0.75, kTolerance);
  EXPECT_EQ(softmax_of({1000, -1000}), (Row{1, 0}));
}

TEST(ReferenceTest, SoftmaxOfInfinitiesAndNaN) {
  EXPECT_EQ(softmax_of({-kInfinity, -kInfinity}), (Row{0, 0}));
  EXPECT_EQ(softmax_of({-kInfinity, 3}), (Row{0, 1}));
  for (const double poison : {kInfinity, kNaN}) {
    for (const double share : softmax_of({poison, 1})) EXPECT_TRUE(std::isnan(share));
  }
}

TEST(ReferenceTest, LinearIsRowsTimesColumnsPlusBias) {
  const Row x{1, 2};
  const Row weight{3, 4, 5, 6, 7, 8};  // [3, 2]
  const std::array<double, 3> bias{100, 200, 300};
  std::array<double, 3> y{};
  reference::linear<double>(rows(x), rows(weight, 3), {bias.data(), {3}}, {y.data(), {1, 3}});
  EXPECT_EQ(y, (std::array<double, 3>{111, 217, 323}));
}

TEST(ReferenceTest, LayerNormCentresAndScales) {
  const Row x{1, 3};
  const Row residual{1, 1};
  const std::array<double, 2> weight{10, 10};
  const std::array<double, 2> bias{5, 6};
  std::array<double, 2> y{};
  const View<double, 2> out(y.data(), {1, 2});
  reference::layer_norm<double>(rows(x), {}, {}, {}, 0.0, out);
  EXPECT_EQ(y, (std::array<double, 2>{-1, 1}));
  reference::layer_norm<double>(rows(x), rows(residual), {weight.data(), {2}}, {bias.data(), {2}}, 3.0, out);
  EXPECT_EQ(y, (std::array<double, 2>{0, 11}));  // deviation 1, sqrt(1 + 3) = 2
}

TEST(ReferenceTest, ActivationsAtKnownPoints) {
  EXPECT_EQ(reference::relu(-2.0), 0);
  EXPECT_EQ(reference::relu(2.0), 2);
  EXPECT_NEAR(reference::gelu(1.0), 0.84134474606854293, kTolerance);  // Φ(1)
  EXPECT_NEAR(reference::gelu_tanh(1.0), 0.84119199060827676, kTolerance);
  EXPECT_NEAR(reference::silu(1.0), 0.73105857863000490, kTolerance);  // σ(1)
  for (const Activation one :
       {Activation::none, Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::silu}) {
    EXPECT_EQ(reference::activate(one, 0.0), 0);
    EXPECT_EQ(reference::activate(one, kInfinity), kInfinity);
    EXPECT_EQ(reference::activate(one, -kInfinity), one == Activation::none ? -kInfinity : 0);
    EXPECT_TRUE(std::isnan(reference::activate(one, kNaN)));
  }
}

TEST(ReferenceTest, EmbedAddsRowsOfTables) {
  const Row words{1, 2, 10, 20};
  const Row positions{100, 200, 300, 400};
  const std::array<std::int64_t, 2> ids{1, 0};
  const std::array<std::int64_t, 2> places{0, 1};
  const std::array<reference::Embedding<double>, 2> tables{{{rows(words, 2), ids}, {rows(positions, 2), places}}};
  std::array<double, 4> out{};
  reference::embed<double>(tables, {out.data(), {2, 2}});
  EXPECT_EQ(out, (std::array<double, 4>{110, 220, 301, 402}));
}

TEST(ReferenceTest, MeanPoolAveragesEachSequence) {
  const Row x{3, 0, 3, 8, 5, 12};
  const std::array<std::int64_t, 4> offsets{0, 2, 2, 3};
  std::array<double, 6> out{};
  const View<double, 2> view(out.data(), {3, 2});
  reference::mean_pool<double>(rows(x, 3), offsets, view, false);
  EXPECT_EQ(out, (std::array<double, 6>{3, 4, 0, 0, 5, 12}));
  reference::mean_pool<double>(rows(x, 3), offsets, view, true);
  EXPECT_EQ(out, (std::array<double, 6>{3.0 / 5, 4.0 / 5, 0, 0, 5.0 / 13, 12.0 / 13}));
}

TEST(ReferenceTest, WeightRowsSumReachAndPeak) {
  const std::array<double, 4> p{0.25, 0.5, 0, 0.25};
  const reference::WeightRow row = reference::weight_row({p.data(), {4}}, 3);
  EXPECT_EQ(row.sum, 1);
  EXPECT_EQ(row.distance, 0.75 + 1);
  EXPECT_EQ(row.least, 0);
  EXPECT_EQ(row.largest, 0.5);
  EXPECT_EQ(row.peak, 1);
  const std::array<double, 3> even{0.4, 0.4 * (1 - 0x1p-21), -0.2};
  EXPECT_EQ(reference::weight_row({even.data(), {3}}, 0).peak, -1);
  EXPECT_EQ(reference::weight_row({even.data(), {3}}, 0).least, -0.2);
}

// Two ways to write the unbiased HSIC: products of U-centred kernels are n (n − 3) times it.
TEST(ReferenceTest, UCentredKernelsMultiplyToHsic) {
  const Row x{1, 2, -1, 0, 3, 1, 0.5, -2, 4, 4}, y{2, 0, 1, 5, -3};
  const Tensor<double, 2> k = reference::linear_kernel(rows(x, 5)), l = reference::linear_kernel(rows(y, 5));
  const Tensor<double, 2> a = reference::u_centred(k), b = reference::u_centred(l);
  double products = 0;
  for (std::int64_t i = 0; i < 25; ++i) products += a.data()[i] * b.data()[i];
  EXPECT_NEAR(products / (5 * 2), reference::hsic1(k, l), 1e-12);
  EXPECT_NEAR(a(0, 1) + a(0, 2) + a(0, 3) + a(0, 4), 0, 1e-12);
  EXPECT_EQ(a(2, 2), 0);
  EXPECT_EQ(reference::mean_row(rows(x, 5))(1), (2 + 0 + 1 - 2 + 4) / 5.0);
}

}  // namespace headlight::twins_test
