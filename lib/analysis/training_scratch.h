// The scratch memory of a training step before it is run: every block that its calls borrow, in their order, from an
// account of the engine's pool. The comments of training_scratch.cc name the buffer behind each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "headlight/engine.h"
#include "headlight/layers/transformer.h"
#include "runtime/scratch.h"

namespace headlight::analysis {

// What the pool of an engine that runs nothing else would hold: blocks grow, and are chosen as the pool chooses them.
class ScratchAccount {
 public:
  // A block, given back with it.
  class Loan {
   public:
    Loan(ScratchAccount& account, std::size_t bytes) noexcept : account_(account), slot_(account.borrow(bytes)) {}
    ~Loan() {
      if (slot_ >= 0) account_.borrowed_[static_cast<std::size_t>(slot_)] = false;
    }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;

   private:
    ScratchAccount& account_;
    int slot_;
  };

  // Borrowed and given back at once.
  void pass(std::size_t bytes) noexcept { const Loan loan(*this, bytes); }
  [[nodiscard]] std::size_t bytes() const noexcept;

 private:
  [[nodiscard]] int borrow(std::size_t bytes) noexcept;

  static constexpr std::size_t kSlots = runtime::ScratchPool::kSlots;
  std::array<std::size_t, kSlots> capacity_{};
  std::array<bool, kSlots> borrowed_{};
  std::size_t touched_ = 0;
};

// A TransformerEncoderLayer and what it is given.
struct TrainedLayer {
  std::int64_t batch = 1;
  std::int64_t length = 0;
  std::int64_t width = 0;
  std::int64_t heads = 1;
  std::int64_t hidden = 0;
  Norm norm = Norm::post;
  Merge merge = Merge::concatenate;
  bool bias = true;
  float dropout = 0;
  bool unfused = false;
  std::int64_t kept_columns = 0;

  [[nodiscard]] std::int64_t rows() const noexcept { return batch * length; }
  // The columns that W_O takes, and those of what weighs or gates each query.
  [[nodiscard]] std::int64_t merged_columns() const noexcept;
  [[nodiscard]] std::int64_t mixing_columns() const noexcept;
};

// y [rows, out] = x Wᵀ with weights that are open, as they are in training: packed as they are read.
void pass_linear(const Engine& engine, std::int64_t rows, std::int64_t in, std::int64_t out, ScratchAccount& account);
// dW += dyᵀ x, db += Σ dy, dx = dy W (+ residual).
void pass_linear_backward(const Engine& engine, std::int64_t rows, std::int64_t in, std::int64_t out, bool bias,
                          ScratchAccount& account, bool adds_to_itself = false);

// [rows, columns] as layers keep them in scratch memory and in a saved state.
[[nodiscard]] std::size_t rows_bytes(std::int64_t rows, std::int64_t columns) noexcept;
// TransformerEncoderLayer::saved_bytes().
[[nodiscard]] std::size_t layer_saved_bytes(const TrainedLayer& layer) noexcept;

// What forward_from() and backward_from() of the layer borrow. `gives`: whether the output is wanted.
void walk_forward(const Engine& engine, const TrainedLayer& layer, bool gives, ScratchAccount& account);
void walk_backward(const Engine& engine, const TrainedLayer& layer, ScratchAccount& account);

}  // namespace headlight::analysis
