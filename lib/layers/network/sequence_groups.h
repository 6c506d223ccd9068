// Which sequences of a packed batch go through a block together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "layers/network/values.h"

namespace headlight::layers {

// Sequences, one after another, that have about as many rows together as go through a run at once: what a block makes
// of them then stays in the cache. No group has less than half of that, since it reads all weights.
class SequenceGroups {
 public:
  // Rows offsets[s] … offsets[s + 1] − 1 are sequence s; without offsets all rows are one group.
  SequenceGroups(std::span<const std::int64_t> offsets, std::int64_t rows_at_once) noexcept
      : offsets_(offsets), rows_at_once_(rows_at_once) {}

  [[nodiscard]] bool are_one() const noexcept { return offsets_.size() <= 2 || end_of(0) == sequences(); }

  // f(rows, where their sequences begin among them, those without rows left out) for each group; `begins` has room for
  // a number more than there are rows.
  template <class Function>
  void for_each(std::int64_t* begins, Function f) const {
    for (std::size_t first = 0, end = 0; first < sequences(); first = end) {
      end = end_of(first);
      const RowRange rows = {offsets_[first], offsets_[end] - offsets_[first]};
      std::size_t count = 0;
      for (std::size_t s = first; s < end; ++s) {
        if (offsets_[s + 1] > offsets_[s]) begins[count++] = offsets_[s] - rows.first;
      }
      begins[count] = rows.count;
      f(rows, std::span<const std::int64_t>(begins, count + 1));
    }
  }

 private:
  [[nodiscard]] std::size_t sequences() const noexcept { return offsets_.size() - 1; }
  // Behind the last sequence of the group that begins with that one.
  [[nodiscard]] std::size_t end_of(std::size_t first) const noexcept {
    std::size_t end = first + 1;
    for (; end < sequences(); ++end) {
      const bool is_enough = 2 * (offsets_[end] - offsets_[first]) >= rows_at_once_;
      if (is_enough && offsets_[end + 1] - offsets_[first] > rows_at_once_) break;
    }
    return 2 * (offsets_.back() - offsets_[end]) < rows_at_once_ ? sequences() : end;
  }

  std::span<const std::int64_t> offsets_;
  std::int64_t rows_at_once_;
};

}  // namespace headlight::layers
