#include "layers/row_distribution.h"

#include <algorithm>

#include "simd/integers.h"

namespace headlight::layers {
namespace {

constexpr std::int64_t kLongestBlock = 1024;

// Back and forth: 0 1 2 2 1 0 0 1 … Under a causal mask rows see the more keys the later they come, and every two
// rounds give each owner as many.
int owner_of(std::int64_t number, int owners) noexcept {
  const std::int64_t round = number / owners;
  const auto at = static_cast<int>(number % owners);
  return round % 2 == 0 ? at : owners - 1 - at;
}

}  // namespace

std::int64_t block_length(std::int64_t asked, std::int64_t length, std::int64_t owners) noexcept {
  if (asked > 0) return std::min(asked, std::max(round_up(length, kRowCut), kRowCut));
  return std::clamp(round_up(divide_up(length, 4 * owners), kRowCut), kRowCut, kLongestBlock);
}

std::vector<OwnedBlock> cut_into_blocks(std::int64_t length, std::span<const std::int64_t> offsets, std::int64_t block,
                                        int owners) {
  std::vector<OwnedBlock> blocks;
  const auto add = [&](std::int64_t first, std::int64_t count) {
    const bool fits = !blocks.empty() && blocks.back().count + count <= block;
    if (fits) {
      blocks.back().count += count;
    } else {
      blocks.push_back({first, count, owner_of(static_cast<std::int64_t>(blocks.size()), owners)});
    }
  };
  const auto add_sequence = [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; row += block) add(row, std::min(block, last - row));
  };
  if (offsets.empty()) add_sequence(0, length);
  for (std::size_t s = 1; s < offsets.size(); ++s) add_sequence(offsets[s - 1], offsets[s]);
  return blocks;
}

std::vector<RowRun> runs_of(std::span<const OwnedBlock> blocks, int first_owner, int owners) {
  std::vector<RowRun> runs;
  for (const OwnedBlock& block : blocks) {
    if (block.owner < first_owner || block.owner >= first_owner + owners) continue;
    if (!runs.empty() && runs.back().first + runs.back().count == block.first) {
      runs.back().count += block.count;
    } else {
      runs.push_back({block.first, block.count});
    }
  }
  return runs;
}

std::int64_t rows_of(std::span<const RowRun> runs) noexcept {
  std::int64_t rows = 0;
  for (const RowRun& run : runs) rows += run.count;
  return rows;
}

std::int64_t place_in(std::span<const RowRun> runs, std::int64_t row) noexcept {
  std::int64_t place = 0;
  for (const RowRun& run : runs) {
    if (row < run.first + run.count) return place + std::max<std::int64_t>(row - run.first, 0);
    place += run.count;
  }
  return place;
}

}  // namespace headlight::layers
