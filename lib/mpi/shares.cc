#include "mpi/shares.h"

#include <algorithm>
#include <string>

#include "mpi/records.h"
#include "ops/check.h"
#include "ops/typed_check.h"
#include "runtime/parallel.h"

namespace headlight::mpi {
namespace {

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

Run shards_of(std::int64_t shards, int rank, int size) noexcept {
  const std::int64_t first = runtime::first_of_run(shards, size, rank);
  return {first, runtime::first_of_run(shards, size, rank + 1) - first};
}

// The first ranks may have one more than the others.
int rank_of_shard(std::int64_t shard, std::int64_t shards, int size) noexcept {
  const std::int64_t fewer = shards / size, longer = shards % size;
  const std::int64_t of_longer = longer * (fewer + 1);
  return static_cast<int>(shard < of_longer ? shard / (fewer + 1) : longer + (shard - of_longer) / fewer);
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

void take_share(std::span<const Run> runs, const TypedView<4>& whole, const MutableTypedView<4>& share) {
  check_shapes("take_share", runs, whole, share);
  for_each_run(runs, whole, share, [](const auto& of_whole, const auto& of_share) { copy_rows(of_whole, of_share); });
}

void give_share(std::span<const Run> runs, const TypedView<4>& share, const MutableTypedView<4>& whole) {
  check_shapes("give_share", runs, whole, share);
  for_each_run(runs, whole, share, [](const auto& of_whole, const auto& of_share) { copy_rows(of_share, of_whole); });
}

}  // namespace headlight::mpi
