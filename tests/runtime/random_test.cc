#include "runtime/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/philox.h"

namespace headlight::runtime::random_test {

using Words = std::array<std::uint32_t, 4>;

// The known answers that the authors publish with Random123 (kat_vectors).
TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, KeyIsTheSeedsWordsLowFirst) {
  EXPECT_EQ(philox_key(0x0123456789abcdefULL), (std::array<std::uint32_t, 2>{0x89abcdef, 0x01234567}));
}

TEST(FillUniform, IsTheDocumentedFunctionOfThePlace) {
  std::vector<float> values(1003);
  fill_uniform(values, -2.0F, 6.0F, 77, 5);
  for (std::size_t place = 0; place < values.size(); ++place) {
    const Words words = philox4x32({static_cast<std::uint32_t>(place / 4), 0, 0xffffffff, 5}, {77, 0});
    const double expected = -2.0 + 8.0 * std::floor(words[place % 4] / 256.0) / 16777216.0;
    EXPECT_NEAR(values[place], expected, 1e-6);
  }
}

TEST(FillUniform, SizeDoesNotMatterSeedAndStreamDo) {
  std::vector<float> whole(100), part(37), other_seed(100), other_stream(100);
  fill_uniform(whole, 0, 1, 1, 0);
  fill_uniform(part, 0, 1, 1, 0);
  fill_uniform(other_seed, 0, 1, 1ULL << 32, 0);
  fill_uniform(other_stream, 0, 1, 1, 1);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin()));
  EXPECT_NE(whole, other_seed);
  EXPECT_NE(whole, other_stream);
  fill_uniform({}, 0, 1, 1, 0);
}

struct Moments {
  double mean = 0, variance = 0, skewness = 0, kurtosis = 0, largest = 0;
};

Moments moments_of(std::span<const float> values) {
  Moments moments;
  const auto count = static_cast<double>(values.size());
  for (const float value : values) moments.mean += value / count;
  for (const float value : values) {
    const double d = value - moments.mean;
    moments.variance += d * d / count;
    moments.skewness += d * d * d / count;
    moments.kurtosis += d * d * d * d / count;
    moments.largest = std::max(moments.largest, std::abs(d));
  }
  moments.skewness /= std::pow(moments.variance, 1.5);
  moments.kurtosis /= moments.variance * moments.variance;
  return moments;
}

// Bounds: five standard errors of each moment's estimate from n values (fixed seeds: they cannot fail by chance later).
TEST(FillUniform, HasTheMomentsOfTheUniformDistribution) {
  constexpr double kCount = 1 << 18;
  std::vector<float> values(1 << 18);
  fill_uniform(values, -1, 1, 2024, 3);
  const Moments moments = moments_of(values);
  EXPECT_NEAR(moments.mean, 0, 5 * std::sqrt(1.0 / 3 / kCount));
  EXPECT_NEAR(moments.variance, 1.0 / 3, 5 * std::sqrt((1.0 / 5 - 1.0 / 9) / kCount));
  EXPECT_NEAR(moments.kurtosis, 1.8, 5 * std::sqrt(1.32 / kCount));
  EXPECT_LE(moments.largest, 1.01);
}

TEST(FillNormal, HasTheMomentsOfTheNormalDistribution) {
  constexpr double kCount = 1 << 18;
  std::vector<float> values(1 << 18);
  fill_normal(values, 3.0F, 0.5F, 2024, 3);
  const Moments moments = moments_of(values);
  EXPECT_NEAR(moments.mean, 3.0, 5 * 0.5 / std::sqrt(kCount));
  EXPECT_NEAR(moments.variance, 0.25, 5 * 0.25 * std::sqrt(2 / kCount));
  EXPECT_NEAR(moments.skewness, 0, 5 * std::sqrt(6 / kCount));
  EXPECT_NEAR(moments.kurtosis, 3, 5 * std::sqrt(24 / kCount));
  EXPECT_LE(moments.largest, 0.5 * 6.67);
  EXPECT_GE(moments.largest, 0.5 * 4);
}

TEST(FillNormal, SizeDoesNotMatter) {
  std::vector<float> whole(10), part(3);
  fill_normal(whole, 0, 1, 9, 0);
  fill_normal(part, 0, 1, 9, 0);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin()));
}

}  // namespace headlight::runtime::random_test
