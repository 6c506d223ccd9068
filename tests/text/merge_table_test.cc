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
  TableLimit none;
  table.add(0, kLastId, 1, none);
  table.add(kLastId, kLastId, 2, none);
  table.build();
  EXPECT_EQ(table.rank(0, kLastId), 0U);
  EXPECT_EQ(table.rank(kLastId, kLastId), 1U);
  EXPECT_EQ(table.id(1), 2U);
  EXPECT_EQ(table.rank(kLastId, 0), MergeTable::kNone);
}

// So many that a line of the cache has no room for all of its pairs.
TEST(MergeTable, FindsTheLastOfEqualPairs) {
  constexpr std::uint32_t kPairs = 5000;
  for (const std::size_t room : {std::size_t{1}, std::size_t{2 * kPairs}}) {
    MergeTable table;
    TableLimit none;
    table.reserve(room);
    for (std::uint32_t n = 0; n < 2 * kPairs; ++n) table.add(n % kPairs, kLastId, n, none);
    table.build();
    for (std::uint32_t n = 0; n < kPairs; ++n) {
      ASSERT_EQ(table.rank(n, kLastId), kPairs + n);
      ASSERT_EQ(table.rank(kLastId, n), MergeTable::kNone);
    }
  }
}

}  // namespace
}  // namespace headlight::text
