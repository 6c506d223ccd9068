// Memory for what is read again and again from end to end: weights.
#pragma once

#include <cstddef>

namespace headlight::runtime {

// At least 64-byte aligned, not cleared; throws std::bad_alloc. From 2 MiB on (or nearly so much) it begins on a
// multiple of that, and the system is asked for pages of that size: on Linux, with transparent huge pages not switched
// off, a sweep over it then translates an address every 2 MiB rather than every 4 KiB, and hardware prefetchers, which
// stop at the end of a page, run through.
[[nodiscard]] std::byte* allocate_large(std::size_t bytes);
void release_large(std::byte* data, std::size_t bytes) noexcept;

}  // namespace headlight::runtime
