// Counts heap allocations, so that a test can say "the second call allocates nothing", and refuses them, so that it can
// say what happens then.
//
// A test program that links the object library `headlight_allocation_counter` has its malloc, calloc, realloc,
// aligned_alloc, posix_memalign and memalign counted, and with them every form of operator new (libstdc++ builds those
// on malloc); with another C library than glibc only operator new is. Under the address and thread sanitizers, which
// own those functions, their allocation hooks count instead (the thread sanitizer has none for aligned_alloc and its
// kind; aligned operator new is counted there too), and nothing can be refused.
#pragma once

#include <cstdint>

namespace headlight::test {

// Counts the allocations of all threads since it was made:
//   AllocationCounter counter;
//   attention(…);
//   EXPECT_EQ(counter.count(), 0);
// (Read the count before a gtest macro formats a message: that allocates.)
class AllocationCounter {
 public:
  AllocationCounter() noexcept;
  [[nodiscard]] std::int64_t count() const noexcept;

 private:
  std::int64_t begin_;
};

// As long as it lives, this thread gets memory so many times more, and then none:
//   const AllocationLimit limit(2);
class AllocationLimit {
 public:
  explicit AllocationLimit(std::int64_t granted) noexcept;
  ~AllocationLimit();
  AllocationLimit(const AllocationLimit&) = delete;
  AllocationLimit& operator=(const AllocationLimit&) = delete;
  // Whether this build can refuse anything.
  [[nodiscard]] static bool works() noexcept;
};

}  // namespace headlight::test
