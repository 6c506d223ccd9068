// Memory and threads: they can be refused, and what is live is counted.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "faults/inject.h"

using headlight::faults::board;
using headlight::faults::Effect;
using headlight::faults::effect_on;
using headlight::faults::is_refused;
using headlight::faults::Kind;
using headlight::faults::next;

namespace {

void* counted(void* block) noexcept {
  if (block != nullptr) board().live_allocations.fetch_add(1, std::memory_order_relaxed);
  return block;
}

void* mapped(void* address, size_t bytes, int protection, int flags, int descriptor, off_t offset) noexcept {
  const Effect effect = effect_on(Kind::map);
  if (effect == Effect::fail) {
    errno = board().number.load(std::memory_order_relaxed);
    return MAP_FAILED;
  }
  const long found = syscall(SYS_mmap, address, bytes, protection, flags, descriptor, offset);
  if (effect == Effect::shrink) {  // by another descriptor of it, one that writes
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    [[maybe_unused]] const int cut = truncate(path, 0);
  }
  if (found != -1) board().live_mappings.fetch_add(1, std::memory_order_relaxed);
  return reinterpret_cast<void*>(found);
}

}  // namespace

// glibc keeps its own under these names.
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* block, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void __libc_free(void* block);

HEADLIGHT_INTERPOSED void* malloc(size_t size) {
  return is_refused(Kind::allocation) ? nullptr : counted(__libc_malloc(size));
}

HEADLIGHT_INTERPOSED void* calloc(size_t count, size_t size) {
  return is_refused(Kind::allocation) ? nullptr : counted(__libc_calloc(count, size));
}

HEADLIGHT_INTERPOSED void* realloc(void* block, size_t size) {
  if (block == nullptr) return malloc(size);
  if (size > 0 && is_refused(Kind::allocation)) return nullptr;
  void* const grown = __libc_realloc(block, size);
  if (grown == nullptr && size == 0) board().live_allocations.fetch_sub(1, std::memory_order_relaxed);
  return grown;
}

HEADLIGHT_INTERPOSED void* memalign(size_t alignment, size_t size) {
  return is_refused(Kind::allocation) ? nullptr : counted(__libc_memalign(alignment, size));
}

HEADLIGHT_INTERPOSED void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

HEADLIGHT_INTERPOSED int posix_memalign(void** block, size_t alignment, size_t size) {
  if (alignment < sizeof(void*) || (alignment & (alignment - 1)) != 0) return EINVAL;
  void* const found = memalign(alignment, size);
  if (found == nullptr) return ENOMEM;
  *block = found;
  return 0;
}

HEADLIGHT_INTERPOSED void free(void* block) {
  if (block != nullptr) board().live_allocations.fetch_sub(1, std::memory_order_relaxed);
  __libc_free(block);
}

HEADLIGHT_INTERPOSED void* mmap(void* address, size_t bytes, int protection, int flags, int descriptor, off_t offset) {
  return mapped(address, bytes, protection, flags, descriptor, offset);
}

HEADLIGHT_INTERPOSED void* mmap64(void* address, size_t bytes, int protection, int flags, int descriptor,
                                  off_t offset) {
  return mapped(address, bytes, protection, flags, descriptor, offset);
}

HEADLIGHT_INTERPOSED int munmap(void* address, size_t bytes) {
  const long done = syscall(SYS_munmap, address, bytes);
  if (done == 0) board().live_mappings.fetch_sub(1, std::memory_order_relaxed);
  return static_cast<int>(done);
}

// These give their error back, and leave errno alone.
HEADLIGHT_INTERPOSED int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                                        void* argument) {
  static auto* const real = next(&pthread_create, "pthread_create");
  if (is_refused(Kind::thread)) return board().number.load(std::memory_order_relaxed);
  const int error = real(thread, attributes, start, argument);
  if (error == 0) board().live_threads.fetch_add(1, std::memory_order_relaxed);
  return error;
}

HEADLIGHT_INTERPOSED int pthread_join(pthread_t thread, void** result) {
  static auto* const real = next(&pthread_join, "pthread_join");
  const int error = real(thread, result);
  if (error == 0) board().live_threads.fetch_sub(1, std::memory_order_relaxed);
  return error;
}
}  // extern "C"
