#include "runtime/word_wait.h"

#if defined(_WIN32)
// std::atomic::wait of libstdc++ 12 is a condition variable on Windows, which is told of a change without its mutex:
// between the look and the sleep that is missed, and the thread sleeps for ever.
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#elif defined(__linux__)
// And std::atomic::wait has no limit: here all three are futex(2), which it is made of.
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>
#else
#include <thread>
#endif

namespace headlight::runtime {

#if defined(_WIN32)

void wait_while(const std::atomic<int>& word, int value) noexcept {
  auto* const address = const_cast<std::atomic<int>*>(&word);
  while (word.load(std::memory_order_acquire) == value) WaitOnAddress(address, &value, sizeof value, INFINITE);
}

bool wait_while(const std::atomic<int>& word, int value, std::chrono::milliseconds limit) noexcept {
  if (word.load(std::memory_order_acquire) != value) return true;
  WaitOnAddress(const_cast<std::atomic<int>*>(&word), &value, sizeof value, static_cast<DWORD>(limit.count()));
  return word.load(std::memory_order_acquire) != value;
}

void wake_one(std::atomic<int>& word) noexcept { WakeByAddressSingle(&word); }

#elif defined(__linux__)

namespace {

// Sleeps if the word still holds that value, until it is woken, a signal comes or the time is over.
void sleep_on(const std::atomic<int>& word, int value, const timespec* limit) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, limit, nullptr, 0);
}

}  // namespace

void wait_while(const std::atomic<int>& word, int value) noexcept {
  while (word.load(std::memory_order_acquire) == value) sleep_on(word, value, nullptr);
}

bool wait_while(const std::atomic<int>& word, int value, std::chrono::milliseconds limit) noexcept {
  if (word.load(std::memory_order_acquire) != value) return true;
  const timespec time{.tv_sec = limit.count() / 1000, .tv_nsec = limit.count() % 1000 * 1'000'000};
  sleep_on(word, value, &time);
  return word.load(std::memory_order_acquire) != value;
}

void wake_one(std::atomic<int>& word) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

#else

void wait_while(const std::atomic<int>& word, int value) noexcept { word.wait(value, std::memory_order_acquire); }

bool wait_while(const std::atomic<int>& word, int value, std::chrono::milliseconds limit) noexcept {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (word.load(std::memory_order_acquire) == value) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

void wake_one(std::atomic<int>& word) noexcept { word.notify_one(); }

#endif

}  // namespace headlight::runtime
