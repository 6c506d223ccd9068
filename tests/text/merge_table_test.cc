#include "text/merge_table.h"

#include <gtest/gtest.h>

namespace headlight::text {
namespace {

constexpr auto kLastId = static_cast<std::uint32_t>(kMostIds - 1);

TEST(MergeTable, HasNoPairsWhereNoneWereAdded) {
  MergeTable table;
  table.build();
  EXPECT_EQ(table.rank(0, 0), MergeTable::kNone);
  EXPECT_EQ(table.rank(kLastId, kLastId), MergeTable::kNone);
}

TEST(MergeTable, FindsThePairOfTheLastTokens) {
  MergeTable table;
  table.add(0, kLastId, 1);
  table.add(kLastId, kLastId, 2);
  table.build();
  EXPECT_EQ(table.rank(0, kLastId), 0U);
  EXPECT_EQ(table.rank(kLastId, kLastId), 1U);
  EXPECT_EQ(table.id(1), 2U);
  EXPECT_EQ(table.rank(kLastId, 0), MergeTable::kNone);
}

// So many that a line of the cache has no room for all of its pairs.
TEST(MergeTable, FindsTheLastOfEqualPairs) {
  constexpr std::uint32_t kPairs = 5000;
  MergeTable table;
  for (std::uint32_t n = 0; n < 2 * kPairs; ++n) table.add(n % kPairs, kLastId, n);
  table.build();
  for (std::uint32_t n = 0; n < kPairs; ++n) {
    ASSERT_EQ(table.rank(n, kLastId), kPairs + n);
    ASSERT_EQ(table.rank(kLastId, n), MergeTable::kNone);
  }
}

}  // namespace
}  // namespace headlight::text
