#include "layers/saved_state.h"

#include "headlight/out_of_memory.h"
#include "ops/attention_masks.h"
#include "ops/check.h"

namespace headlight {

SavedState::SavedState(Checkpoint checkpoint, std::int64_t k) : checkpoint_(checkpoint), k_(k) {
  if (checkpoint > Checkpoint::unfused) {
    ops::fail("SavedState",
              "checkpoint is " + std::to_string(static_cast<int>(checkpoint)) + ", expected one of the enum");
  }
  if (k < 0) ops::fail("SavedState", "k is " + std::to_string(k) + ", expected at least 1, or 0 for √n");
}

std::byte* SavedState::begin(std::size_t bytes) {
  call_ = {};
  if (bytes > static_cast<std::size_t>(memory_.size())) {
    memory_ = {};
    if (bytes > static_cast<std::size_t>(INT64_MAX)) throw OutOfMemory("SavedState", bytes);
    try {
      memory_ = Tensor<std::byte, 1>({static_cast<std::int64_t>(bytes)});
    } catch (const std::bad_alloc&) {
      throw OutOfMemory("SavedState", bytes);
    }
  }
  return memory_.data();
}

namespace layers {

void check_saved(std::string_view name, const SavedState& saved, const Layer* layer,
                 const std::array<std::int64_t, 3>& shape) {
  const SavedState::Call& call = saved.call();
  if (call.layer == nullptr) ops::fail(name, "saved holds no forward pass, expected that of this layer");
  if (call.layer != layer) ops::fail(name, "saved holds the forward pass of another layer, expected that of this one");
  if (call.shape != shape) {
    ops::fail(name, "saved holds a forward pass of lengths " + ops::describe(call.shape) + ", expected " +
                        ops::describe(shape));
  }
}

void check_layout(std::string_view name, const SavedState& saved, std::size_t bytes) {
  if (saved.call().bytes == bytes) return;
  ops::fail(name, "saved holds a forward pass of " + std::to_string(saved.call().bytes) + " bytes, expected " +
                      std::to_string(bytes) + ": the layer has other options than it had then");
}

std::int64_t kept_keys(bool unfused, std::int64_t keys, const AttentionOptions& options) noexcept {
  if (!unfused) return 0;
  return options.query_offsets.empty() ? keys : ops::longest_packed_keys(options);
}

void check_training_options(std::string_view name, const AttentionOptions& options) {
  if (options.log_sum_exp)
    ops::fail(name, "options.log_sum_exp is given, expected none: in training it is kept inside");
  if (options.dropout.probability != 0) {
    ops::fail(name, "options.dropout is given, expected none: in training it is the layer's own");
  }
}

}  // namespace layers

}  // namespace headlight
