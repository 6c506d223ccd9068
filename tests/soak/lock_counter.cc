#include "soak/lock_counter.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>

namespace {
constinit std::atomic<std::int64_t> locks{0};

template <class Function>
Function* counted(Function*, const char* name) noexcept {
  locks.fetch_add(1, std::memory_order_relaxed);
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}
}  // namespace

// Definitions in the program take precedence over those of the C library.
extern "C" {
#define HEADLIGHT_COUNTED(name, type) \
  __attribute__((visibility("default"))) int name(type* lock) noexcept { return counted(&name, #name)(lock); }
HEADLIGHT_COUNTED(pthread_mutex_lock, pthread_mutex_t)
HEADLIGHT_COUNTED(pthread_mutex_trylock, pthread_mutex_t)
HEADLIGHT_COUNTED(pthread_rwlock_rdlock, pthread_rwlock_t)
HEADLIGHT_COUNTED(pthread_rwlock_wrlock, pthread_rwlock_t)
HEADLIGHT_COUNTED(pthread_spin_lock, pthread_spinlock_t)
}

namespace headlight::soak {
std::int64_t locks_taken() noexcept { return locks.load(std::memory_order_relaxed); }
}  // namespace headlight::soak
