// The scratch memory of a training step before it is run: every block that its calls borrow, in their order, from an
// account of the engine's pool. The comments of training_scratch.cc name the buffer behind each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "headlight/engine.h"
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

// y [rows, out] = x Wᵀ with weights that are open, as they are in training: packed as they are read.
void pass_linear(const Engine& engine, std::int64_t rows, std::int64_t in, std::int64_t out, ScratchAccount& account);
// dW += dyᵀ x, db += Σ dy, dx = dy W (+ residual).
void pass_linear_backward(const Engine& engine, std::int64_t rows, std::int64_t in, std::int64_t out, bool bias,
                          ScratchAccount& account, bool adds_to_itself = false);

// [rows, columns] as layers keep them in scratch memory and in a saved state.
[[nodiscard]] std::size_t rows_bytes(std::int64_t rows, std::int64_t columns) noexcept;

}  // namespace headlight::analysis
