// Memory of any size, writable to its last byte, on huge pages from nearly one of them on.
#include "runtime/large_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <new>

namespace headlight::runtime::large_memory_test {

TEST(LargeMemory, IsAlignedAndWritable) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, kHugePage / 2, kHugePage - 4096, kHugePage,
                                  kHugePage + 4, 3 * kHugePage - 4096}) {
    std::byte* const data = allocate_large(bytes);
    ASSERT_NE(data, nullptr);
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    EXPECT_EQ(address % (bytes >= kHugePage - 4096 ? kHugePage : 64), 0u);
    std::memset(data, 7, bytes);
    release_large(data, bytes);
  }
}

TEST(LargeMemory, RefusesWhatCannotBe) { EXPECT_THROW(static_cast<void>(allocate_large(SIZE_MAX)), std::bad_alloc); }

}  // namespace headlight::runtime::large_memory_test
