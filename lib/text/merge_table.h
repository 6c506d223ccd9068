// What two tokens become, and in which order.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "text/parts.h"
#include "text/table_limit.h"

namespace headlight::text {

// A search looks at one line of a cache, whether there is such a pair or not; of lines that have no room for all of
// theirs also at a list, which is sorted: however a file chooses its pairs, that takes no more than the logarithm of
// their number.
class MergeTable {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  // Ranks are below that: the largest number of so many bits would make an empty place of the last pair there may be.
  static constexpr std::size_t kMostMerges = (std::size_t{1} << 22) - 1;

  // What a table of so many pairs takes.
  [[nodiscard]] static std::size_t memory_of(std::size_t pairs) noexcept {
    return lines_of(pairs) * sizeof(Line) + lines_of(pairs) / 8 + pairs * sizeof(std::uint32_t);
  }
  // Room for so many pairs, before the first add().
  void reserve(std::size_t pairs) {
    ids_.reserve(pairs);
    lines_.assign(lines_of(pairs), {});
    overflows_.assign(lines_.size(), false);
  }
  // The next rank, from 0 on: at most kMostMerges. Tokens are below kMostIds. Of pairs that are the same the last one
  // counts.
  void add(std::uint32_t left, std::uint32_t right, std::uint32_t id, TableLimit& limit);
  // After the last add().
  void build();

  [[nodiscard]] std::size_t size() const noexcept { return ids_.size(); }
  // The rank of a pair, the lowest of which merges first; kNone where it does not merge.
  [[nodiscard]] std::uint32_t rank(std::uint32_t left, std::uint32_t right) const noexcept {
    const std::uint64_t key = key_of(left, right);
    const std::size_t place = line_of(key);
    // Of the same key the rank is left, and of any other one more than a rank may be.
    std::uint64_t least = UINT64_MAX;
    for (const std::uint64_t entry : lines_[place].entries) least = std::min(least, entry ^ key);
    if (least < kMostMerges) return static_cast<std::uint32_t>(least);
    return overflows_[place] ? rank_in_rest(key) : kNone;
  }
  // What becomes of the pair of a rank.
  [[nodiscard]] std::uint32_t id(std::uint32_t rank) const noexcept { return ids_[rank]; }
  // The ids of all of them.
  [[nodiscard]] const std::vector<std::uint32_t>& ids() const noexcept { return ids_; }

 private:
  static constexpr int kRankBits = 22, kIdBits = 21;
  static_assert(kMostIds <= std::int64_t{1} << kIdBits);
  static_assert(kMostMerges < std::size_t{1} << kRankBits);
  static constexpr std::uint64_t kEmpty = UINT64_MAX;
  struct alignas(64) Line {
    std::array<std::uint64_t, 8> entries;
    Line() noexcept { entries.fill(kEmpty); }
  };
  // Pairs for each line: few lines are full, and a table is not much larger than what it holds.
  static constexpr std::size_t kUsual = 4;
  [[nodiscard]] static constexpr std::size_t lines_of(std::size_t pairs) noexcept { return pairs / kUsual + 1; }

  // Above the bits of a rank.
  [[nodiscard]] static std::uint64_t key_of(std::uint32_t left, std::uint32_t right) noexcept {
    return (std::uint64_t{left} << kIdBits | right) << kRankBits;
  }
  [[nodiscard]] std::size_t line_of(std::uint64_t key) const noexcept {
    const std::uint64_t mixed = (key ^ key >> 32) * 0x9E3779B97F4A7C15;
    return static_cast<std::size_t>((mixed >> 32) * lines_.size() >> 32);
  }
  [[nodiscard]] std::uint32_t rank_in_rest(std::uint64_t key) const noexcept;

  std::vector<std::uint32_t> ids_;   // by rank
  std::vector<std::uint64_t> rest_;  // keys with their ranks that no line has room for
  std::vector<Line> lines_ = std::vector<Line>(1);
  std::vector<bool> overflows_ = std::vector<bool>(1);  // of each line
};

}  // namespace headlight::text
