// The scratch memory of an engine: blocks that calls borrow and give back.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>

#include "runtime/job.h"

namespace headlight::runtime {

// A bounded set of blocks, each borrowed by one call at a time; no lock, and no allocation once the blocks have grown
// to what is asked. The smallest idle block that fits is taken, so a repeated sequence of nested requests, which once
// was served, is served again without allocation: a small request never takes a block that a larger one needs.
class ScratchPool {
 public:
  // Calls in flight times their nesting; more than that get memory of their own for the time of the call.
  static constexpr int kSlots = 64;
  // Of every block: the widest vector, and workers that write to neighbouring parts share no pair of cache lines.
  static constexpr std::size_t kAlignment = 128;

  struct Block {
    std::byte* data = nullptr;
    int slot = kNoSlot;
  };

  ScratchPool() = default;
  ~ScratchPool();
  ScratchPool(const ScratchPool&) = delete;
  ScratchPool& operator=(const ScratchPool&) = delete;

  // A block of at least so many bytes (no data for 0). Throws std::bad_alloc.
  [[nodiscard]] Block borrow(std::size_t bytes);
  void give_back(const Block& block) noexcept;

  // Bytes held, borrowed or idle.
  [[nodiscard]] std::size_t bytes() const noexcept;
  // Frees every idle block.
  void release_idle() noexcept;

 private:
  static constexpr int kNoSlot = -1;

  struct Slot {
    std::atomic<bool> borrowed{false};
    // Written by the borrower alone; others read it to choose.
    std::atomic<std::size_t> capacity{0};
    std::byte* data = nullptr;
  };

  // Claims the smallest idle slot of at least `bytes`, else the largest idle one; kNoSlot when none is idle.
  [[nodiscard]] int claim(std::size_t bytes) noexcept;
  // Moves the mark to behind so many slots, never back.
  void touch(int slots) noexcept;
  // Both for a claimed slot.
  static void grow(Slot& slot, std::size_t bytes);
  static void clear(Slot& slot) noexcept;

  std::array<Slot, kSlots> slots_;
  // Slots behind this one have never been borrowed; keeps the search short.
  std::atomic<int> touched_{0};
};

}  // namespace headlight::runtime
