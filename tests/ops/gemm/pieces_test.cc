// Rows that go through products in pieces: none of them is a sliver for which all of B is read again.
#include <cstdint>

#include "gtest/gtest.h"
#include "ops/gemm/split.h"
#include "support/isas.h"

namespace headlight::test::gemm_pieces_test {

using GemmPieces = EachIsa;
HEADLIGHT_ON_EVERY_ISA(GemmPieces);

TEST_P(GemmPieces, AreEvenAndNoMoreThanNeedBe) {
  for (const int threads : {1, 3}) {
    const Engine engine(options(threads));
    // Rows of a full piece.
    std::int64_t full = 1;
    while (ops::gemm_rows_at_once(engine, full + 1, INT64_MAX) == full + 1) ++full;
    for (const std::int64_t most : {full, full / 2 + 1}) {
      EXPECT_EQ(ops::gemm_rows_at_once(engine, 0, most), 0);
      for (std::int64_t rows = 1; rows <= 4 * most; ++rows) {
        const std::int64_t at_once = ops::gemm_rows_at_once(engine, rows, most);
        const std::int64_t pieces = (rows + at_once - 1) / at_once;
        EXPECT_LE(at_once, most) << rows;
        EXPECT_LE(pieces, (rows + most - 1) / most) << rows;
        EXPECT_GE(rows - (pieces - 1) * at_once, at_once / 4) << rows;
        if (rows <= most) {
          EXPECT_EQ(at_once, rows);
        }
        // Those of a sample fit where those of all samples do.
        for (const std::int64_t samples : {2, 5}) {
          EXPECT_LE(at_once, ops::gemm_rows_at_once(engine, samples * rows, most)) << rows;
        }
      }
    }
  }
}

}  // namespace headlight::test::gemm_pieces_test
