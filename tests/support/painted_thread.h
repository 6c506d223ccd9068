// How much of a thread's stack a call takes: a thread whose stack is filled with a pattern, and what is left of it.
#pragma once

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <stdexcept>
#include <utility>

namespace headlight::test {

class PaintedThread {
 public:
  explicit PaintedThread(std::function<void()> call) : call_(std::move(call)) {
    stack_ = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack_ == MAP_FAILED) throw std::bad_alloc();
    std::fill_n(static_cast<std::uint64_t*>(stack_), kBytes / sizeof kPaint, kPaint);
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    ::pthread_attr_setstack(&attributes, stack_, kBytes);
    const int error = ::pthread_create(&thread_, &attributes, &PaintedThread::enter, this);
    ::pthread_attr_destroy(&attributes);
    if (error != 0) throw std::runtime_error("a thread of painted stack cannot be started");
  }
  ~PaintedThread() {
    join();
    ::munmap(stack_, kBytes);
  }
  PaintedThread(const PaintedThread&) = delete;
  PaintedThread& operator=(const PaintedThread&) = delete;

  // Waits for the call. Bytes of stack that it took.
  std::size_t join() {
    if (!std::exchange(joined_, true)) ::pthread_join(thread_, nullptr);
    return used_;
  }

 private:
  static constexpr std::size_t kBytes = std::size_t{128} << 10;
  static constexpr std::uint64_t kPaint = 0xFA11ED5AFA11ED5A;

  static void* enter(void* self) {
    static_cast<PaintedThread*>(self)->run();
    return nullptr;
  }
  void run() {
    const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    call_();
    const auto* const begin = static_cast<const std::uint64_t*>(stack_);
    const auto* const end = begin + kBytes / sizeof kPaint;
    const auto* const lowest = std::find_if(begin, end, [](std::uint64_t word) { return word != kPaint; });
    used_ = here - reinterpret_cast<std::uintptr_t>(lowest);
  }

  std::function<void()> call_;
  void* stack_ = nullptr;
  pthread_t thread_{};
  bool joined_ = false;
  std::size_t used_ = 0;
};

// Bytes of stack that a call takes.
inline std::size_t stack_of(std::function<void()> call) { return PaintedThread(std::move(call)).join(); }

}  // namespace headlight::test
