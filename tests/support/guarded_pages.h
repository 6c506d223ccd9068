// Pages of memory between two that nobody may touch, of the system itself.
#pragma once

#include <cstddef>
#include <new>

#if defined(_WIN32)
// Its macros min and max are everybody's names.
#ifndef NOMINMAX
#define NOMINMAX
#endif
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace headlight::test {

class GuardedPages {
 public:
  // At least so many bytes, zero, that may be read and written.
  explicit GuardedPages(std::size_t bytes) : page_(page_size()), inner_((bytes + page_ - 1) / page_ * page_) {
#if defined(_WIN32)
    base_ = static_cast<std::byte*>(VirtualAlloc(nullptr, inner_ + 2 * page_, MEM_RESERVE, PAGE_NOACCESS));
    if (base_ == nullptr) throw std::bad_alloc();
    if (inner_ != 0 && VirtualAlloc(begin(), inner_, MEM_COMMIT, PAGE_READWRITE) == nullptr) throw std::bad_alloc();
#else
    void* const memory = mmap(nullptr, inner_ + 2 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    base_ = static_cast<std::byte*>(memory);
    if (inner_ != 0 && mprotect(begin(), inner_, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
#endif
  }
  ~GuardedPages() {
#if defined(_WIN32)
    VirtualFree(base_, 0, MEM_RELEASE);
#else
    munmap(base_, inner_ + 2 * page_);
#endif
  }
  GuardedPages(const GuardedPages&) = delete;
  GuardedPages& operator=(const GuardedPages&) = delete;

  // A guard page ends where these bytes begin, another one begins where they end.
  [[nodiscard]] std::byte* begin() const noexcept { return base_ + page_; }
  [[nodiscard]] std::byte* end() const noexcept { return begin() + inner_; }

 private:
  static std::size_t page_size() noexcept {
#if defined(_WIN32)
    SYSTEM_INFO system;
    GetSystemInfo(&system);
    return system.dwPageSize;
#else
    return static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
#endif
  }

  const std::size_t page_;
  const std::size_t inner_;
  std::byte* base_ = nullptr;
};

}  // namespace headlight::test
