// Which sequences of a packed batch go through a block together.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "layers/network/values.h"

namespace headlight::layers {

// As many sequences, one after another, as have so many rows together, or one that has more: what a block makes of them
// then stays in the cache.
class SequenceGroups {
 public:
  // Those that begin there, rows offsets[s] … offsets[s + 1] − 1; without offsets all rows are one group.
  SequenceGroups(std::span<const std::int64_t> offsets, std::int64_t rows, std::int64_t most_together) noexcept
      : offsets_(offsets), most_together_(most_together) {
    if (offsets.empty() || rows <= most_together) {
      most_rows_ = rows;
      return;
    }
    for (std::size_t first = 0; first < sequences();) {
      const std::size_t end = end_of(first);
      most_rows_ = std::max(most_rows_, offsets[end] - offsets[first]);
      first = end;
    }
    are_one_ = most_rows_ == rows;
  }

  [[nodiscard]] bool are_one() const noexcept { return are_one_; }
  [[nodiscard]] std::int64_t most_rows() const noexcept { return most_rows_; }

  // f(rows, where their sequences begin among them) for each group.
  template <class Function>
  void for_each(Function f) const {
    std::array<std::int64_t, kMostSequences + 1> begin;
    for (std::size_t first = 0; first < sequences();) {
      const std::size_t end = end_of(first);
      for (std::size_t s = first; s <= end; ++s) begin[s - first] = offsets_[s] - offsets_[first];
      const RowRange rows = {offsets_[first], offsets_[end] - offsets_[first]};
      if (rows.count > 0) f(rows, std::span<const std::int64_t>(begin.data(), end - first + 1));
      first = end;
    }
  }

 private:
  // So that what is known of a group needs no memory.
  static constexpr std::size_t kMostSequences = 256;

  [[nodiscard]] std::size_t sequences() const noexcept { return offsets_.size() - 1; }
  // Behind the last sequence of the group that begins with that one.
  [[nodiscard]] std::size_t end_of(std::size_t first) const noexcept {
    std::size_t end = first + 1;
    while (end < sequences() && end - first < kMostSequences && offsets_[end + 1] - offsets_[first] <= most_together_)
      ++end;
    return end;
  }

  std::span<const std::int64_t> offsets_;
  std::int64_t most_together_;
  std::int64_t most_rows_ = 0;
  bool are_one_ = true;
};

}  // namespace headlight::layers
