#include "runtime/large_memory.h"

#include <cstdint>
#include <new>

#if __has_include(<sys/mman.h>)
#include <sys/mman.h>
#endif

namespace headlight::runtime {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kLine = 64;

bool is_huge(std::size_t bytes) noexcept { return bytes >= kHugePage - kHugePage / 8; }

// Up to a whole huge page where that wastes no more than an eighth of one. What is left over lies in small pages.
std::size_t rounded(std::size_t bytes) noexcept {
  const std::size_t missing = (kHugePage - bytes % kHugePage) % kHugePage;
  return missing <= kHugePage / 8 ? bytes + missing : bytes;
}

std::align_val_t alignment_of(std::size_t bytes) noexcept {
  return std::align_val_t{is_huge(bytes) ? kHugePage : kLine};
}

}  // namespace

std::byte* allocate_large(std::size_t bytes) {
  // libstdc++ rounds the size up to the alignment without looking whether that wraps around.
  if (bytes > PTRDIFF_MAX) throw std::bad_alloc();
  if (!is_huge(bytes)) return static_cast<std::byte*>(::operator new(bytes, alignment_of(bytes)));
  const std::size_t size = rounded(bytes);
  auto* data = static_cast<std::byte*>(::operator new(size, alignment_of(bytes)));
#if defined(MADV_HUGEPAGE)
  // A wish: where it is not granted, everything works as before.
  static_cast<void>(madvise(data, size / kHugePage * kHugePage, MADV_HUGEPAGE));
#endif
  return data;
}

void release_large(std::byte* data, std::size_t bytes) noexcept { ::operator delete(data, alignment_of(bytes)); }

}  // namespace headlight::runtime
