// Scores in order, beside a sort of all of them.
#include "tools/headlight/support/score_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "support/random.h"

namespace headlight::test::score_order_test {

struct Given {
  float score;
  std::int64_t number;
};

// NaN last.
bool comes_before(const Given& a, const Given& b) {
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  const float first = std::isnan(a.score) ? kLowest : a.score, second = std::isnan(b.score) ? kLowest : b.score;
  return std::tuple(-first, a.number) < std::tuple(-second, b.number);
}

TEST(ScoreOrder, IsThatOfASort) {
  Random random(3);
  for (const std::size_t most : {1u, 7u, 100u, 5000u}) {
    for (const std::int64_t count : {0, 1, 7, 8, 700, 3000}) {
      program::ScoreOrder order(most);
      std::vector<Given> expected;
      for (std::int64_t n = 0; n < count; ++n) {
        // Many are equal.
        const float score = random.once_in(20) ? NAN : random.once_in(20) ? INFINITY : std::floor(20 * random.normal());
        order.add(score, 3 * n);
        expected.push_back({score, n});
      }
      std::sort(expected.begin(), expected.end(), comes_before);
      std::size_t at = 0;
      order.for_each([&](float score, std::int64_t number, std::int64_t place) {
        ASSERT_LT(at, expected.size());
        EXPECT_EQ(number, expected[at].number) << most << " in memory, place " << at;
        EXPECT_TRUE(score == expected[at].score || (std::isnan(score) && std::isnan(expected[at].score)));
        EXPECT_EQ(place, 3 * number);
        ++at;
      });
      EXPECT_EQ(at, expected.size());
    }
  }
}

}  // namespace headlight::test::score_order_test
