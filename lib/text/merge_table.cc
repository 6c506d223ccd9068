#include "text/merge_table.h"

namespace headlight::text {

void MergeTable::add(std::uint32_t left, std::uint32_t right, std::uint32_t id, TableLimit& limit) {
  const std::uint64_t key = key_of(left, right), entry = key | ids_.size();
  ids_.push_back(id);
  const std::size_t place = line_of(key);
  auto& entries = lines_[place].entries;
  const auto room = std::find_if(entries.begin(), entries.end(), [key](std::uint64_t there) {
    return there == kEmpty || there >> kRankBits == key >> kRankBits;
  });
  if (room != entries.end()) {
    *room = entry;
  } else {
    overflows_[place] = true;
    if (rest_.size() == rest_.capacity()) {
      const std::size_t twice = std::max<std::size_t>(2 * rest_.size(), 16);
      limit.take(twice * sizeof entry);
      rest_.reserve(twice);
    }
    rest_.push_back(entry);
  }
}

void MergeTable::build() {
  std::sort(rest_.begin(), rest_.end());
  std::size_t kept = 0;
  for (const std::uint64_t entry : rest_) {  // of the same key the highest rank comes last
    if (kept > 0 && rest_[kept - 1] >> kRankBits == entry >> kRankBits) --kept;
    rest_[kept++] = entry;
  }
  rest_.resize(kept);
  rest_.shrink_to_fit();
}

std::uint32_t MergeTable::rank_in_rest(std::uint64_t key) const noexcept {
  const auto found = std::lower_bound(rest_.begin(), rest_.end(), key);
  return found != rest_.end() && (*found ^ key) < kMostMerges ? static_cast<std::uint32_t>(*found ^ key) : kNone;
}

}  // namespace headlight::text
