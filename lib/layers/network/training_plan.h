// Which values the way back through a network reads again, and where those and gradients lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "layers/network/operation_list.h"

namespace headlight::layers {

// All places count floats a token: rows lie a whole number of cache lines apart, so that every value begins at one.
class TrainingPlan {
 public:
  // Tells operations of `list` which gradients they add to.
  void make(OperationList& list);

  // Where a value is kept among those of its block, or among those that are there throughout; −1: it is not.
  [[nodiscard]] std::int64_t kept(int value) const noexcept { return of(value).kept; }
  // Where its gradient is: among those of all tokens, or, of a local value, among those of as many as go through a run
  // at once.
  [[nodiscard]] std::int64_t gradient(int value) const noexcept { return of(value).gradient; }
  // Where the values of a block begin, behind those that are there throughout.
  [[nodiscard]] std::int64_t first_of_block(int block) const noexcept {
    return first_of_block_[static_cast<std::size_t>(block)];
  }
  [[nodiscard]] std::int64_t gradient_floats() const noexcept { return gradient_floats_; }
  // Behind the last operation of a block whose output or training value is kept there: what must run again.
  [[nodiscard]] int end_of_repeat(int block) const noexcept { return end_of_repeat_[static_cast<std::size_t>(block)]; }
  // A number that tells networks apart whose values are kept in other places.
  [[nodiscard]] std::int64_t layout() const noexcept { return layout_; }
  // Bytes: of what is kept with all blocks or without; of one block, the largest; of gradients.
  [[nodiscard]] std::size_t kept_bytes(bool keeps_blocks, std::int64_t tokens) const noexcept;
  [[nodiscard]] std::size_t block_bytes(std::int64_t tokens) const noexcept;
  [[nodiscard]] std::size_t gradient_bytes(std::int64_t tokens, std::int64_t rows_at_once) const noexcept;

 private:
  struct Place {
    std::int64_t kept = -1;
    std::int64_t gradient = -1;
  };

  void keep_values(const OperationList& list);
  void place_kept_values(const OperationList& list);
  void find_ends_of_repeats(const OperationList& list);
  void place_gradients(OperationList& list);
  void find_layout() noexcept;
  [[nodiscard]] const Place& of(int value) const noexcept { return values_[static_cast<std::size_t>(value)]; }
  [[nodiscard]] Place& of(const Slice& slice) noexcept { return values_[static_cast<std::size_t>(slice.value)]; }

  std::vector<Place> values_;
  std::int64_t kept_floats_ = 0;              // of what is there throughout
  std::vector<std::int64_t> first_of_block_;  // and the end of the last one
  std::int64_t largest_block_ = 0;
  std::vector<int> end_of_repeat_;  // of each block
  std::int64_t gradient_floats_ = 0;
  std::int64_t local_gradient_floats_ = 0;
  std::int64_t layout_ = 0;
};

}  // namespace headlight::layers
