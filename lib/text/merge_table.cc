#include "text/merge_table.h"

namespace headlight::text {
namespace {

// Entries for each line: few lines are full, and a table is not much larger than what it holds.
constexpr std::size_t kUsual = 4;

}  // namespace

void MergeTable::build() {
  std::sort(entries_.begin(), entries_.end());
  std::size_t kept = 0;
  for (const std::uint64_t entry : entries_) {  // of the same key the highest rank comes last
    if (kept > 0 && entries_[kept - 1] >> kRankBits == entry >> kRankBits) --kept;
    entries_[kept++] = entry;
  }
  lines_.resize(kept / kUsual + 1);
  for (Line& line : lines_) line.entries.fill(kEmpty);
  overflows_.assign(lines_.size(), false);
  // Those that find no room stay in the list, in order.
  std::size_t rest = 0;
  for (std::size_t n = 0; n < kept; ++n) {
    const std::uint64_t entry = entries_[n];
    const std::size_t place = line_of(entry >> kRankBits << kRankBits);
    const auto free = std::find(lines_[place].entries.begin(), lines_[place].entries.end(), kEmpty);
    if (free != lines_[place].entries.end()) {
      *free = entry;
    } else {
      overflows_[place] = true;
      entries_[rest++] = entry;
    }
  }
  entries_.resize(rest);
  entries_.shrink_to_fit();
}

std::uint32_t MergeTable::rank_in_rest(std::uint64_t key) const noexcept {
  const auto found = std::lower_bound(entries_.begin(), entries_.end(), key);
  return found != entries_.end() && (*found ^ key) < kMostMerges ? static_cast<std::uint32_t>(*found ^ key) : kNone;
}

}  // namespace headlight::text
