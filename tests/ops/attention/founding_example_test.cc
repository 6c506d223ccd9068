// The example that headlight began with: five words, two heads of width 4 each, and everything small enough to follow.
#include <cmath>

#include "gtest/gtest.h"
#include "headlight/attention.h"
#include "support/random.h"

namespace headlight::founding_example_test {

// Scores of a size below 8 are rounded some four times, at 2⁻²⁴ of their size each: that much may a share of 1 be
// wrong.
constexpr double kTolerance = 8 * 4 * 0x1p-24;

TEST(FoundingExampleTest, FiveWordsTwoHeads) {
  constexpr std::int64_t kLength = 5;
  constexpr std::int64_t kHeads = 2;
  constexpr std::int64_t kWidth = 4;
  test::Random random(5);
  const auto query = random.normal_tensor<4>({1, kLength, kHeads, kWidth});
  const auto key = random.normal_tensor<4>({1, kLength, kHeads, kWidth});
  const auto value = random.normal_tensor<4>({1, kLength, kHeads, kWidth});
  Tensor<float, 4> out({1, kLength, kHeads, kWidth});
  Tensor<float, 4> weights({1, kHeads, kLength, kLength});

  Engine engine;
  AttentionOptions options;
  options.probabilities.per_head = weights;
  attention(engine, query, key, value, out, options);

  for (std::int64_t h = 0; h < kHeads; ++h) {
    for (std::int64_t i = 0; i < kLength; ++i) {
      // How much word i looks at each word j: the scores …
      double score[kLength];
      double total = 0;
      for (std::int64_t j = 0; j < kLength; ++j) {
        double dot = 0;
        for (std::int64_t d = 0; d < kWidth; ++d) dot += query(0, i, h, d) * key(0, j, h, d);
        score[j] = std::exp(dot / std::sqrt(static_cast<double>(kWidth)));
        total += score[j];
      }
      // … made into shares that add up to 1 …
      double sum = 0;
      for (std::int64_t j = 0; j < kLength; ++j) {
        EXPECT_NEAR(weights(0, h, i, j), score[j] / total, kTolerance);
        sum += weights(0, h, i, j);
      }
      EXPECT_NEAR(sum, 1, kTolerance);
      // … and what it takes from them.
      for (std::int64_t d = 0; d < kWidth; ++d) {
        double mixed = 0;
        for (std::int64_t j = 0; j < kLength; ++j) mixed += score[j] / total * value(0, j, h, d);
        EXPECT_NEAR(out(0, i, h, d), mixed, 4 * kTolerance);
      }
    }
  }
}

}  // namespace headlight::founding_example_test
