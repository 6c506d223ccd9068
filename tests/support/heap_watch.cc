#include "support/heap_watch.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>

#include "support/sanitizer_allocator.h"

namespace {

// Below 0 where blocks are given back that were handed out before anybody counted.
constinit std::atomic<std::int64_t> held{0}, most_held{0};

void add(std::size_t bytes) noexcept {
  const auto size = static_cast<std::int64_t>(bytes);
  const std::int64_t now = held.fetch_add(size, std::memory_order_relaxed) + size;
  if (now > most_held.load(std::memory_order_relaxed)) most_held.store(now, std::memory_order_relaxed);
}
void take_away(std::size_t bytes) noexcept {
  held.fetch_sub(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
}

}  // namespace

#ifdef HEADLIGHT_SANITIZER_ALLOCATES

// From the sanitizers' allocator_interface.h, which g++ does not install.
extern "C" {
int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void*, std::size_t),
                                              void (*free_hook)(const volatile void*));
std::size_t __sanitizer_get_allocated_size(const volatile void* block);
}

namespace {
[[maybe_unused]] const int installed = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void*, std::size_t size) { add(size); },
    [](const volatile void* block) { take_away(block == nullptr ? 0 : __sanitizer_get_allocated_size(block)); });
}  // namespace

#else

namespace {
// In front of each block: its size, in as many bytes as keep the block aligned.
constexpr std::size_t kFront = alignof(std::max_align_t);
static_assert(kFront >= sizeof(std::size_t));
}  // namespace

void* operator new(std::size_t size) {
  void* const front = size > SIZE_MAX - kFront ? nullptr : std::malloc(size + kFront);
  if (front == nullptr) throw std::bad_alloc();
  *static_cast<std::size_t*>(front) = size;
  add(size);
  return static_cast<std::byte*>(front) + kFront;
}
void operator delete(void* block) noexcept {
  if (block == nullptr) return;
  std::byte* const front = static_cast<std::byte*>(block) - kFront;
  take_away(*reinterpret_cast<std::size_t*>(front));
  std::free(front);
}
void operator delete(void* block, std::size_t) noexcept { operator delete(block); }

#endif

namespace headlight::test {

HeapWatch::HeapWatch() noexcept : before_(held.load(std::memory_order_relaxed)) {
  most_held.store(before_, std::memory_order_relaxed);
}

std::size_t HeapWatch::most() const noexcept {
  return static_cast<std::size_t>(most_held.load(std::memory_order_relaxed) - before_);
}

HeapLimit::~HeapLimit() {
  const std::size_t taken = heap_.most(), allowed = allowed_ + (std::uncaught_exceptions() > 0 ? kMessages : 0);
  if (taken <= allowed) return;
  std::fprintf(stderr, "broken: %zu bytes of memory, expected at most %zu\n", taken, allowed);
  std::abort();
}

}  // namespace headlight::test
