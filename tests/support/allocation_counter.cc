#include "support/allocation_counter.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <new>

#include "support/sanitizer_allocator.h"

namespace {
// Constant-initialised: the first malloc comes long before any constructor of ours.
constinit std::atomic<std::int64_t> allocations{0};
void count_one() noexcept { allocations.fetch_add(1, std::memory_order_relaxed); }

// What is left of a limit; without one there is no end to it.
constinit thread_local std::int64_t granted = INT64_MAX;
}  // namespace

#ifdef HEADLIGHT_SANITIZER_ALLOCATES

#include <dirent.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

// From the sanitizers' allocator_interface.h, which g++ does not install.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void*, std::size_t),
                                                         void (*free_hook)(const volatile void*));

namespace {
// Installed before main(); the free hook must not be null.
[[maybe_unused]] const int installed = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void*, std::size_t) { count_one(); }, [](const volatile void*) {});

// Whether a thread of this process sleeps, as "PID (NAME) S" of its `stat` says, or is no more.
bool sleeps(const std::string& task) {
  std::FILE* const file = std::fopen(("/proc/self/task/" + task + "/stat").c_str(), "r");
  if (file == nullptr) return true;
  char text[256] = "";
  const std::size_t size = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  text[size] = '\0';
  const char* const name_ends = std::strrchr(text, ')');
  return name_ends == nullptr || std::strncmp(name_ends, ") S", 3) == 0;
}

bool all_others_sleep() {
  DIR* const folder = ::opendir("/proc/self/task");
  if (folder == nullptr) return true;
  const std::string own = std::to_string(::gettid());
  bool all = true;
  while (const dirent* const entry = ::readdir(folder)) {
    const std::string task = entry->d_name;
    if (task[0] != '.' && task != own && !sleeps(task)) all = false;
  }
  ::closedir(folder);
  return all;
}

// A thread that begins asks for memory on the sanitizer's account, which may be long after it was made. Those that have
// begun sleep soon, unless they have work.
void wait_for_new_threads() {
  for (int attempt = 0; attempt < 500 && !all_others_sleep(); ++attempt) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}
}  // namespace

#else

namespace {
void wait_for_new_threads() {}

// Counts an allocation, and says whether it is refused.
bool is_refused() noexcept {
  if (granted == 0) return true;
  if (granted != INT64_MAX) --granted;
  count_one();
  return false;
}
}  // namespace

#if defined(__GLIBC__)

// Definitions in the program take precedence over those of the C library, for every library in the process; glibc keeps
// its own under these names.
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* block, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

__attribute__((visibility("default"))) void* malloc(std::size_t size) {
  if (is_refused()) return nullptr;
  return __libc_malloc(size);
}

__attribute__((visibility("default"))) void* calloc(std::size_t count, std::size_t size) {
  if (is_refused()) return nullptr;
  return __libc_calloc(count, size);
}

__attribute__((visibility("default"))) void* realloc(void* block, std::size_t size) {
  if (is_refused()) return nullptr;
  return __libc_realloc(block, size);
}

__attribute__((visibility("default"))) void* memalign(std::size_t alignment, std::size_t size) {
  if (is_refused()) return nullptr;
  return __libc_memalign(alignment, size);
}

__attribute__((visibility("default"))) void* aligned_alloc(std::size_t alignment, std::size_t size) {
  if (is_refused()) return nullptr;
  return __libc_memalign(alignment, size);
}

__attribute__((visibility("default"))) int posix_memalign(void** block, std::size_t alignment, std::size_t size) {
  if (alignment < sizeof(void*) || (alignment & (alignment - 1)) != 0) return EINVAL;
  if (is_refused()) return ENOMEM;
  void* const allocated = __libc_memalign(alignment, size);
  if (allocated == nullptr) return ENOMEM;
  *block = allocated;
  return 0;
}
}  // extern "C"

#else  // Another C library: operator new alone, which is all that the libraries ask.

namespace {
void* allocate_or_throw(std::size_t size, std::size_t alignment) {
  if (is_refused()) throw std::bad_alloc();
#if defined(_WIN32)
  void* const block = _aligned_malloc(size, alignment);
#else
  void* const block = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
#endif
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

void release(void* block) noexcept {
#if defined(_WIN32)
  _aligned_free(block);
#else
  std::free(block);
#endif
}
}  // namespace

void* operator new(std::size_t size) { return allocate_or_throw(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* block) noexcept { release(block); }
void operator delete(void* block, std::size_t) noexcept { release(block); }
void operator delete(void* block, std::align_val_t) noexcept { release(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { release(block); }

#endif

#endif

namespace headlight::test {

AllocationLimit::AllocationLimit(std::int64_t granted_) noexcept { granted = granted_; }
AllocationLimit::~AllocationLimit() { granted = INT64_MAX; }

bool AllocationLimit::works() noexcept {
#ifdef HEADLIGHT_SANITIZER_ALLOCATES
  return false;
#else
  return true;
#endif
}

AllocationCounter::AllocationCounter() noexcept {
  wait_for_new_threads();
  begin_ = allocations.load(std::memory_order_relaxed);
}

std::int64_t AllocationCounter::count() const noexcept { return allocations.load(std::memory_order_relaxed) - begin_; }

}  // namespace headlight::test
