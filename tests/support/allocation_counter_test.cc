#include "support/allocation_counter.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <thread>

#include "support/sanitizer.h"

namespace headlight::test::allocation_counter_test {

// Keeps the compiler from seeing that nobody uses the memory.
void use(void* block) { asm volatile("" : : "r"(block) : "memory"); }

#if defined(__GLIBC__)  // Elsewhere operator new alone is counted.

const std::int64_t kAlignedAllocCounted = under_thread_sanitizer() ? 0 : 1;

TEST(AllocationCounter, SeesEveryKindOfAllocation) {
  struct alignas(256) Wide {
    char bytes[256];
  };
  AllocationCounter counter;
  void* plain = std::malloc(10);
  use(plain);
  const auto after_malloc = counter.count();
  void* zeroed = std::calloc(3, 5);
  use(zeroed);
  const auto after_calloc = counter.count();
  void* aligned = std::aligned_alloc(128, 256);
  use(aligned);
  const auto after_aligned = counter.count();
  void* posix = nullptr;
  const int error = posix_memalign(&posix, 64, 100);
  use(posix);
  const auto after_posix = counter.count();
  int* single = new int(3);
  use(single);
  const auto after_new = counter.count();
  Wide* wide = new Wide[2];
  use(wide);
  const auto after_aligned_new = counter.count();

  EXPECT_EQ(error, 0);
  EXPECT_EQ(after_malloc, 1);
  EXPECT_EQ(after_calloc, after_malloc + 1);
  EXPECT_EQ(after_aligned, after_calloc + kAlignedAllocCounted);
  EXPECT_EQ(after_posix, after_aligned + kAlignedAllocCounted);
  EXPECT_EQ(after_new, after_posix + 1);
  EXPECT_EQ(after_aligned_new, after_new + 1);
  std::free(plain);
  std::free(zeroed);
  std::free(aligned);
  std::free(posix);
  delete single;
  delete[] wide;
}

#endif

TEST(AllocationCounter, SeesOtherThreadsAndNotThePast) {
  std::free(std::malloc(100));
  AllocationCounter counter;
  const auto before = counter.count();
  std::thread([] { delete[] new volatile char[1000]; }).join();
  const auto after = counter.count();
  EXPECT_EQ(before, 0);
  EXPECT_GE(after, 1);
}

}  // namespace headlight::test::allocation_counter_test
