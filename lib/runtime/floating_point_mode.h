// The floating-point control word of a thread: rounding mode, denormal flags, trap masks.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace headlight::runtime {

// The control word alone, without the sticky exception flags that computing sets.
class FloatingPointMode {
 public:
  [[nodiscard]] static FloatingPointMode of_this_thread() noexcept { return FloatingPointMode(read() & ~kStickyFlags); }
  bool operator==(const FloatingPointMode&) const = default;

  void apply() const noexcept {
#if defined(__x86_64__)
    _mm_setcsr(static_cast<std::uint32_t>(bits_));
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(bits_));
#endif
  }

 private:
  explicit FloatingPointMode(std::uint64_t bits) noexcept : bits_(bits) {}

#if defined(__x86_64__)
  static constexpr std::uint64_t kStickyFlags = 0x3F;
  static std::uint64_t read() noexcept { return _mm_getcsr(); }
#elif defined(__aarch64__)
  static constexpr std::uint64_t kStickyFlags = 0;  // they live in FPSR
  static std::uint64_t read() noexcept {
    std::uint64_t bits = 0;
    __asm__ volatile("mrs %0, fpcr" : "=r"(bits));
    return bits;
  }
#else
  static constexpr std::uint64_t kStickyFlags = 0;
  static std::uint64_t read() noexcept { return 0; }
#endif

  std::uint64_t bits_;
};

// Computes in another thread's mode for a while. A thread keeps the mode that it was started in, so a caller who sets
// flush-to-zero later would otherwise get other bits from a worker than from its own thread.
class ScopedFloatingPointMode {
 public:
  explicit ScopedFloatingPointMode(FloatingPointMode mode) noexcept
      : previous_(FloatingPointMode::of_this_thread()), changed_(!(mode == previous_)) {
    if (changed_) mode.apply();
  }
  ~ScopedFloatingPointMode() {
    if (changed_) previous_.apply();
  }
  ScopedFloatingPointMode(const ScopedFloatingPointMode&) = delete;
  ScopedFloatingPointMode& operator=(const ScopedFloatingPointMode&) = delete;

 private:
  FloatingPointMode previous_;
  bool changed_;
};

}  // namespace headlight::runtime
