// Scratch blocks: aligned, apart from each other, and the same ones the next time.
#include "runtime/scratch.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

#include "headlight/engine.h"
#include "runtime/parallel.h"
#include "support/allocation_counter.h"
#include "support/sanitizer.h"

namespace headlight::runtime::scratch_test {

constexpr std::string_view kName = "a test";

EngineOptions single() {
  EngineOptions options;
  options.threads = 1;
  options.isa = Isa::scalar;
  return options;
}

TEST(Scratch, IsAlignedAndKept) {
  Engine engine(single());
  EXPECT_EQ(engine.scratch_bytes(), 0U);
  std::byte* first = nullptr;
  {
    Scratch scratch(engine, 1000, kName);
    first = scratch.data();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 128, 0U);
    std::memset(first, 1, 1000);
  }
  EXPECT_GE(engine.scratch_bytes(), 1000U);
  EXPECT_EQ(Scratch(engine, 1000, kName).data(), first);
  EXPECT_EQ(Scratch(engine, 1, kName).data(), first);
  engine.release_scratch();
  EXPECT_EQ(engine.scratch_bytes(), 0U);
}

TEST(Scratch, OfNothingIsNothing) {
  Engine engine(single());
  Scratch scratch(engine, 0, kName);
  EXPECT_EQ(engine.scratch_bytes(), 0U);
}

TEST(Scratch, NestedBlocksLieApart) {
  Engine engine(single());
  Scratch outer(engine, 5000, kName), middle(engine, 5000, kName), inner(engine, 5000, kName);
  std::memset(outer.data(), 1, 5000);
  std::memset(middle.data(), 2, 5000);
  std::memset(inner.data(), 3, 5000);
  EXPECT_EQ(outer.data()[4999], std::byte{1});
  EXPECT_EQ(middle.data()[0], std::byte{2});
  EXPECT_EQ(middle.data()[4999], std::byte{2});
  EXPECT_EQ(inner.data()[0], std::byte{3});
}

TEST(Scratch, TakesTheSmallestThatFitsAndRegrowsTheLargest) {
  Engine engine(single());
  std::byte* small = nullptr;
  std::byte* large = nullptr;
  {
    Scratch a(engine, 4096, kName), b(engine, 16384, kName);
    small = a.data();
    large = b.data();
  }
  EXPECT_EQ(Scratch(engine, 100, kName).data(), small);
  EXPECT_EQ(Scratch(engine, 4096, kName).data(), small);
  EXPECT_EQ(Scratch(engine, 4097, kName).data(), large);
  EXPECT_EQ(engine.scratch_bytes(), 4096U + 16384U);
  { Scratch grown(engine, 65536, kName); }
  EXPECT_EQ(engine.scratch_bytes(), 4096U + 65536U);
  EXPECT_EQ(Scratch(engine, 100, kName).data(), small);
}

// Nested calls of random sizes and depths, the same sequence again and again.
void run_sequence(Engine& engine, std::uint32_t seed, int depth) {
  std::uint32_t state = seed;
  const auto next = [&state] { return state = state * 1664525U + 1013904223U; };
  for (int call = 0; call < 4; ++call) {
    const std::size_t bytes = (next() >> 16) % 60000 + 1;
    Scratch scratch(engine, bytes, kName);
    scratch.data()[bytes - 1] = std::byte{1};
    if (depth > 0 && (next() >> 24) % 3 != 0) run_sequence(engine, next(), depth - 1);
  }
}

TEST(Scratch, RepeatedSequenceAllocatesNothing) {
  for (std::uint32_t seed = 1; seed <= 30; ++seed) {
    Engine engine(single());
    run_sequence(engine, seed, 4);
    const std::size_t bytes = engine.scratch_bytes();
    const test::AllocationCounter counter;
    run_sequence(engine, seed, 4);
    const std::int64_t allocations = counter.count();
    EXPECT_EQ(allocations, 0) << "seed " << seed;
    EXPECT_EQ(engine.scratch_bytes(), bytes);
  }
}

TEST(Scratch, ReservedSizesAllocateNothing) {
  const std::array<std::size_t, 4> sizes = {3000, 100000, 3000, 50000};
  Engine engine(single());
  { Scratch earlier(engine, 60000, kName); }
  reserve_scratch(engine, sizes.data(), sizes.size(), kName);
  const test::AllocationCounter counter;
  {
    Scratch a(engine, sizes[0], kName), b(engine, sizes[1], kName), c(engine, sizes[2], kName),
        d(engine, sizes[3], kName);
    b.data()[sizes[1] - 1] = std::byte{1};
  }
  EXPECT_EQ(counter.count(), 0);
  reserve_scratch(engine, nullptr, 0, kName);
}

TEST(Scratch, MoreThanTheSlotsIsStillServed) {
  Engine engine(single());
  std::vector<std::unique_ptr<Scratch>> held;
  for (int index = 0; index < ScratchPool::kSlots + 20; ++index) {
    held.push_back(std::make_unique<Scratch>(engine, 500, kName));
    std::memset(held.back()->data(), index & 0xFF, 500);
  }
  for (std::size_t index = 0; index < held.size(); ++index) {
    EXPECT_EQ(held[index]->data()[0], static_cast<std::byte>(index & 0xFF));
    EXPECT_EQ(held[index]->data()[499], static_cast<std::byte>(index & 0xFF));
  }
  const std::size_t bytes = engine.scratch_bytes();
  engine.release_scratch();
  EXPECT_EQ(engine.scratch_bytes(), bytes);  // all in use
  held.clear();
  engine.release_scratch();
  EXPECT_EQ(engine.scratch_bytes(), 0U);
}

// Of callers that borrow for the first time all at once, none is served beside the slots.
TEST(Scratch, CallersAtOnceEachHaveASlot) {
  constexpr int kCallers = 4;
  constexpr std::size_t kBytes = 4096;
  for (int round = 0; round < 1000; ++round) {
    ScratchPool pool;
    std::atomic<int> waiting{kCallers};
    const auto meet = [&waiting](int until) {
      waiting.fetch_sub(1);
      while (waiting.load() > until) std::this_thread::yield();
    };
    std::vector<std::thread> callers;
    for (int caller = 0; caller < kCallers; ++caller) {
      callers.emplace_back([&] {
        meet(0);
        const ScratchPool::Block block = pool.borrow(kBytes);
        meet(-kCallers);
        pool.give_back(block);
      });
    }
    for (std::thread& caller : callers) caller.join();
    ASSERT_EQ(pool.bytes(), kCallers * kBytes) << "round " << round;
  }
}

// The sanitizers' allocators report an impossible size instead of refusing it.
TEST(Scratch, OutOfMemoryIsBadAllocAndLeavesTheEngineUsable) {
  if (test::under_sanitizer()) GTEST_SKIP() << "a sanitizer's allocator";
  Engine engine(single());
  { Scratch scratch(engine, 1000, kName); }
  for (const std::size_t bytes :
       {std::numeric_limits<std::size_t>::max() / 2, std::numeric_limits<std::size_t>::max()}) {
    EXPECT_THROW(Scratch(engine, bytes, kName), std::bad_alloc);
    const std::array<std::size_t, 2> sizes = {100, bytes};
    EXPECT_THROW(reserve_scratch(engine, sizes.data(), sizes.size(), kName), std::bad_alloc);
  }
  Scratch scratch(engine, 2000, kName);
  std::memset(scratch.data(), 1, 2000);
}

TEST(Scratch, ManyThreadsBorrowAtOnce) {
  Engine engine(single());
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&engine, &wrong, thread] {
      for (int round = 0; round < 300; ++round) {
        const std::size_t bytes = static_cast<std::size_t>(100 + (round * 37 + thread * 1000) % 5000);
        Scratch scratch(engine, bytes, kName);
        const int mark = (round + thread * 64) & 0xFF;
        std::memset(scratch.data(), mark, bytes);
        if (round % 20 == 0) std::this_thread::yield();
        if (round % 100 == 0) engine.release_scratch();
        for (std::size_t index = 0; index < bytes; ++index) {
          if (scratch.data()[index] != static_cast<std::byte>(mark)) ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ScratchLayout, PlacesAlignedPartsOneAfterAnother) {
  std::vector<std::byte> memory(2048);
  std::byte* const block = memory.data();
  const auto offset = [block](const void* at) { return static_cast<const std::byte*>(at) - block; };
  ScratchLayout layout;
  EXPECT_EQ(offset(layout.add<float>(3).in(block)), 0);
  EXPECT_EQ(offset(layout.add<double>(17).in(block)), 128);
  EXPECT_EQ(offset(layout.add<std::byte>(0).in(block)), 384);
  EXPECT_EQ(offset(layout.add<float>(32).in(block)), 384);
  EXPECT_EQ(layout.bytes(), 512U);
  EXPECT_EQ(offset(layout.add<float>(3, std::int64_t{5}, 7).in(block)), 512);
  EXPECT_EQ(layout.bytes(), 1024U);
}

// A part is of the type that it was placed as, and nobody makes one of an offset.
static_assert(std::is_same_v<decltype(ScratchLayout().add<float>(1).in(nullptr)), float*>);
static_assert(!std::is_convertible_v<ScratchPart<float>, ScratchPart<std::int32_t>>);
static_assert(!std::is_constructible_v<ScratchPart<float>, ScratchPart<std::int32_t>>);
static_assert(!std::is_constructible_v<ScratchPart<float>, std::size_t>);

TEST(ScratchLayout, TooMuchDoesNotWrapAroundToLittle) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 32;
  Engine engine({.threads = 1});
  for (const bool one_part : {true, false}) {
    ScratchLayout layout;
    layout.add<float>(1);
    if (one_part) {
      layout.add<float>(kHuge, kHuge);
    } else {
      for (int part = 0; part < 8; ++part) layout.add<std::byte>(std::int64_t{1} << 61);
    }
    layout.add<float>(1000);
    EXPECT_GT(layout.bytes(), static_cast<std::size_t>(PTRDIFF_MAX));
    EXPECT_THROW(Scratch(engine, layout.bytes(), kName), std::bad_alloc);
  }
}

}  // namespace headlight::runtime::scratch_test
