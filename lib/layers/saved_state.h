// How layers use a SavedState, and place what they keep in it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "headlight/layers/encoder.h"
#include "headlight/layers/training.h"
#include "layers/rows.h"
#include "runtime/parallel.h"

namespace headlight::layers {

// Places tensors one behind another in a block of memory: once without memory, for its size, and again with it.
class Placement {
 public:
  explicit Placement(std::byte* memory = nullptr) noexcept : memory_(memory) {}

  // [B, L, columns], rows row_distance apart.
  MutableTypedView<3> typed_rows(std::int64_t batch, std::int64_t length, std::int64_t columns,
                                 NumberType type) noexcept {
    const auto part = layout_.add<float>(batch, length, row_floats(columns, type));
    return spaced_rows(type, memory_ == nullptr ? nullptr : part.in(memory_), {batch, length, columns});
  }
  View<float, 3> rows(std::int64_t batch, std::int64_t length, std::int64_t columns) noexcept {
    return floats_of(typed_rows(batch, length, columns, NumberType::float32));
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return layout_.bytes(); }

 private:
  std::byte* memory_;
  runtime::ScratchLayout layout_;
};

// What decides how a layer with such options computes and what it lays out, as numbers of a fixed order.
using MadeWith = decltype(SavedState::Call::made_with);
[[nodiscard]] MadeWith made_with(const FeedForwardOptions& options) noexcept;
[[nodiscard]] MadeWith made_with(const MultiHeadAttentionOptions& options) noexcept;
[[nodiscard]] MadeWith made_with(const TransformerLayerOptions& options) noexcept;
[[nodiscard]] MadeWith made_with(const EncoderOptions& options) noexcept;

// Throws unless `saved` holds the last forward pass of that layer, made with those options, for tensors of that shape:
// a layer with others in its place would read something else, or beyond it.
void check_saved(std::string_view name, const SavedState& saved, const Layer* layer, const MadeWith& made,
                 const std::array<std::int64_t, 3>& shape);
// Throws where the options have what a layer in training sets itself.
void check_training_options(std::string_view name, const AttentionOptions& options);

}  // namespace headlight::layers
