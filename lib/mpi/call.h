// One call over ranks, before anything is sent: checked sizes, the grid of ranks, who holds what, and what all ranks
// must say alike.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/mpi.h"
#include "mpi/broadcast.h"
#include "mpi/shares.h"
#include "mpi/stopwatch.h"
#include "mpi/transport.h"
#include "ops/attention/check.h"
#include "ops/attention/head_numbers.h"

namespace headlight::mpi {

// Rank r is number r mod head_ranks of row ⌊r / head_ranks⌋. A row holds a part of the sequence; each of its ranks
// works on its own heads of all of that part.
struct Grid {
  int ring = 1;
  int head_ranks = 1;
  int row = 0;
  int column = 0;

  [[nodiscard]] int rank_at(int of_row, int of_column) const noexcept { return of_row * head_ranks + of_column; }
  // The ranks of this column, from the first row on.
  [[nodiscard]] std::vector<int> column_ranks() const;
};

// Of one of the two lengths.
struct Holding {
  std::vector<Block> blocks;
  std::vector<Run> share;   // what the rank holds
  std::vector<Run> of_row;  // what its row of the grid does
};

struct Call {
  ops::AttentionSizes whole{};
  ops::AttentionSizes here{};  // with the heads that this rank works on
  Grid grid;
  std::int64_t block = 0;
  bool packed = false;
  Holding queries;
  Holding keys;
  ops::HeadNumbers heads;

  // The options as this rank works with them: slopes and sinks of its heads.
  [[nodiscard]] AttentionOptions options_of(const AttentionOptions& options) const noexcept;
  [[nodiscard]] std::int64_t first_head() const noexcept { return grid.column * here.query_heads; }
  // The blocks of a tensor in ascending order, in segments, whose roots are the ranks of this column that hold them.
  [[nodiscard]] std::vector<Segment> segments_of(const Holding& holding) const;
  // Rows of a tensor of such a length that a rank holds, about; and of the longer one.
  [[nodiscard]] std::int64_t share(std::int64_t length) const noexcept;
  [[nodiscard]] std::int64_t share() const noexcept;
  // Rows of a segment, at most.
  [[nodiscard]] std::int64_t segment_rows() const noexcept;
  // For how many segments there is memory, the one that is worked on among them.
  [[nodiscard]] std::size_t segments_at_once() const noexcept;
  // In how many passes, each a broadcast of the other operands, a rank adds up sums that lie apart from gradients of
  // such a length, each for a part of its rows; `sums`: how many a row has, at most two. And how many rows one of so
  // many passes is for, about.
  [[nodiscard]] std::int64_t passes(std::int64_t length, std::int64_t sums) const noexcept;
  [[nodiscard]] std::int64_t rows_of_pass(std::int64_t length, std::int64_t passes) const noexcept;
  // How many rows before a segment are needed again where sums go by blocks of `size` on the grid of a sequence: what a
  // segment holds of one that does not end in it is worked on with the next. None where every segment begins on that
  // grid: segments lie one behind another in a rank's block, and blocks in a sequence.
  [[nodiscard]] std::int64_t carry(std::int64_t size) const noexcept {
    return packed || block % size != 0 || segment_rows() % size != 0 ? size - 1 : 0;
  }
};

// How many rows of so many heads, with `products` products for each row and each row of a segment, keep the engine's
// threads for a tenth of a second at most, as far as costs can tell: between two calls of MPI there is no more work
// than that, or than 64 rows.
[[nodiscard]] std::int64_t rows_at_once(const Engine& engine, const Call& call, std::int64_t heads,
                                        std::int64_t products) noexcept;

// Throws std::invalid_argument("operation: …").
[[nodiscard]] Call make_call(std::string_view operation, const AttentionShape& whole, const AttentionOptions& options,
                             int rank, int size, const Spread& spread);

[[nodiscard]] Record record_of(std::string_view operation, const Engine& engine, const AttentionShape& whole,
                               const AttentionOptions& options, const Spread& spread);

// Runs prepare() and lets all ranks know whether it could; then work(), whose failure ends the group on all of them.
template <class Prepare, class Work>
void together(Transport& transport, const Record& record, double& agreeing_seconds, const Prepare& prepare,
              const Work& work) {
  std::optional<std::string> problem;
  try {
    prepare();
  } catch (const std::exception& error) {
    problem = error.what();
  }
  {
    const Stopwatch agreeing(agreeing_seconds);
    transport.agree(record, problem);
  }
  try {
    work();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    transport.fail(transport.rank(), error.what());
  }
}

}  // namespace headlight::mpi
