// Matrix products against their float64 twin.
#include "headlight/gemm.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "support/compare.h"
#include "support/gemm_case.h"
#include "support/isas.h"
#include "support/quick.h"

namespace headlight::test::gemm_test {

using GemmTest = EachIsa;
HEADLIGHT_ON_EVERY_ISA(GemmTest);

void check(Engine& engine, Random& random, const GemmCase& made) {
  SCOPED_TRACE(made.text());
  GemmOperands operands(random, made);
  const GemmTruth truth(operands);
  const bool packed = random.once_in(2);
  if (packed) {
    const PackedMatrix b(engine, operands.b.view(), made.transpose_b);
    EXPECT_EQ(b.rows(), made.k);
    EXPECT_EQ(b.columns(), made.n);
    gemm(engine, operands.a.view(), b, operands.c.view(), operands.options);
  } else {
    gemm(engine, operands.a.view(), operands.b.view(), operands.c.view(), operands.options);
  }
  EXPECT_TRUE(agrees(operands.c.view(), truth)) << (packed ? "packed" : "not packed");
  EXPECT_TRUE(gaps_are_untouched(operands.c));
}

TEST_P(GemmTest, AgreesWithTheTwinOnRaggedSizes) {
  Engine engine(options());
  Random random(1);
  for (int repeat = 0; repeat < count(1200, 150); ++repeat) {
    check(engine, random, GemmCase::random(random, kGemmSizes));
    if (HasFailure()) return;
  }
}

// Tiles of every height with panels of every width, on a short K.
TEST_P(GemmTest, AgreesWithTheTwinForEveryTile) {
  Engine engine(options());
  Random random(2);
  for (std::int64_t m = 1; m <= 26; ++m) {
    for (std::int64_t n = 1; n <= count(70, 20); ++n) {
      GemmCase made = GemmCase::random(random, {5});
      made.m = m;
      made.n = n;
      check(engine, random, made);
      if (HasFailure()) return;
    }
  }
}

TEST_P(GemmTest, AgreesWithTheTwinOverSeveralBlocksOfK) {
  Engine engine(options(2));
  Random random(3);
  for (const std::int64_t k : {767, 768, 769, 800, 1537, 1600}) {
    for (const std::int64_t m : {1, 3, 14, 30}) {
      for (const std::int64_t n : {1, 40, 133}) {
        GemmCase made = GemmCase::random(random, {1});
        made.m = m;
        made.n = n;
        made.k = k;
        check(engine, random, made);
        if (HasFailure()) return;
      }
    }
  }
}

// A batch is its products one by one, whatever the strides between them; a stride of 0 repeats an operand.
TEST_P(GemmTest, MultipliesBatches) {
  Engine engine(options(2));
  Random random(4);
  for (int repeat = 0; repeat < count(40, 10); ++repeat) {
    const std::int64_t batch = random.integer(0, 5);
    const std::int64_t m = random.integer(0, 40);
    const std::int64_t n = random.integer(0, 70);
    const std::int64_t k = random.integer(0, 50);
    Matrix a(random, m, k, 1, batch), b(random, k, n, 2, batch), c(random, m, n, 3, batch),
        residual(random, m, n, 0, batch);
    View<const float, 3> a_views = a.views(), b_views = b.views();
    if (random.once_in(3)) a_views.strides[0] = 0;
    if (random.once_in(3)) b_views.strides[0] = 0;
    GemmOptions options{.alpha = 0.5f, .beta = 2.0f, .activation = Activation::relu};
    Matrix expected = c;
    for (std::int64_t item = 0; item < batch; ++item) {
      options.residual = residual.view(item);
      gemm(engine, {a_views.data + item * a_views.strides[0], {m, k}, {a_views.strides[1], 1}},
           {b_views.data + item * b_views.strides[0], {k, n}, {b_views.strides[1], 1}}, expected.view(item), options);
    }
    options.residual = {};
    options.batched_residual = residual.views();
    gemm(engine, a_views, b_views, c.views(), options);
    EXPECT_TRUE(same_bits(c.views(), expected.views()));
  }
}

TEST_P(GemmTest, EmptyProducts) {
  Engine engine(options());
  float c[4] = {1, 2, 3, 4};
  // K = 0: nothing is summed, what remains is β · C + bias; A and B have no memory.
  gemm(engine, View<const float, 2>(nullptr, {2, 0}), View<const float, 2>(nullptr, {0, 2}), View<float, 2>(c, {2, 2}),
       {.beta = 2.0f});
  EXPECT_EQ(c[0], 2.0f);
  EXPECT_EQ(c[3], 8.0f);
  gemm(engine, View<const float, 2>(nullptr, {2, 0}), PackedMatrix(engine, View<const float, 2>(nullptr, {0, 2})),
       View<float, 2>(c, {2, 2}));
  EXPECT_EQ(c[0], 0.0f);
  EXPECT_EQ(c[3], 0.0f);
  gemm(engine, View<const float, 2>(nullptr, {0, 3}), View<const float, 2>(nullptr, {3, 0}),
       View<float, 2>(nullptr, {0, 0}));
}

// With β = 0 what C held is not looked at; otherwise it counts.
TEST_P(GemmTest, BetaOfZeroNeverReadsC) {
  Engine engine(options());
  const float a[2] = {1, 2}, b[2] = {3, 4};
  float c = std::nanf("");
  gemm(engine, View<const float, 2>(a, {1, 2}), View<const float, 2>(b, {2, 1}), View<float, 2>(&c, {1, 1}));
  EXPECT_EQ(c, 11.0f);
  c = std::nanf("");
  gemm(engine, View<const float, 2>(a, {1, 2}), View<const float, 2>(b, {2, 1}), View<float, 2>(&c, {1, 1}),
       {.beta = 1.0f});
  EXPECT_TRUE(std::isnan(c));
}

// A NaN or an infinity reaches exactly the row or column it belongs to, through every activation and with α = 0 too.
TEST_P(GemmTest, NotANumberPropagates) {
  Engine engine(options());
  Random random(5);
  for (const Activation activation :
       {Activation::none, Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::silu}) {
    for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
      for (const float alpha : {0.0f, 1.0f}) {
        Matrix a(random, 14, 9, 0), b(random, 9, 35, 0), c(random, 14, 35, 0);
        a.view()(3, 4) = bad;
        b.view()(4, 33) = std::nanf("");
        gemm(engine, a.view(), b.view(), c.view(), {.alpha = alpha, .activation = activation});
        for (std::int64_t i = 0; i < 14; ++i) {
          for (std::int64_t j = 0; j < 35; ++j) {
            if (j == 33 || (i == 3 && (alpha == 0 || std::isnan(bad)))) {
              EXPECT_TRUE(std::isnan(c.view()(i, j))) << i << ", " << j;
            } else if (i != 3) {
              EXPECT_TRUE(std::isfinite(c.view()(i, j))) << i << ", " << j;
            } else if (activation == Activation::none) {
              EXPECT_TRUE(std::isinf(c.view()(i, j))) << i << ", " << j;
            }
          }
        }
      }
    }
  }
}

// One that is too big to compute twice: C · t = A · (B · t) for a random t, with the rounding of C · t allowed.
TEST_P(GemmTest, BigProductsAgainstAVector) {
  Engine engine(options(2));
  Random random(6);
  const std::int64_t m = count(391, 60), n = count(517, 90), k = count(1801, 300);
  Matrix a(random, m, k, 0), b(random, k, n, 0), c(random, m, n, 0);
  gemm(engine, a.view(), b.view(), c.view());
  std::vector<double> t(static_cast<std::size_t>(n)), b_t(static_cast<std::size_t>(k));
  for (double& element : t) element = static_cast<double>(random.uniform());
  double t_norm = 0;
  for (const double element : t) t_norm += std::abs(element);
  for (std::int64_t row = 0; row < k; ++row) {
    for (std::int64_t j = 0; j < n; ++j) {
      b_t[static_cast<std::size_t>(row)] += static_cast<double>(b.view()(row, j)) * t[static_cast<std::size_t>(j)];
    }
  }
  for (std::int64_t i = 0; i < m; ++i) {
    double left = 0, right = 0, a_norm = 0;
    for (std::int64_t j = 0; j < n; ++j) left += static_cast<double>(c.view()(i, j)) * t[static_cast<std::size_t>(j)];
    for (std::int64_t row = 0; row < k; ++row) {
      right += static_cast<double>(a.view()(i, row)) * b_t[static_cast<std::size_t>(row)];
      a_norm += std::abs(static_cast<double>(a.view()(i, row)));
    }
    // |B| ≤ 1, so each element of C errs by at most K · u · Σ|a|.
    ASSERT_NEAR(left, right, static_cast<double>(k) * 0x1p-24 * a_norm * t_norm) << "row " << i;
  }
}

}  // namespace headlight::test::gemm_test
