// Places of tokens in a list, by what they are looked for as.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace headlight::text {

// Tokens lie in buckets by a hash, the tag, and are sorted within each: however a file chooses its tokens, a search
// takes no more than the logarithm of their number. Who has a table says how texts compare.
class TokenTable {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  [[nodiscard]] static std::uint32_t tag_of(std::string_view text) noexcept;
  // What a table of so many tokens takes.
  [[nodiscard]] static std::size_t memory_of(std::size_t tokens) noexcept;

  void reserve(std::size_t tokens) { entries_.reserve(tokens); }
  void clear() noexcept { entries_.clear(); }
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  void add(std::uint32_t tag, std::uint32_t place) { entries_.push_back({tag, place}); }
  // After the last add(). compare(a, b): below, at or above 0 as the token at place a stands before, is, or stands
  // behind that at place b. Of tokens that are the same the last place counts.
  template <class Compare>
  void sort(Compare compare);
  // compare(place): the same of the token at that place beside what is looked for, whose tag it is. kNone where there
  // is none.
  template <class Compare>
  [[nodiscard]] std::uint32_t find(std::uint32_t tag, Compare compare) const noexcept;

 private:
  struct Entry {
    std::uint32_t tag, place;
  };
  // A bucket of more is searched by halves.
  static constexpr std::size_t kFewEntries = 8;

  void find_buckets();

  std::vector<Entry> entries_;
  std::vector<std::uint32_t> first_ = std::vector<std::uint32_t>(2);  // of each bucket, and behind the last one
  int shift_ = 32;                                                    // 32 − the bits of a bucket's number
};

template <class Compare>
void TokenTable::sort(Compare compare) {
  std::sort(entries_.begin(), entries_.end(), [&](const Entry& a, const Entry& b) {
    if (a.tag != b.tag) return a.tag < b.tag;
    const int order = compare(a.place, b.place);
    return order != 0 ? order < 0 : a.place < b.place;
  });
  std::size_t kept = 0;
  for (const Entry& entry : entries_) {
    const bool again =
        kept > 0 && entries_[kept - 1].tag == entry.tag && compare(entries_[kept - 1].place, entry.place) == 0;
    entries_[kept - (again ? 1 : 0)] = entry;
    kept += again ? 0 : 1;
  }
  entries_.resize(kept);
  find_buckets();
}

template <class Compare>
std::uint32_t TokenTable::find(std::uint32_t tag, Compare compare) const noexcept {
  const auto bucket = static_cast<std::size_t>(std::uint64_t{tag} >> shift_);
  const Entry* at = entries_.data() + first_[bucket];
  const Entry* const end = entries_.data() + first_[bucket + 1];
  if (static_cast<std::size_t>(end - at) > kFewEntries) {
    at = std::partition_point(
        at, end, [&](const Entry& entry) { return entry.tag != tag ? entry.tag < tag : compare(entry.place) < 0; });
    return at != end && at->tag == tag && compare(at->place) == 0 ? at->place : kNone;
  }
  for (; at != end; ++at) {
    if (at->tag == tag && compare(at->place) == 0) return at->place;
  }
  return kNone;
}

}  // namespace headlight::text
