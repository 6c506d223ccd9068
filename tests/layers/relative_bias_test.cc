// Which row of its table a relative bias takes for a distance.
#include "layers/network/relative_bias.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

namespace headlight::test::relative_bias_test {

// Those of MPNetEncoder.relative_position_bucket() of Transformers, for keys in front of the query and behind it.
TEST(RelativeBias, BucketsAreThoseOfTransformers) {
  const layers::DistanceBuckets buckets({.buckets = 32, .max_distance = 128});
  constexpr std::pair<std::int64_t, std::int64_t> kBuckets[] = {
      {1, 1},   {7, 7},   {8, 8},   {11, 8},  {12, 9},  {15, 9},  {16, 10}, {22, 10},  {23, 11},  {31, 11},
      {32, 12}, {45, 12}, {46, 13}, {63, 13}, {64, 14}, {90, 14}, {91, 15}, {127, 15}, {128, 15}, {1000000, 15},
  };
  EXPECT_EQ(buckets.of(0), 0);
  for (const auto& [distance, bucket] : kBuckets) {
    EXPECT_EQ(buckets.of(-distance), bucket) << distance;
    EXPECT_EQ(buckets.of(distance), 16 + bucket) << distance;
  }
}

TEST(RelativeBias, BucketsAscendToTheLast) {
  for (const std::int64_t buckets : {4, 6, 10, 16, 64}) {
    for (const std::int64_t most : {buckets / 4 + 1, buckets, std::int64_t{300}}) {
      const layers::DistanceBuckets found({.buckets = buckets, .max_distance = most});
      std::int64_t before = 0;
      for (std::int64_t distance = 1; distance < most + 5; ++distance) {
        const std::int64_t bucket = found.of(-distance);
        EXPECT_GE(bucket, before);
        EXPECT_LT(bucket, buckets / 2);
        EXPECT_EQ(found.of(distance), bucket + buckets / 2);
        before = bucket;
      }
      EXPECT_EQ(before, buckets / 2 - 1);
    }
  }
}

}  // namespace headlight::test::relative_bias_test
