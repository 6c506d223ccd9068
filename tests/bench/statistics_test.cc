#include "harness/statistics.h"

#include <gtest/gtest.h>

#include "harness/histogram.h"

namespace headlight::bench::statistics_test {

TEST(Statistics, QuantilesLieBetweenNeighbours) {
  const std::vector<double> values = {4, 1, 3, 2, 5};
  EXPECT_EQ(quantile(values, 0), 1);
  EXPECT_EQ(quantile(values, 0.5), 3);
  EXPECT_EQ(quantile(values, 1), 5);
  EXPECT_DOUBLE_EQ(quantile(values, 0.9), 4.6);
  EXPECT_EQ(median({1, 2}), 1.5);
  EXPECT_EQ(quantile({7}, 0.999), 7);
  EXPECT_EQ(least(values), 1);
  EXPECT_EQ(greatest(values), 5);
}

TEST(Statistics, OfNothingIsZero) {
  EXPECT_EQ(quantile({}, 0.5), 0);
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(least({}), 0);
  EXPECT_EQ(greatest({}), 0);
  EXPECT_EQ(median_ratio({}, {}), 0);
}

TEST(Statistics, RatiosAreOfPairs) {
  // A clock that halves under both leaves the ratio; medians taken apart would not.
  EXPECT_EQ(median_ratio({90, 45, 180}, {100, 50, 200}), 0.9);
  EXPECT_EQ(median_ratio({1, 2, 3}, {1, 0, 1}), 2);  // the pair without a yardstick does not count
}

TEST(Histogram, HoldsEveryCallOnce) {
  const std::vector<Bucket> buckets = histogram_of({1e-6, 1.01e-6, 1e-3, 0, 1e-9});
  double calls = 0;
  for (const Bucket& bucket : buckets) calls += static_cast<double>(bucket.calls);
  EXPECT_EQ(calls, 5);
  ASSERT_EQ(buckets.size(), 3u);
  EXPECT_EQ(buckets[0].calls, 2);  // what the clock could not tell from nothing
  EXPECT_NEAR(buckets[1].seconds, 1e-6, 0.12e-6);
  EXPECT_EQ(buckets[1].calls, 2);
}

}  // namespace headlight::bench::statistics_test
