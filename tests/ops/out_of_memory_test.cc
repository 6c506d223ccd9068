// Memory that cannot be had: an error that says who asked for how much, and the process lives on.
#include "headlight/out_of_memory.h"

#include <sys/resource.h>

#include <fstream>

#include "gtest/gtest.h"
#include "headlight/attention_backward.h"
#include "headlight/layers.h"
#include "support/compare.h"
#include "support/random.h"

namespace headlight::test {
namespace {

// Sanitizers reserve more addresses than any limit grants.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kLimits = false;
#else
constexpr bool kLimits = true;
#endif

// Bytes of address space that the process takes now, from proc(5).
std::size_t addresses() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * 4096;
}

// So much more memory and no more, as long as it lives.
class MemoryLimit {
 public:
  explicit MemoryLimit(std::size_t more) {
    ::getrlimit(RLIMIT_AS, &before_);
    const rlimit limit{addresses() + more, before_.rlim_max};
    ::setrlimit(RLIMIT_AS, &limit);
  }
  ~MemoryLimit() { ::setrlimit(RLIMIT_AS, &before_); }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  rlimit before_{};
};

template <class Function>
std::string lack(Function f) {
  const MemoryLimit limit(std::size_t{64} << 20);
  try {
    f();
  } catch (const OutOfMemory& error) {
    EXPECT_GT(error.bytes(), std::size_t{1} << 30);
    return error.what();
  }
  return "";
}

// 40,000 × 40,000 scores are 6.4 GB.
constexpr std::int64_t kLength = 40000;

TEST(OutOfMemory, AttentionSaysWhoAskedForHowMuch) {
  if (!kLimits) GTEST_SKIP() << "a sanitizer's allocator";
  Engine engine({.threads = 1});
  Random random(1);
  const auto query = random.normal_tensor<4>({1, kLength, 1, 2}), key = random.normal_tensor<4>({1, kLength, 1, 2});
  Tensor<float, 4> out({1, kLength, 1, 2}), gradient({1, kLength, 1, 2});
  const std::string forward = lack([&] { attention_unfused(engine, query, key, key, out); });
  EXPECT_TRUE(forward.starts_with("attention_unfused: 6400")) << forward;
  EXPECT_TRUE(forward.ends_with(" bytes of memory cannot be had")) << forward;
  for (const float element : out) ASSERT_EQ(element, 0);  // nothing was written
  const std::string backward =
      lack([&] { attention_unfused_backward(engine, query, key, key, out, {.query = gradient}); });
  EXPECT_TRUE(backward.starts_with("attention_unfused_backward: 12800")) << backward;
  EXPECT_EQ(engine.scratch_bytes(), 0);

  // The same queries, tile by tile, with what there is; and the engine works as one that was never refused.
  Tensor<float, 4> expected({1, 100, 1, 2}), found({1, 100, 1, 2});
  const View<const float, 4> some(query.data(), {1, 100, 1, 2});
  attention(engine, some, some, some, found);
  Engine another({.threads = 1});
  attention(another, some, some, some, expected);
  EXPECT_TRUE(same_bits(found, expected));
}

TEST(OutOfMemory, ASavedStateSaysSoToo) {
  if (!kLimits) GTEST_SKIP() << "a sanitizer's allocator";
  Engine engine({.threads = 1});
  MultiHeadAttention layer({.width = 2, .heads = 1});
  layer.initialize(1);
  layer.set_training(true);
  Tensor<float, 3> x({1, kLength, 2}), y({1, kLength, 2});
  SavedState unfused(Checkpoint::unfused);
  const std::string words = lack([&] { layer.forward(engine, x, x, x, y, unfused, {}); });
  EXPECT_TRUE(words.starts_with("SavedState: 640")) << words;
  EXPECT_EQ(unfused.bytes(), 0);
}

}  // namespace
}  // namespace headlight::test
