#include "mpi/shares.h"

#include <algorithm>
#include <string>

#include "mpi/records.h"
#include "ops/check.h"
#include "ops/typed_check.h"

namespace headlight::mpi {
namespace {

// Back and forth: 0 1 2 2 1 0 0 1 … Under a causal mask rows see the more keys the later they come, and every two
// rounds give each rank as many.
int owner_of(std::int64_t number, int ranks) noexcept {
  const std::int64_t round = number / ranks;
  const auto at = static_cast<int>(number % ranks);
  return round % 2 == 0 ? at : ranks - 1 - at;
}

// copy(some rows of the whole, the same of the share).
template <class From, class To, class Copy>
void for_each_run(std::span<const Run> runs, const From& whole, const To& share, const Copy& copy) {
  std::int64_t at = 0;
  for (const Run& run : runs) {
    copy(some_rows(whole, run.first, run.count), some_rows(share, at, run.count));
    at += run.count;
  }
}

void check_shapes(const char* name, std::span<const Run> runs, const TypedView<4>& whole, const TypedView<4>& share) {
  ops::check_view(name, "whole", whole);
  ops::check_view(name, "share", share);
  for (const Run& run : runs) {
    if (run.first < 0 || run.count < 0 || run.first > whole.extent(1) - run.count) {
      ops::fail(name, "runs has " + std::to_string(run.count) + " rows from " + std::to_string(run.first) +
                          " on, expected some of " + std::to_string(whole.extent(1)));
    }
  }
  const std::array<std::int64_t, 4> shape = {whole.extent(0), rows_of(runs), whole.extent(2), whole.extent(3)};
  ops::check_shape(name, "share", share.shape, shape, "[B, rows of the runs, H, D]");
  if (share.type == whole.type) return;
  ops::fail(name, "share has type " + ops::type_name(share.type) + ", expected " + ops::type_name(whole.type) +
                      ", the type of the whole");
}

}  // namespace

std::vector<Block> cut_into_blocks(std::int64_t length, std::span<const std::int64_t> offsets, std::int64_t block,
                                   int ranks) {
  std::vector<Block> blocks;
  const auto add = [&](std::int64_t first, std::int64_t count) {
    const bool fits = !blocks.empty() && blocks.back().count + count <= block;
    if (fits) {
      blocks.back().count += count;
    } else {
      blocks.push_back({first, count, owner_of(static_cast<std::int64_t>(blocks.size()), ranks)});
    }
  };
  const auto add_sequence = [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; row += block) add(row, std::min(block, last - row));
  };
  if (offsets.empty()) add_sequence(0, length);
  for (std::size_t s = 1; s < offsets.size(); ++s) add_sequence(offsets[s - 1], offsets[s]);
  return blocks;
}

std::vector<Run> runs_of(std::span<const Block> blocks, int first_rank, int ranks) {
  std::vector<Run> runs;
  for (const Block& block : blocks) {
    if (block.owner < first_rank || block.owner >= first_rank + ranks) continue;
    if (!runs.empty() && runs.back().first + runs.back().count == block.first) {
      runs.back().count += block.count;
    } else {
      runs.push_back({block.first, block.count});
    }
  }
  return runs;
}

std::vector<Run> cut_runs(std::span<const Run> runs, std::span<const std::int64_t> offsets, std::int64_t most) {
  std::vector<Run> cut;
  for (const Run& run : runs) {
    const std::int64_t last = run.first + run.count;
    bool is_first = true;
    for (std::int64_t row = run.first; row < last;) {
      const auto next = std::upper_bound(offsets.begin(), offsets.end(), row);
      const std::int64_t end = next == offsets.end() ? last : std::min(last, *next);
      const std::int64_t count = std::min(most, end - row);
      // Short sequences share a run.
      if (!is_first && cut.back().count + count <= most) {
        cut.back().count += count;
      } else {
        cut.push_back({row, count});
      }
      is_first = false;
      row += count;
    }
  }
  return cut;
}

std::int64_t rows_of(std::span<const Run> runs) noexcept {
  std::int64_t rows = 0;
  for (const Run& run : runs) rows += run.count;
  return rows;
}

std::int64_t place_in(std::span<const Run> runs, std::int64_t row) noexcept {
  std::int64_t place = 0;
  for (const Run& run : runs) {
    if (row < run.first + run.count) return place + row - run.first;
    place += run.count;
  }
  return place;
}

void take_share(std::span<const Run> runs, const TypedView<4>& whole, const MutableTypedView<4>& share) {
  check_shapes("take_share", runs, whole, share);
  for_each_run(runs, whole, share, [](const auto& of_whole, const auto& of_share) { copy_rows(of_whole, of_share); });
}

void give_share(std::span<const Run> runs, const TypedView<4>& share, const MutableTypedView<4>& whole) {
  check_shapes("give_share", runs, whole, share);
  for_each_run(runs, whole, share, [](const auto& of_whole, const auto& of_share) { copy_rows(of_share, of_whole); });
}

}  // namespace headlight::mpi
