// Memory to work in, of which each call has one by itself.
#pragma once

#include <array>
#include <atomic>
#include <memory>

namespace headlight::text {

// Idle ones: each call takes one, or makes one where others have them all, and brings it back, however it ends; what a
// long text took is given back by then.
template <class Held>
class IdlePool {
 public:
  IdlePool() = default;
  ~IdlePool() {
    for (const auto& held : idle_) delete held.load();
  }
  IdlePool(const IdlePool&) = delete;
  IdlePool& operator=(const IdlePool&) = delete;

  struct BringBack {
    IdlePool* pool;
    void operator()(Held* held) const noexcept { pool->bring_back(held); }
  };
  using Taken = std::unique_ptr<Held, BringBack>;

  // Throws std::bad_alloc.
  [[nodiscard]] Taken take() {
    for (auto& place : idle_) {
      if (place.load(std::memory_order_relaxed) == nullptr) continue;
      if (Held* const found = place.exchange(nullptr, std::memory_order_acquire)) return {found, {this}};
    }
    return {new Held, {this}};
  }

 private:
  void bring_back(Held* held) noexcept {
    held->forget_long_texts();
    for (auto& place : idle_) {
      Held* expected = nullptr;
      if (place.compare_exchange_strong(expected, held, std::memory_order_release, std::memory_order_relaxed)) return;
    }
    delete held;
  }

  // More calls than this at once leave nothing behind.
  std::array<std::atomic<Held*>, 16> idle_{};
};

}  // namespace headlight::text
