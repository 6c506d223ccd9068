// Memory that cannot be had: an error that says who asked for how much, and the process lives on.
#include "headlight/out_of_memory.h"

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <optional>
#include <span>
#include <utility>

#include "baseline/attention_unfused.h"
#include "gtest/gtest.h"
#include "headlight/analysis/attention.h"
#include "headlight/analysis/similarity.h"
#include "headlight/attention.h"
#include "headlight/attention_backward.h"
#include "headlight/gemm.h"
#include "headlight/layers.h"
#include "headlight/optimizer.h"
#include "runtime/parallel.h"
#include "support/compare.h"
#include "support/memory_limit.h"
#include "support/random.h"

namespace headlight::test::out_of_memory_test {

// 40,000 × 40,000 scores are 6.4 GB.
constexpr std::int64_t kLength = 40000;

TEST(OutOfMemory, AttentionSaysWhoAskedForHowMuch) {
  if (!kLimits) GTEST_SKIP() << "a sanitizer's allocator";
  Engine engine({.threads = 1});
  Random random(1);
  const auto query = random.normal_tensor<4>({1, kLength, 1, 2}), key = random.normal_tensor<4>({1, kLength, 1, 2});
  Tensor<float, 4> out({1, kLength, 1, 2}), gradient({1, kLength, 1, 2});
  const std::string forward = lack([&] { baseline::attention_unfused(engine, query, key, key, out); });
  EXPECT_TRUE(forward.starts_with("attention_unfused: 6400")) << forward;
  EXPECT_TRUE(forward.ends_with(" bytes of memory cannot be had")) << forward;
  for (const float element : out) ASSERT_EQ(element, 0);  // nothing was written
  const std::string backward =
      lack([&] { baseline::attention_unfused_backward(engine, query, key, key, out, {.query = gradient}); });
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

// More scores than any machine could hold: refused before anything is asked for, with the same words.
TEST(OutOfMemory, ScoresBeyondAllMemorySayHowMany) {
  Engine engine({.threads = 1});
  constexpr std::int64_t kFew = 1 << 16, kMany = 1 << 30;
  Tensor<float, 4> out({1, kFew, 1, 1});
  const float zero = 0;
  const View<const float, 4> query(&zero, {1, kFew, 1, 1}, {0, 0, 0, 1}), key(&zero, {1, kMany, 1, 1}, {0, 0, 0, 1});
  try {
    baseline::attention_unfused(engine, query, key, key, out);
    FAIL() << "it was not refused";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.bytes(), std::size_t{4} * kFew * kMany);
    EXPECT_STREQ(error.what(), "attention_unfused: 281474976710656 bytes of memory cannot be had");
  }
}

// Moments for parameters that lie in addresses without memory: nobody reads them before the moments are there.
TEST(OutOfMemory, AnOptimizerSaysSoToo) {
  if (!kLimits) GTEST_SKIP() << "a sanitizer's allocator";
  constexpr std::size_t kBytes = std::size_t{1} << 30;
  void* const nowhere = ::mmap(nullptr, 2 * kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(nowhere, MAP_FAILED);
  const std::span<float> both(static_cast<float*>(nowhere), 2 * kBytes / sizeof(float));
  const std::span<float> numbers = both.first(both.size() / 2), gradient = both.last(both.size() / 2);
  const std::string words = lack([&] {
    AdamW({{"weight", {static_cast<std::int64_t>(numbers.size())}, numbers, gradient}});
  });
  EXPECT_TRUE(words.starts_with("AdamW: 21")) << words;  // two floats each: 2 GiB, and a little
  ::munmap(nowhere, 2 * kBytes);
}

// Its lists are short, and ask for memory all the same.
TEST(OutOfMemory, AnOptimizersListsSaySoToo) {
  if (!kLimits) GTEST_SKIP() << "a sanitizer's allocator";
  Linear layer(4, 4);
  layer.set_training(true);
  std::vector<Parameter> of_adamw = layer.parameters(), of_sgd = layer.parameters();
  AdamW optimizer(layer.parameters());
  const std::string adamw = lack_of_all([&] { const AdamW made(std::move(of_adamw)); });
  const std::string sgd = lack_of_all([&] { const Sgd made(std::move(of_sgd), {.momentum = 0.9}); });
  const std::string state = lack_of_all([&] { (void)optimizer.state(); });
  EXPECT_TRUE(adamw.starts_with("AdamW: ")) << adamw;
  EXPECT_TRUE(sgd.starts_with("Sgd: ")) << sgd;
  EXPECT_TRUE(state.starts_with("AdamW: ")) << state;
  EXPECT_EQ(optimizer.state().size(), 4);
}

// Widths and numbers of layers for which there are not even addresses.
TEST(OutOfMemory, SizesBeyondAllMemorySaySo) {
  constexpr std::int64_t kMany = std::int64_t{1} << 62;
  EXPECT_EQ(lack([] { LayerNorm{kMany}; }),
            "LayerNorm with weight [4611686018427387904]: 18446744073709551615 bytes of memory cannot be had");
  EXPECT_EQ(lack([] { FeedForward({.width = kMany}); }),
            "FeedForward of width 4611686018427387904: 18446744073709551615 bytes of memory cannot be had");
  const auto encoder = [](std::int64_t layers) {
    return lack([&] { Encoder({.vocabulary = 2, .max_positions = 2, .width = 2, .heads = 1, .layers = layers}); });
  };
  EXPECT_EQ(encoder(kMany),
            "Encoder of 4611686018427387904 layers: 18446744073709551615 bytes of memory cannot be had");
  if (!kLimits) return;  // a sanitizer's allocator ends the program
  const std::string words = encoder(std::int64_t{1} << 40);
  EXPECT_TRUE(words.starts_with("Encoder of 1099511627776 layers: ")) << words;
}

TEST(OutOfMemory, ATensorSaysWhatShapeItWasToHave) {
  if (!kLimits) GTEST_SKIP() << "a sanitizer's allocator";
  EXPECT_EQ(lack([] {
              const Tensor<float, 2> tensor({1 << 20, 4096});
            }),
            "Tensor [1048576, 4096]: 17179869184 bytes of memory cannot be had");
  EXPECT_EQ(lack([] {
              const Tensor<std::int64_t, 4> tensor({3, 1000, 1000, 1000});
            }),
            "Tensor [3, 1000, 1000, 1000]: 24000000000 bytes of memory cannot be had");
  // More than there are addresses is no shape at all.
  EXPECT_THROW((Tensor<float, 2>({std::int64_t{1} << 40, std::int64_t{1} << 40})), std::bad_array_new_length);
  // A layer that cannot have its gradients stays as it was, and the process lives on.
  Linear layer(20000, 20000);
  EXPECT_TRUE(lack([&] { layer.set_training(true); }).starts_with("Tensor [20000, 20000]: 16000"));
  EXPECT_TRUE(layer.parameters().front().gradient.empty());
  Tensor<float, 1> small({1000});
  for (float& element : small) element += 1.0f;
  EXPECT_EQ(small(999), 1.0f);
}

// Its words are cut where they do not fit, and never read beyond.
TEST(OutOfMemory, WordsOfAnyLengthFit) {
  const std::string long_name(1000, 'x');
  EXPECT_EQ(std::string(OutOfMemory(long_name, 5).what()), std::string(128, 'x') + ": 5 bytes of memory cannot be had");
  const std::vector<std::int64_t> many(30, INT64_MAX);
  const std::string words = OutOfMemory(many, SIZE_MAX).what();
  EXPECT_TRUE(words.starts_with("Tensor [9223372036854775807, 9223372036854775807, ")) << words;
  EXPECT_TRUE(words.ends_with("]: 18446744073709551615 bytes of memory cannot be had")) << words;
}

TEST(OutOfMemory, APackedMatrixSaysSoToo) {
  if (!kLimits) GTEST_SKIP() << "a sanitizer's allocator";
  Engine engine({.threads = 1});
  const float zero = 0;  // of which nothing is read before there is room
  const View<const float, 2> b(&zero, {1 << 18, 1 << 12}, {0, 1});
  EXPECT_EQ(lack([&] { const PackedMatrix packed(engine, b); }),
            "PackedMatrix: 4294967296 bytes of memory cannot be had");
}

// The copy that a layer packs of its weight has a few bytes beside the numbers.
TEST(OutOfMemory, ALayersPackedCopySaysSoToo) {
  if (!kLimits) GTEST_SKIP() << "a sanitizer's allocator";
  Engine engine({.threads = 1});
  Linear layer(4, 4);
  layer.initialize(1);
  const Tensor<float, 2> x({3, 4});
  Tensor<float, 2> y({3, 4});
  std::optional<OutOfMemory> lacking;
  bool unnamed = false;
  {
    const MemoryLimit limit(0);
    const AllMemory all(alignof(std::max_align_t));
    try {
      layer.forward(engine, x, y);
    } catch (const OutOfMemory& error) {
      lacking = error;
    } catch (const std::bad_alloc&) {
      unnamed = true;
    }
  }
  EXPECT_FALSE(unnamed);
  ASSERT_TRUE(lacking.has_value());
  EXPECT_TRUE(std::string_view(lacking->what()).starts_with("PackedMatrix: ")) << lacking->what();
  layer.forward(engine, x, y);
}

// Many rows have all of B packed at once, 8 MiB here. Where that cannot be had, blocks of rows pack panels of their
// own.
TEST(OutOfMemory, AProductTakesLessWhereLessIsThere) {
  if (!kLimits) GTEST_SKIP() << "a sanitizer's allocator";
  constexpr std::int64_t kRows = 700, kColumns = 2048, kDepth = 1024;
  constexpr std::size_t kWhole = sizeof(float) * kColumns * kDepth;
  Random random(1);
  const auto a = random.normal_tensor<2>({kRows, kDepth}), b = random.normal_tensor<2>({kDepth, kColumns});
  const auto before = random.normal_tensor<2>({kRows, kColumns});
  Tensor<float, 2> expected(before.shape()), found(before.shape());
  std::copy(before.begin(), before.end(), expected.begin());
  Engine engine({.threads = 1});
  gemm(engine, a, b, expected, {.beta = 1.0f});
  ASSERT_GE(engine.scratch_bytes(), kWhole);

  const auto multiply_with = [&](std::size_t bytes) {
    engine.release_scratch();
    runtime::reserve_scratch(engine, &bytes, 1, "the test");
    std::copy(before.begin(), before.end(), found.begin());
    std::optional<OutOfMemory> lacking;
    const MemoryLimit limit(0);
    const AllMemory all;
    try {
      gemm(engine, a, b, found, {.beta = 1.0f});
    } catch (const OutOfMemory& error) {
      lacking = error;
    }
    return lacking;
  };
  // reserve() takes less as well, and that is enough.
  engine.release_scratch();
  {
    const std::size_t part = kWhole / 2;
    runtime::reserve_scratch(engine, &part, 1, "the test");
    const MemoryLimit limit(0);
    const AllMemory all;
    EXPECT_NO_THROW(reserve(engine, GemmShape{.m = kRows, .n = kColumns, .k = kDepth}));
    EXPECT_GT(engine.scratch_bytes(), 0);
    EXPECT_LT(engine.scratch_bytes(), kWhole);
  }
  EXPECT_FALSE(multiply_with(kWhole / 4).has_value());
  EXPECT_TRUE(same_bits(found, expected));
  EXPECT_LT(engine.scratch_bytes(), kWhole);
  // Nothing at all is too little, and leaves C alone.
  const std::optional<OutOfMemory> lacking = multiply_with(0);
  ASSERT_TRUE(lacking.has_value());
  EXPECT_LT(lacking->bytes(), kWhole);
  EXPECT_TRUE(std::string_view(lacking->what()).starts_with("gemm: ")) << lacking->what();
  EXPECT_TRUE(same_bits(found, before));
}

TEST(OutOfMemory, TypedAttentionWritesNothing) {
  if (!kLimits) GTEST_SKIP() << "a sanitizer's allocator";
  Engine engine({.threads = 1});
  Tensor<BFloat16, 4> x({1, 3000, 2, 64}), out(x.shape());
  for (BFloat16& number : out) number = BFloat16(2.0f);
  std::optional<OutOfMemory> lacking;
  {
    const MemoryLimit limit(0);
    const AllMemory all;
    try {
      attention(engine, x, x, x, out);
    } catch (const OutOfMemory& error) {
      lacking = error;
    }
  }
  ASSERT_TRUE(lacking.has_value());
  EXPECT_TRUE(std::string_view(lacking->what()).starts_with("attention: ")) << lacking->what();
  for (const BFloat16 number : out) ASSERT_EQ(static_cast<float>(number), 2.0f);
}

// reserve() asks in the name of the call that it is for.
TEST(OutOfMemory, ReservingNamesWhomItIsFor) {
  if (!kLimits) GTEST_SKIP() << "a sanitizer's allocator";
  Engine engine({.threads = 1});
  const AttentionShape shape = {.query_length = std::int64_t{1} << 29, .key_length = 64};
  const std::string forward = lack([&] { reserve(engine, shape); });
  EXPECT_TRUE(forward.starts_with("attention: ")) << forward;
  const std::string backward = lack([&] { reserve_backward(engine, shape); });
  EXPECT_TRUE(backward.starts_with("attention_backward: ")) << backward;
  const MultiHeadAttention layer({.width = 2, .heads = 1});
  const std::string of_layer = lack([&] { layer.reserve(engine, {1, shape.query_length, shape.query_length}); });
  EXPECT_TRUE(of_layer.starts_with("MultiHeadAttention: ")) << of_layer;

  std::optional<OutOfMemory> of_product;
  {
    const MemoryLimit limit(0);
    const AllMemory all;  // narrow vectors need less than the heap may still hold
    try {
      reserve(engine, GemmShape{.m = 4096, .n = 4096, .k = 4096});
    } catch (const OutOfMemory& error) {
      of_product = error;
    }
  }
  ASSERT_TRUE(of_product.has_value());
  EXPECT_TRUE(std::string_view(of_product->what()).starts_with("gemm: ")) << of_product->what();
}

// Asked for in a task, on whichever thread.
TEST(OutOfMemory, AMinibatchSaysSoToo) {
  if (!kLimits) GTEST_SKIP() << "a sanitizer's allocator";
  Engine engine({.threads = 2});
  const float zero = 0;
  const View<const float, 2> outputs(&zero, {2 << 15, 1}, {0, 1});
  analysis::MinibatchCka cka(1, 1 << 15);
  const std::string words = lack([&] { cka.add(engine, std::span(&outputs, 1)); });
  EXPECT_TRUE(words.starts_with("MinibatchCka: 4295")) << words;  // a kernel matrix of 4 GiB, and a little
  EXPECT_EQ(cka.rows(), 0);
}

TEST(OutOfMemory, AccumulatorsSaySoWhenTheyAreMade) {
  if (!kLimits) GTEST_SKIP() << "a sanitizer's allocator";
  EXPECT_EQ(lack([] { analysis::HeadCovariance(16, 4096); }),
            "HeadCovariance: 34359738368 bytes of memory cannot be had");
  EXPECT_EQ(lack([] { analysis::MinibatchCka(1 << 16); }), "MinibatchCka: 34359738368 bytes of memory cannot be had");
  EXPECT_TRUE(lack([] { analysis::AttentionMeasures(1 << 16); }).starts_with("AttentionMeasures: 343"));
}

// Rows that lie in one place, so that only their sums take memory.
TEST(OutOfMemory, AttentionMeasuresSaySoToo) {
  if (!kLimits) GTEST_SKIP() << "a sanitizer's allocator";
  Engine engine({.threads = 1});
  constexpr std::int64_t kHeads = 64, kRows = 1 << 20;
  const float zero = 0;
  const analysis::AttentionText text = {.weights = {&zero, {kHeads, kRows, kRows}, {0, 0, 1}}};
  analysis::AttentionMeasures measures(kHeads);
  const std::string words = lack([&] { measures.add(engine, {&text, 1}); });
  EXPECT_TRUE(words.starts_with("AttentionMeasures: ")) << words;
  EXPECT_EQ(measures.rows(), 0);
}

// What was refused counts for nothing, however much there was: a second attempt has the bits of a first one.
TEST(OutOfMemory, ACovarianceThatWasRefusedIsAsItWas) {
  if (!kLimits) GTEST_SKIP() << "a sanitizer's allocator";
  constexpr std::int64_t kHeads = 2, kHeadDim = 48, kRows = 4500;
  constexpr std::size_t kStep = 1 << 18, kLeast = 1 << 20, kMost = 4 << 20;  // 1.6 MB are the rows alone
  Random random(1);
  const auto outputs = random.normal_tensor<2>({kRows, kHeads * kHeadDim});
  analysis::HeadCovariance expected(kHeads, kHeadDim);
  Engine engine({.threads = 1});
  expected.add(engine, outputs);
  int refused = 0, served = 0;
  for (std::size_t bytes = kLeast; bytes <= kMost; bytes += kStep) {
    engine.release_scratch();
    runtime::reserve_scratch(engine, &bytes, 1, "the test");
    analysis::HeadCovariance covariance(kHeads, kHeadDim);
    bool lacks = false;
    {
      const MemoryLimit limit(0);
      const AllMemory all;
      try {
        covariance.add(engine, outputs);
      } catch (const OutOfMemory&) {
        lacks = true;
      }
    }
    ++(lacks ? refused : served);
    ASSERT_EQ(covariance.rows(), lacks ? 0 : kRows);
    if (lacks) covariance.add(engine, outputs);
    ASSERT_EQ(covariance.cka(0, 1).value(), expected.cka(0, 1).value()) << bytes;
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(served, 0);
}

TEST(OutOfMemory, ASavedStateSaysSoToo) {
  if (!kLimits) GTEST_SKIP() << "a sanitizer's allocator";
  Engine engine({.threads = 1});
  MultiHeadAttention layer({.width = 2, .heads = 1});
  layer.initialize(1);
  layer.set_training(true);
  Tensor<float, 3> x({1, kLength, 2}), y({1, kLength, 2});
  SavedState unfused(Checkpoint::keep_linear, 0, baseline::unfused_attention());
  const std::string words = lack([&] { layer.forward(engine, x, x, x, y, unfused, {}); });
  EXPECT_TRUE(words.starts_with("SavedState: 640")) << words;
  EXPECT_EQ(unfused.bytes(), 0);
}

}  // namespace headlight::test::out_of_memory_test
