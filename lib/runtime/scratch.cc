#include "runtime/scratch.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "headlight/out_of_memory.h"
#include "runtime/engine_state.h"
#include "runtime/parallel.h"
#include "runtime/slot_choice.h"

namespace headlight::runtime {
namespace {

// No alignment to huge pages and no madvise: the blocks that operations ask for are some hundred KiB, or panels that
// are written and read from end to end, and where one reaches 2 MiB the pages are touched first once only.
std::byte* allocate(std::size_t bytes) {
  // libstdc++ rounds the size up to the alignment without looking whether that wraps around.
  if (bytes > PTRDIFF_MAX) throw std::bad_alloc();
  return static_cast<std::byte*>(::operator new (bytes, std::align_val_t{ScratchPool::kAlignment}));
}

void release(std::byte* data) noexcept { ::operator delete (data, std::align_val_t{ScratchPool::kAlignment}); }

}  // namespace

ScratchPool::~ScratchPool() {
  for (Slot& slot : slots_) release(slot.data);
}

ScratchPool::Block ScratchPool::borrow(std::size_t bytes) {
  if (bytes == 0) return {};
  const int index = claim(bytes);
  if (index == kNoSlot) return {allocate(bytes), kNoSlot};
  Slot& slot = slots_[static_cast<std::size_t>(index)];
  if (slot.capacity.load(std::memory_order_relaxed) < bytes) {
    try {
      grow(slot, bytes);
    } catch (...) {
      slot.borrowed.store(false, std::memory_order_release);
      throw;
    }
  }
  return {slot.data, index};
}

void ScratchPool::give_back(const Block& block) noexcept {
  if (block.slot == kNoSlot) {
    release(block.data);
  } else {
    slots_[static_cast<std::size_t>(block.slot)].borrowed.store(false, std::memory_order_release);
  }
}

void ScratchPool::touch(int slots) noexcept {
  int before = touched_.load(std::memory_order_relaxed);
  while (before < slots && !touched_.compare_exchange_weak(before, slots, std::memory_order_relaxed)) {
  }
}

int ScratchPool::claim(std::size_t bytes) noexcept {
  for (;;) {
    const int touched = touched_.load(std::memory_order_relaxed);
    const SlotChoice best =
        choose_slot(std::min(touched + 1, kSlots), bytes, [&](int index) -> std::optional<std::size_t> {
          const Slot& slot = slots_[static_cast<std::size_t>(index)];
          if (slot.borrowed.load(std::memory_order_relaxed)) return std::nullopt;
          return slot.capacity.load(std::memory_order_relaxed);
        });
    if (best.index < 0) {
      if (touched >= kSlots) return kNoSlot;
      // All are borrowed, and whoever has the slot behind the mark has not moved it yet.
      touch(touched + 1);
      continue;
    }
    Slot& slot = slots_[static_cast<std::size_t>(best.index)];
    if (slot.borrowed.exchange(true, std::memory_order_acquire)) continue;
    if (slot.capacity.load(std::memory_order_relaxed) == best.capacity) {
      touch(best.index + 1);
      return best.index;
    }
    slot.borrowed.store(false, std::memory_order_release);
  }
}

void ScratchPool::grow(Slot& slot, std::size_t bytes) {
  clear(slot);
  const std::size_t rounded = slot_capacity(bytes);
  slot.data = allocate(rounded);
  slot.capacity.store(rounded, std::memory_order_relaxed);
}

void ScratchPool::clear(Slot& slot) noexcept {
  slot.capacity.store(0, std::memory_order_relaxed);
  release(slot.data);
  slot.data = nullptr;
}

std::size_t ScratchPool::bytes() const noexcept {
  const auto touched = static_cast<std::size_t>(std::min(touched_.load(std::memory_order_relaxed) + 1, kSlots));
  std::size_t sum = 0;
  for (std::size_t slot = 0; slot < touched; ++slot) sum += slots_[slot].capacity.load(std::memory_order_relaxed);
  return sum;
}

void ScratchPool::release_idle() noexcept {
  for (Slot& slot : slots_) {
    if (slot.borrowed.exchange(true, std::memory_order_acquire)) continue;
    clear(slot);
    slot.borrowed.store(false, std::memory_order_release);
  }
}

Scratch::Scratch(Engine& engine, std::size_t bytes, std::string_view who) : engine_(&engine.state()) {
  try {
    const ScratchPool::Block block = engine_->scratch.borrow(bytes);
    slot_ = block.slot;
    data_ = block.data;
  } catch (const std::bad_alloc&) {
    throw OutOfMemory(who, bytes);
  }
}

Scratch::~Scratch() { engine_->scratch.give_back({data_, slot_}); }

void reserve_scratch(Engine& engine, const std::size_t* sizes, std::size_t count, std::string_view who) try {
  // All at once, and the largest first, so that none takes a block that a larger one could have had.
  std::vector<std::size_t> sorted(sizes, sizes + count);
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  std::vector<std::unique_ptr<Scratch>> held;
  for (const std::size_t size : sorted) held.push_back(std::make_unique<Scratch>(engine, size, who));
} catch (const OutOfMemory&) {
  throw;
} catch (const std::bad_alloc&) {  // of the lists here
  throw OutOfMemory(who, count * (sizeof(std::size_t) + sizeof(std::unique_ptr<Scratch>) + sizeof(Scratch)));
}

}  // namespace headlight::runtime
