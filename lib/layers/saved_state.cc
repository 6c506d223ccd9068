#include "layers/saved_state.h"

#include <bit>
#include <tuple>
#include <type_traits>

#include "headlight/out_of_memory.h"
#include "ops/check.h"
#include "ops/typed_check.h"

namespace headlight {

SavedState::SavedState(Checkpoint checkpoint, std::int64_t k, const TrainingAttention& attention)
    : checkpoint_(checkpoint), k_(k), attention_(&attention) {
  if (checkpoint > Checkpoint::every_k_layers) {
    ops::fail("SavedState", "checkpoint is ", static_cast<int>(checkpoint), ", expected one of the enum");
  }
  if (k < 0) ops::fail("SavedState", "k is ", k, ", expected at least 1, or 0 for √n");
}

SavedState::SavedState(NumberType activations, Checkpoint checkpoint, std::int64_t k) : SavedState(checkpoint, k) {
  if (activations != NumberType::float32 && activations != NumberType::bfloat16) {
    ops::fail("SavedState", "activations is ", ops::type_name(activations), ", expected float32 or bfloat16");
  }
  ops::check_built_type("SavedState", "activations", activations);
  activations_ = activations;
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

namespace {

template <class Option>
std::int64_t number(Option option) noexcept {
  if constexpr (std::is_same_v<Option, float>) {
    return std::bit_cast<std::int32_t>(option);
  } else {
    return static_cast<std::int64_t>(option);
  }
}

template <class... Options>
MadeWith numbers(Options... options) noexcept {
  static_assert(sizeof...(options) <= std::tuple_size_v<MadeWith>);
  return {number(options)...};
}

}  // namespace

MadeWith made_with(const FeedForwardOptions& options) noexcept {
  return numbers(options.width, options.hidden_width, options.activation, options.bias, options.dropout);
}

MadeWith made_with(const MultiHeadAttentionOptions& options) noexcept {
  return numbers(options.width, options.heads, options.key_value_heads, options.key_width, options.value_width,
                 options.bias, options.dropout, options.merge);
}

MadeWith made_with(const TransformerLayerOptions& options) noexcept {
  return numbers(options.width, options.heads, options.feed_forward_width, options.norm, options.activation,
                 options.layer_norm_epsilon, options.dropout, options.bias, options.merge);
}

MadeWith made_with(const EncoderOptions& options) noexcept {
  return numbers(options.vocabulary, options.max_positions, options.token_types, options.width, options.heads,
                 options.feed_forward_width, options.layers, options.norm, options.activation,
                 options.layer_norm_epsilon, options.dropout, options.merge);
}

void check_saved(std::string_view name, const SavedState& saved, const Layer* layer, const MadeWith& made,
                 const std::array<std::int64_t, 3>& shape) {
  const SavedState::Call& call = saved.call();
  if (call.layer == nullptr) ops::fail(name, "saved holds no forward pass, expected that of this layer");
  if (call.layer != layer) ops::fail(name, "saved holds the forward pass of another layer, expected that of this one");
  if (call.shape != shape) {
    ops::fail(name, "saved holds a forward pass of lengths ", call.shape, ", expected ", shape);
  }
  if (call.made_with != made) {
    ops::fail(name,
              "saved holds the forward pass of a layer that was here before, expected that of this one: the layer "
              "has other options than it had then");
  }
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
