// Who holds what, and what plan() chooses.
#include <algorithm>
#include <numeric>
#include <span>
#include <stdexcept>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/mpi.h"
#include "mpi/ranks.h"

namespace headlight::mpi_plan_test {

AttentionShape square(std::int64_t length, std::int64_t heads = 8, std::int64_t dim = 64) {
  return {1, length, length, heads, heads, dim, dim};
}

// Every row once, ascending on each rank, cut where the sequence's first row is so many multiples of 64 away.
TEST(MpiPlan, EveryRowHasOneHolder) {
  for (const int size : {1, 2, 3, 4, 5, 8}) {
    for (const std::int64_t length : {0, 1, 63, 64, 65, 1000, 16384}) {
      std::vector<int> holders(static_cast<std::size_t>(length));
      for (int rank = 0; rank < size; ++rank) {
        const mpi::Plan plan = mpi::plan(square(length), {}, rank, size, {.head_ranks = 1});
        std::int64_t rows = 0, after = 0;
        for (const mpi::Run& run : plan.queries) {
          EXPECT_GE(run.first, after);
          EXPECT_EQ(run.first % 64, 0);
          after = run.first + run.count;
          rows += run.count;
          for (std::int64_t i = run.first; i < after; ++i) ++holders[static_cast<std::size_t>(i)];
        }
        EXPECT_EQ(rows, plan.query_rows);
        EXPECT_EQ(plan.query_rows, plan.key_rows);
      }
      EXPECT_EQ(std::count(holders.begin(), holders.end(), 1), length);
    }
  }
}

// A rank holds the rows of its shards, which are those that RowShards distributes, whatever the number of ranks.
TEST(MpiPlan, ShardsAreTheSameForAnyNumberOfRanks) {
  const std::vector<std::int64_t> offsets = {0, 10, 300, 420, 1500};
  for (const bool packed : {false, true}) {
    const std::span<const std::int64_t> given = packed ? offsets : std::span<const std::int64_t>();
    for (const std::int64_t shards : {1, 3, 8, 11}) {
      for (const int size : {1, 2, 3, 5, 8}) {
        std::int64_t first = 0;
        for (int rank = 0; rank < size; ++rank) {
          const std::int64_t count = shards / size + (rank < shards % size ? 1 : 0);
          const RowShards rows({}, {.length = 1500, .shards = shards, .offsets = given}, {first, count});
          const mpi::Plan plan = mpi::plan(square(1500), {.query_offsets = given}, rank, size, {.shards = shards});
          EXPECT_TRUE(
              std::equal(plan.queries.begin(), plan.queries.end(), rows.rows().begin(), rows.rows().end(),
                         [](const mpi::Run& a, const mpi::Run& b) { return a.first == b.first && a.count == b.count; }))
              << shards << " shards, rank " << rank << " of " << size;
          EXPECT_EQ(plan.query_rows, rows.row_count());
          first += count;
        }
      }
    }
  }
  EXPECT_THROW(static_cast<void>(mpi::plan(square(10), {}, 0, 1, {.shards = -1})), std::invalid_argument);
}

// Under a causal mask each rank has about as many pairs: within 4 % of the mean at 8 blocks a rank.
TEST(MpiPlan, CausalWorkIsEven) {
  for (const int size : {2, 3, 4, 8}) {
    std::vector<double> pairs;
    const std::int64_t length = 1024 * size;
    for (int rank = 0; rank < size; ++rank) {
      double of_rank = 0;
      for (const mpi::Run& run : mpi::plan(square(length), {}, rank, size, {.head_ranks = 1, .block = 128}).queries) {
        for (std::int64_t i = run.first; i < run.first + run.count; ++i) of_rank += static_cast<double>(i + 1);
      }
      pairs.push_back(of_rank);
    }
    const double mean = std::accumulate(pairs.begin(), pairs.end(), 0.0) / size;
    for (const double of_rank : pairs) EXPECT_NEAR(of_rank / mean, 1, 0.04) << size << " ranks";
  }
}

// Short sequences share a block, long ones are cut on their own grid.
TEST(MpiPlan, PackedSequences) {
  const std::vector<std::int64_t> offsets = {0, 10, 50, 400, 401, 410};
  const AttentionOptions options{.query_offsets = offsets};
  const mpi::Spread spread{.head_ranks = 1, .block = 128};
  const mpi::Plan first = mpi::plan(square(410), options, 0, 2, spread);
  const mpi::Plan second = mpi::plan(square(410), options, 1, 2, spread);
  // 0–50 and 306–410 here; 50–178 and 178–306, two neighbours, there.
  ASSERT_EQ(first.queries.size(), 2u);
  EXPECT_EQ(first.queries[0].first, 0);
  EXPECT_EQ(first.queries[0].count, 50);
  EXPECT_EQ(first.queries[1].first, 306);
  EXPECT_EQ(first.queries[1].count, 104);
  ASSERT_EQ(second.queries.size(), 1u);
  EXPECT_EQ(second.queries[0].first, 50);
  EXPECT_EQ(second.queries[0].count, 256);
}

// Long sequences hide transfers, though each block leaves its holder once for every other rank. Short ones on many
// ranks do not: they share out heads, as many as pays.
TEST(MpiPlan, ChoosesByShapes) {
  const mpi::Spread slow{.bytes_per_second = 1e8};
  EXPECT_EQ(mpi::plan(square(65536), {}, 0, 8).head_ranks, 1);
  const mpi::Plan ring = mpi::plan(square(65536), {}, 0, 8);
  EXPECT_DOUBLE_EQ(ring.hidden_seconds, 3 * 4 * 65536.0 * 8 * 128 / 1e9);
  EXPECT_DOUBLE_EQ(ring.hidden_bytes, 7.0 / 8 * 4 * 65536 * 8 * 128);
  // 512 rows a rank: the 7 copies of all keys take longer than the products.
  EXPECT_GT(mpi::plan(square(4096), {}, 0, 8, {.head_ranks = 1}).hidden_seconds,
            mpi::plan(square(4096), {}, 0, 8, {.head_ranks = 1}).product_seconds);
  EXPECT_GT(mpi::plan(square(4096), {}, 0, 8).head_ranks, 1);
  EXPECT_EQ(mpi::plan(square(1024), {}, 0, 8).head_ranks, 4);
  EXPECT_EQ(mpi::plan(square(1024), {}, 0, 8, slow).head_ranks, 8);
  EXPECT_EQ(mpi::plan(square(1024, 7), {}, 0, 8, slow).head_ranks, 1);
  const mpi::Plan grid = mpi::plan({1, 1024, 1024, 8, 2, 64, 64}, {}, 0, 8, slow);
  EXPECT_EQ(grid.head_ranks, 2);
  EXPECT_EQ(grid.ring, 4);
  EXPECT_NE(grid.text().find("by sequence and heads"), std::string::npos) << grid.text();
}

// What it says is received is received.
TEST(MpiPlan, BytesAreThoseReceived) {
  mpi::Group group(MPI_COMM_WORLD);
  Engine engine({.threads = 1});
  const AttentionShape whole = square(64 * 4 * group.size(), 2, 16);
  const mpi::Spread spread{.head_ranks = 1, .block = 64};
  const mpi::Plan plan = mpi::plan(whole, {}, group.rank(), group.size(), spread);
  const Tensor<float, 4> share({1, plan.query_rows, 2, 16});
  Tensor<float, 4> out(share.shape());
  const mpi::Statistics done = mpi::attention(group, engine, whole, share, share, share, out, {}, spread);
  EXPECT_EQ(done.bytes_received, plan.hidden_bytes);
}

}  // namespace headlight::mpi_plan_test
