// Networks take no more memory than they foretell, and none once it is reserved.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/attention.h"
#include "headlight/layers/network.h"
#include "layers/network_case.h"
#include "ops/attention/check.h"
#include "ops/attention/plan.h"
#include "ops/gemm/internal.h"
#include "ops/gemm/split.h"
#include "support/allocation_counter.h"
#include "support/compare.h"
#include "support/isas.h"
#include "support/refusal.h"
#include "support/workers.h"

namespace headlight::test::network_memory_test {

using NetworkMemoryTest = EachIsa;
HEADLIGHT_ON_EVERY_ISA(NetworkMemoryTest);

// Whatever sequences the tokens are.
TEST_P(NetworkMemoryTest, AllocatesNothingOnceReserved) {
  Random random(4);
  for (std::int64_t n = 0; n < 20; ++n) {
    Engine engine(options(2));
    wait_for_workers(engine);
    Network network(draw_network_for(random, 500));
    randomize(network, random);
    network.set_precision(n % 2 == 0 ? NumberType::float32 : NumberType::bfloat16);
    for (const std::vector<std::int64_t>& lengths : {std::vector<std::int64_t>{40, 3},
                                                     std::vector<std::int64_t>(40, 29),
                                                     {1, 500, 20, 333, 0, 306},
                                                     {100, 44, 100, 44, 0, 100, 44, 1, 145, 145, 300, 2}}) {
      const Tokens tokens(random, 20, lengths);
      Tensor<float, 2> hidden({tokens.count(), network.spec().width});
      network.reserve(engine, tokens.count());
      const std::size_t reserved = engine.scratch_bytes();
      EXPECT_GE(reserved, network.workspace_bytes(engine, tokens.count()));
      const AllocationCounter counter;
      network.forward(engine, tokens.input(), hidden.view());
      EXPECT_EQ(counter.count(), 0) << "specification " << n;
      EXPECT_EQ(engine.scratch_bytes(), reserved) << "specification " << n;
    }
  }
}

// Of so many that lie in the pool's pages.
constexpr std::size_t kPages = 4 * 4096;

NetworkSpec of_one_block(std::int64_t width, const AttentionSpec& attention, std::int64_t hidden_width) {
  NetworkSpec spec;
  spec.width = width;
  spec.embedding.vocabulary = 20;
  spec.blocks.resize(1);
  spec.blocks[0].attention = attention;
  spec.blocks[0].feed_forward.hidden_width = hidden_width;
  return spec;
}

// A call without reserve() leaves the engine with what workspace_bytes() says, however small the first blocks are that
// operations take; and it finds enough in any later call with fewer tokens.
TEST_P(NetworkMemoryTest, KeepsWhatItForetellsOfAFirstCall) {
  Random random(12);
  for (std::int64_t n = 0; n < 14; ++n) {
    const int threads = static_cast<int>(random.integer(1, 4));
    const std::int64_t head_dim = random.once_in(2) ? 32 : 64, heads = random.integer(1, 6);
    NetworkSpec spec = random.once_in(3)
                           ? draw_network_for(random, 1200)
                           : of_one_block(heads * head_dim, {.heads = heads, .head_dim = head_dim, .window_before = 9},
                                          heads * head_dim * random.integer(1, 4));
    Network network(spec);
    randomize(network, random);
    network.set_precision(random.once_in(2) ? NumberType::float32 : NumberType::int8);
    std::vector<std::int64_t> lengths = {random.integer(1, 600)};
    while (!random.once_in(6)) lengths.push_back(random.integer(0, 100));
    const Tokens tokens(random, 20, lengths);
    Engine engine(options(threads)), reserved(options(threads));
    static_cast<void>(forward(engine, network, tokens));
    const std::size_t bytes = engine.scratch_bytes();
    network.reserve(reserved, tokens.count());
    EXPECT_LE(bytes, network.workspace_bytes(engine, tokens.count()) + kPages) << "network " << n;
    EXPECT_LE(bytes, reserved.scratch_bytes()) << "network " << n;
    for (int fewer = 0; fewer < 4; ++fewer) {
      const std::int64_t count = random.integer(1, tokens.count()), first = random.integer(0, count);
      static_cast<void>(forward(engine, network, Tokens(random, 20, {first, count - first})));
      EXPECT_EQ(engine.scratch_bytes(), bytes) << "network " << n << ", " << first << " of " << count << " tokens";
    }
  }
}

// Fewer rows may take another route through attention or a product, and more memory.
TEST_P(NetworkMemoryTest, ReservesForAnyFewerTokens) {
  Random random(13);
  constexpr std::int64_t kTokens = 2048;
  for (const int threads : {2, 3}) {
    const Network network(of_one_block(8, {.heads = 12, .head_dim = 64, .window_before = 2, .window_after = 2}, 16));
    Engine engine(options(threads));
    network.reserve(engine, kTokens);
    const std::size_t bytes = engine.scratch_bytes();
    for (std::int64_t count = 393; count < kTokens; count += 180) {
      for (const std::int64_t first : {count, count / 2}) {
        static_cast<void>(forward(engine, network, Tokens(random, 20, {first, count - first})));
        EXPECT_EQ(engine.scratch_bytes(), bytes) << first << " of " << count << " tokens, " << threads << " threads";
      }
    }
  }
}

TEST(Network, RefusesTokensWhoseRowsPass63Bits) {
  Engine engine({.threads = 2});
  NetworkSpec spec = of_one_block(64, {.heads = 4, .head_dim = 16}, 64);
  spec.blocks[0].attention.rotary.dims = 16;
  for (const std::int64_t tokens : {std::int64_t{1} << 60, std::numeric_limits<std::int64_t>::max()}) {
    const std::string expected =
        "Network: tokens is " + std::to_string(tokens) + ", expected rows that take less than 2⁶³ bytes";
    EXPECT_EQ(refusal([&] { static_cast<void>(Network(spec).workspace_bytes(engine, tokens)); }), expected);
    EXPECT_EQ(refusal([&] { Network(spec).reserve(engine, tokens); }), expected);
  }
  spec.blocks.clear();
  EXPECT_NE(refusal([&] { static_cast<void>(Network(spec).workspace_bytes(engine, std::int64_t{1} << 60)); }), "");
}

// Attention's memory does not grow with the length alone: it is foretold for any that go through a block together.
TEST_P(NetworkMemoryTest, TakesNoMoreThanItForetellsWhateverSequencesGoTogether) {
  Random random(7);
  using Lengths = std::vector<std::int64_t>;
  Lengths in_turns, few;
  for (int n = 0; n < 12; ++n) in_turns.insert(in_turns.end(), {100, 44});
  for (int n = 0; n < 1200; ++n) few.insert(few.end(), {1, 0});
  const std::vector<Lengths> batches = {{1500, 100}, {1510, 1510, 1076}, in_turns,     Lengths(10, 145),
                                        few,         {200, 300, 100},    {430, 9, 430}};
  for (const int threads : {1, 2, 5}) {
    for (const Lengths& lengths : batches) {
      // Few keys for each row take as much memory, and less time.
      Network network(of_one_block(8, {.heads = 12, .head_dim = 64, .window_before = 2, .window_after = 2}, 16));
      network.set_precision(threads == 1 ? NumberType::int8 : NumberType::float32);
      const Tokens tokens(random, 20, lengths);
      Engine reserved(options(threads)), fresh(options(threads));
      network.reserve(reserved, tokens.count());
      const std::size_t bytes = reserved.scratch_bytes();
      EXPECT_EQ(forward(reserved, network, tokens).shape()[0], tokens.count());
      EXPECT_EQ(reserved.scratch_bytes(), bytes) << lengths[0] << " and others, " << threads << " threads";
      static_cast<void>(forward(fresh, network, tokens));
      EXPECT_LE(fresh.scratch_bytes(), bytes) << lengths[0] << " and others, " << threads << " threads";
    }
  }
}

// The angles of some scalings ask how long a sequence is: those without tokens are not counted.
TEST_P(NetworkMemoryTest, TakesNoMemoryForSequencesWithoutTokens) {
  Random random(9);
  NetworkSpec spec = of_one_block(8, {.head_dim = 8}, 8);
  RotarySpec& rotary = spec.blocks[0].attention.rotary;
  rotary.dims = 8;
  rotary.scaling = {.kind = RotaryScalingKind::dynamic, .factor = 4, .original_length = 4};
  Network network(spec);
  randomize(network, random);
  std::vector<std::int64_t> lengths(10000, 0);
  lengths[10] = 8;
  const Tokens tokens(random, 20, lengths);
  Engine engine(options(1));
  network.reserve(engine, tokens.count());
  const std::size_t reserved = engine.scratch_bytes();
  const Tensor<float, 2> hidden = forward(engine, network, tokens);
  EXPECT_EQ(engine.scratch_bytes(), reserved);
  EXPECT_TRUE(same_bits(forward(engine, network, tokens.only(10)).view(), hidden.view()));
}

// What a call takes does not grow with every row: the bound covers all calls that have fewer.
TEST_P(NetworkMemoryTest, BoundsAttentionOfAnyLength) {
  Random random(10);
  for (const int threads : {1, 2, 5, 16}) {
    const Engine engine(options(threads));
    for (int n = 0; n < 12; ++n) {
      const std::int64_t longest = random.integer(1, random.once_in(2) ? 900 : 3000);
      const std::int64_t key_value_heads = random.integer(1, 12);
      const std::int64_t head_dim = random.once_in(2) ? 64 : random.integer(1, 300);
      AttentionShape shape = {.batch = random.once_in(2) ? 1 : random.integer(2, 9),
                              .query_length = longest,
                              .key_length = longest,
                              .query_heads = key_value_heads * random.integer(1, 3),
                              .key_value_heads = key_value_heads,
                              .head_dim = head_dim,
                              .value_dim = head_dim};
      const std::size_t bound = ops::attention_bytes_up_to(engine, ops::check_attention_shape("test", shape));
      std::size_t most = 0;
      for (std::int64_t length = 1; length <= longest; ++length) {
        shape.query_length = shape.key_length = length;
        most = std::max(most, workspace_bytes(engine, shape));
      }
      EXPECT_GE(bound, most) << longest << " rows, " << key_value_heads << " heads of " << head_dim << ", " << threads
                             << " threads";
    }
  }
}

// Two hundred million rows of a head: nobody tries all ways to share them.
TEST_P(NetworkMemoryTest, BoundsAttentionOfMoreRowsThanAreTried) {
  const Engine engine(options(16));
  const AttentionShape shape = {.batch = 1,
                                .query_length = 100'000,
                                .key_length = 100'000,
                                .query_heads = 1 << 20,
                                .key_value_heads = 1,
                                .head_dim = 1,
                                .value_dim = 1};
  EXPECT_GE(ops::attention_bytes_up_to(engine, ops::check_attention_shape("test", shape)),
            workspace_bytes(engine, shape));
}

TEST_P(NetworkMemoryTest, BoundsProductsOfAnyRows) {
  Random random(11);
  for (const int threads : {1, 2, 5, 16}) {
    const Engine engine(options(threads));
    for (const NumberType type : {NumberType::float32, NumberType::bfloat16, NumberType::float16, NumberType::int8}) {
      for (const bool is_open : {false, true}) {
        if (is_open && type != NumberType::float32) continue;
        for (int n = 0; n < 6; ++n) {
          kernels::GemmBlock product{};
          product.columns = random.once_in(3) ? random.integer(1, 4) : random.integer(1, 2000);
          product.depth = random.integer(1, 2000);
          product.a_depth_stride = 1;
          product.b.type = type;
          product.b.layout = is_open ? kernels::OperandLayout::columns : kernels::OperandLayout::panels;
          product.epilogue.beta = 1.0f;
          const std::int64_t rows = random.integer(1, 900);
          product.rows = rows;
          const std::size_t bound = ops::gemm_bytes_up_to(engine, product);
          std::size_t most = 0;
          for (product.rows = 1; product.rows <= rows; ++product.rows) {
            most = std::max(most, ops::gemm_batch_bytes(engine, {.product = product}).wanted);
          }
          EXPECT_GE(bound, most) << rows << " rows, " << product.columns << " columns of " << product.depth << ", "
                                 << name(type) << ", " << threads << " threads";
        }
      }
    }
  }
}

// One table of distances serves every sequence: memory grows with the tokens, and not with their square.
TEST(Network, ARelativeBiasTakesMemoryOfTheTokens) {
  Engine engine({.threads = 1});
  NetworkSpec spec;
  spec.width = 8;
  spec.embedding.vocabulary = 20;
  spec.blocks.resize(2);
  for (BlockSpec& block : spec.blocks) {
    block.attention.heads = 4;
    block.feed_forward.hidden_width = 8;
  }
  const auto bytes = [&](std::int64_t tokens) { return Network(spec).workspace_bytes(engine, tokens); };
  const std::size_t few = bytes(1000), many = bytes(8000);
  for (BlockSpec& block : spec.blocks) block.attention.relative_bias.buckets = 32;
  constexpr std::int64_t kRow = 64;  // a row of 2 · 4 floats takes a line
  EXPECT_LE(bytes(1000) - few, 1000u * kRow + 256);
  EXPECT_LE(bytes(8000) - many, 8000u * kRow + 256);
}

}  // namespace headlight::test::network_memory_test
