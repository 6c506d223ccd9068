#include <vector>

#include "headlight/normalization.h"
#include "reference/embedding.h"
#include "support/guarded_rows.h"
#include "support/isas.h"
#include "support/quick.h"

namespace headlight::test::pooling_test {

using PoolingTest = EachIsa;
HEADLIGHT_ON_EVERY_ISA(PoolingTest);

TEST_P(PoolingTest, AgreesWithTheTwinOnRaggedSequences) {
  Engine engine(options());
  Random random(1);
  const std::vector<std::int64_t> offsets = {0, 1, 1, 4, 20, 53};  // the second is empty
  for (const std::int64_t columns : kRowLengths) {
    for (const bool l2_normalize : {false, true}) {
      for (const Against side : kBothSides) {
        SCOPED_TRACE(testing::Message() << columns << " columns, l2_normalize " << l2_normalize);
        GuardedRows x(53, columns, random.integer(0, 3), side);
        x.fill(random);
        const GuardedRows out(5, columns, random.integer(0, 3), side);
        mean_pool(engine, x.const_view(), offsets, out.view(), l2_normalize);
        Tensor<double, 2> truth({5, columns});
        Tensor<float, 2> plain({5, columns});
        const Tensor<double, 2> x64 = x.to<double>();
        reference::mean_pool<double>(x64.view(), offsets, truth.view(), l2_normalize);
        reference::mean_pool<float>(x.const_view(), offsets, plain.view(), l2_normalize);
        EXPECT_TRUE(at_most_twice_the_plain_error(out.view(), plain.view(), truth.view()));
        EXPECT_TRUE(out.gaps_are_untouched());
      }
    }
  }
}

// A row of zeros is divided by 1e-12, not by 0; NaN reaches the whole of its own row and no other.
TEST_P(PoolingTest, NormalizesZerosAndLetsNaNPass) {
  Engine engine(options());
  const std::vector<std::int64_t> offsets = {0, 2, 3};
  Tensor<float, 2> x({3, 37});
  x(1, 36) = std::nanf("");
  Tensor<float, 2> out({2, 37});
  mean_pool(engine, x.view(), offsets, out.view(), true);
  for (std::int64_t e = 0; e < 37; ++e) {
    EXPECT_TRUE(std::isnan(out(0, e)));
    EXPECT_EQ(out(1, e), 0.0f);
  }
}

// Whose stride leads nowhere, and is not multiplied for a sequence without rows.
TEST_P(PoolingTest, TakesAnyStrideOfASingleRow) {
  Engine engine(options());
  const std::vector<std::int64_t> offsets = {0, 1, 1};
  Tensor<float, 1> row({3}), gradient({3});
  std::fill_n(row.data(), 3, 2.0f);
  constexpr std::int64_t kFar = std::int64_t{1} << 60;
  const View<float, 2> x(row.data(), {1, 3}, {kFar, 1});
  Tensor<float, 2> out({2, 3});
  mean_pool(engine, x, offsets, out.view(), false);
  EXPECT_EQ(out(0, 2), 2.0f);
  EXPECT_EQ(out(1, 2), 0.0f);
  mean_pool_backward(engine, x, offsets, out.view(), View<float, 2>(gradient.data(), {1, 3}, {kFar, 1}), false);
  EXPECT_EQ(gradient(2), 2.0f);
}

TEST_P(PoolingTest, GivesTheSameBitsOnAnyNumberOfThreadsAndAlone) {
  Random random(2);
  const Tensor<float, 2> x = random.normal_tensor<2>({900, 384});
  const std::vector<std::int64_t> offsets = {0, 100, 101, 350, 800, 900};
  Tensor<float, 2> once({5, 384});
  Engine one(options(1));
  mean_pool(one, x.view(), offsets, once.view(), true);
  for (const int threads : more_threads()) {
    Engine engine(options(threads));
    Tensor<float, 2> out({5, 384});
    mean_pool(engine, x.view(), offsets, out.view(), true);
    EXPECT_TRUE(same_bits(out.view(), once.view())) << threads << " threads";
  }
  Tensor<float, 2> alone({1, 384});
  const std::vector<std::int64_t> whole = {0, 249};
  mean_pool(one, {x.data() + 101 * 384, {249, 384}}, whole, alone.view(), true);
  EXPECT_TRUE(same_bits(alone.view(), View<float, 2>(once.data() + 2 * 384, {1, 384})));
}

TEST(PoolingArguments, AreNamedWhenTheyAreWrong) {
  Engine engine;
  Tensor<float, 2> x({4, 6});
  Tensor<float, 2> out({2, 6});
  const auto with = [&](std::vector<std::int64_t> offsets) {
    return refusal([&] { mean_pool(engine, x.view(), offsets, out.view(), false); });
  };
  EXPECT_EQ(with({}), "mean_pool: offsets is empty, expected [n + 1] entries from 0 to N");
  EXPECT_EQ(with({1, 2, 4}), "mean_pool: offsets[0] is 1, expected 0");
  EXPECT_EQ(with({0, 3, 2}), "mean_pool: offsets[2] is 2, less than the 3 before it");
  EXPECT_EQ(with({0, 2, 5}), "mean_pool: offsets ends with 5, expected N = 4");
  EXPECT_EQ(with({0, 4}), "mean_pool: out has shape [2, 6], expected [1, 6] ([n, E])");
  std::vector<std::int64_t> offsets = {0, 3, 4};
  const View<float, 2> over_offsets(reinterpret_cast<float*>(offsets.data() + 2), {2, 1});
  EXPECT_EQ(refusal([&] {
              mean_pool(engine, {x.data(), {4, 1}}, offsets, over_offsets, false);
            }),
            "mean_pool: out overlaps offsets in memory");
}

}  // namespace headlight::test::pooling_test
