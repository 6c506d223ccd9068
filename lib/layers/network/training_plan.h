// Which values the way back through a network reads again, and where those and gradients lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "layers/network/operation_list.h"
#include "layers/network/row_space.h"

namespace headlight::layers {

// Where the way back reads a value.
enum class Keeping : std::uint8_t {
  none,             // nowhere
  throughout,       // where it is kept from the forward pass on
  of_block,         // among those of its block, which may be computed again
  output_of_block,  // as the next block's input: from the forward pass on, or with the blocks computed again
  again             // it is computed again, some rows at a time, when its reader's turn comes
};

// Where a gradient lies: it is there throughout, only where operations go through all rows at once, or some rows at a
// time.
enum class Staying : std::uint8_t { throughout, apart, local };

// For activations of a type, and gradients of those that are of one (HandedOn::gradient).
class TrainingPlan {
 public:
  // Tells operations of `list` which gradients they add to.
  void make(OperationList& list, NumberType activations, NumberType gradients);

  struct Place {
    Keeping keeping = Keeping::none;
    RowSpace before{};  // what lies before it among those of its kind, in its block
    Staying staying = Staying::throughout;
    RowSpace before_gradient{};
    bool has_gradient = false;
  };
  [[nodiscard]] const Place& of(int value) const noexcept { return values_[static_cast<std::size_t>(value)]; }

  // Values that are kept throughout but for outputs of blocks; one of those; values of blocks before that one.
  [[nodiscard]] const RowSpace& throughout() const noexcept { return throughout_; }
  [[nodiscard]] const RowSpace& output() const noexcept { return output_; }
  [[nodiscard]] const RowSpace& before_block(int block) const noexcept {
    return before_block_[static_cast<std::size_t>(block)];
  }
  // How many outputs of blocks are kept where every segment-th block's input is.
  [[nodiscard]] HEADLIGHT_INNER_API std::int64_t kept_outputs(std::int64_t segment) const noexcept;
  // The number of a block's output among those, or −1.
  [[nodiscard]] std::int64_t kept_output(std::int64_t segment, int block) const noexcept;
  // Gradients, by where they stay; of local ones, with values that are computed again.
  [[nodiscard]] const RowSpace& gradients(Staying staying) const noexcept {
    return gradients_[static_cast<std::size_t>(staying)];
  }
  // Behind the last operation of a block whose output is kept there, or that keeps something: what must run again for
  // its way back.
  [[nodiscard]] int end_of_repeat(int block) const noexcept { return end_of_repeat_[static_cast<std::size_t>(block)]; }
  // A number that tells networks apart whose values are kept in other places.
  [[nodiscard]] std::int64_t layout() const noexcept;

 private:
  class GradientSpace;
  struct Spaces;

  void keep_values(const OperationList& list);
  void place_kept_values(const OperationList& list);
  void find_ends_of_repeats(const OperationList& list);
  void place_gradients(OperationList& list);
  void take(const Slice& slice, const Value& value, int reader, Spaces& spaces);
  void lay_out_gradients(const Spaces& spaces);
  void place_values_made_again(const OperationList& list);
  [[nodiscard]] NumberType type(const Value& value) const noexcept {
    return value.handed_on.in_training ? activations_ : NumberType::float32;
  }
  [[nodiscard]] Place& at(const Slice& slice) noexcept { return values_[static_cast<std::size_t>(slice.value)]; }

  NumberType activations_ = NumberType::float32;
  NumberType type_of_gradients_ = NumberType::float32;
  std::vector<Place> values_;
  RowSpace throughout_;
  RowSpace output_;
  std::vector<RowSpace> before_block_;  // and behind the last one
  std::int64_t blocks_ = 0;
  bool keeps_last_output_ = false;
  std::vector<int> end_of_repeat_;  // of each block
  RowSpace gradients_[3];
};

}  // namespace headlight::layers
