#include "runtime/word_wait.h"

#if defined(_WIN32)
// std::atomic::wait of libstdc++ 12 is a condition variable on Windows, which is told of a change without its mutex:
// between the look and the sleep that is missed, and the thread sleeps for ever.
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#endif

namespace headlight::runtime {

#if defined(_WIN32)

void wait_while(const std::atomic<int>& word, int value) noexcept {
  auto* const address = const_cast<std::atomic<int>*>(&word);
  while (word.load(std::memory_order_acquire) == value) WaitOnAddress(address, &value, sizeof value, INFINITE);
}

void wake_one(std::atomic<int>& word) noexcept { WakeByAddressSingle(&word); }

#else

void wait_while(const std::atomic<int>& word, int value) noexcept { word.wait(value, std::memory_order_acquire); }

void wake_one(std::atomic<int>& word) noexcept { word.notify_one(); }

#endif

}  // namespace headlight::runtime
