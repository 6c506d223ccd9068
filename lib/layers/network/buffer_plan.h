// Where values lie in scratch memory during a forward pass: those that are never there at the same time share it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "layers/network/operation_list.h"
#include "layers/network/training_plan.h"

namespace headlight::layers {

// Where a value lies.
struct ValuePlace {
  int buffer = -1;
  bool is_hidden = false;    // it lies where the caller wants the output
  bool gave_buffer = false;  // to the value that was made of it in place
};

class BufferPlan {
 public:
  // Throws std::invalid_argument for a network whose values need more than BufferPlaces::kMost buffers.
  void make(const OperationList& list, std::string_view name);

  [[nodiscard]] const ValuePlace& of(int value) const noexcept { return values_[static_cast<std::size_t>(value)]; }
  [[nodiscard]] BufferPlaces places(const OperationList& list, const Engine& engine,
                                    std::int64_t tokens) const noexcept;
  // In training: of what is kept nowhere else.
  [[nodiscard]] HEADLIGHT_INNER_API BufferPlaces places(const OperationList& list, const TrainingPlan& training,
                                                        NumberType activations, std::int64_t tokens) const noexcept;

 private:
  // Memory that values share which are not there at the same time.
  struct Buffer {
    std::int64_t columns;
    bool is_local;
    bool is_of_sequences;
    bool is_free = false;
    bool is_apart = false;  // of values that are there outside of runs alone: they share memory with local ones
  };

  // `floats` of a row of each.
  using Floats = std::array<std::int64_t, BufferPlaces::kMost>;
  [[nodiscard]] BufferPlaces lay_out(const Floats& floats, std::int64_t tokens, std::int64_t of_runs) const noexcept;

  void find_output_chain(const OperationList& list);
  void place_output(const OperationList& list, int operation);
  void find_buffers_apart(const OperationList& list);
  [[nodiscard]] int take_buffer(const Value& value);
  [[nodiscard]] ValuePlace& at(int value) noexcept { return values_[static_cast<std::size_t>(value)]; }

  std::vector<ValuePlace> values_;
  std::vector<Buffer> buffers_;
};

// The type that a value has in a call outside of training, and in it.
[[nodiscard]] NumberType type_of(const Value& value, const Engine& engine) noexcept;
[[nodiscard]] inline NumberType type_in_training(const Value& value, NumberType activations) noexcept {
  return value.handed_on.in_training ? activations : NumberType::float32;
}

}  // namespace headlight::layers
