// What attention() promises of memory: no byte outside the extents, no heap allocation, and how much it takes.
#include <cstdint>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/attention.h"
#include "support/allocation_counter.h"
#include "support/compare.h"
#include "support/guarded.h"
#include "support/isas.h"
#include "support/quick.h"
#include "support/random.h"
#include "support/workers.h"

namespace headlight::attention_memory_test {

class AttentionMemory : public test::EachIsa {};

// Every operand between guard pages, at both ends, with ragged sizes.
TEST_P(AttentionMemory, TouchesNothingOutside) {
  Engine engine(options(1));
  test::Random random(3);
  for (int round = 0; round < test::count(60, 15); ++round) {
    const test::Against side = test::kBothSides[static_cast<std::size_t>(round % 2)];
    const std::int64_t queries = random.integer(1, round % 3 == 0 ? 2 : 40);
    const bool plain = round % 4 >= 2;  // and short
    const std::int64_t keys = random.integer(1, plain ? 66 : round % 5 == 0 ? 600 : 70);
    const std::int64_t heads = random.integer(1, 3);
    const std::int64_t dim = random.integer(1, 70);
    const std::int64_t value_dim = random.integer(1, 70);
    const auto filled = [&](std::int64_t count) {
      auto buffer = std::make_unique<test::Guarded<float>>(count, side);
      for (std::int64_t n = 0; n < count; ++n) buffer->data()[n] = random.uniform();
      return buffer;
    };
    const auto query = filled(queries * heads * dim);
    const auto key = filled(keys * heads * dim);
    const auto value = filled(keys * heads * value_dim);
    const auto bias = filled(queries * keys);
    const test::Guarded<std::uint8_t> mask(heads * keys, side);
    for (std::int64_t n = 0; n < heads * keys; ++n) mask.data()[n] = n % 5 != 0;
    const test::Guarded<float> out(queries * heads * value_dim, side);
    const test::Guarded<float> log_sum_exp(heads * queries, side);
    const test::Guarded<float> per_head(heads * queries * keys, side);
    const test::Guarded<float> averaged(queries * keys, side);
    AttentionOptions options;
    if (round % 4 == 1) options.causal = Causal::bottom_right;
    if (round % 8 == 2) options.window = {9, 9};
    if (!plain && round % 3 == 0) options.bias = bias->view<4>({1, 1, queries, keys});
    if (!plain && round % 3 == 1) options.mask = BooleanMask{mask.view<4>({1, heads, 1, keys}), MaskMeans::attend};
    options.log_sum_exp = log_sum_exp.view<3>({1, heads, queries});
    if (!plain) {
      options.probabilities = {per_head.view<4>({1, heads, queries, keys}), averaged.view<3>({1, queries, keys}), {}};
    }
    attention(engine, query->view<4>({1, queries, heads, dim}), key->view<4>({1, keys, heads, dim}),
              value->view<4>({1, keys, heads, value_dim}), out.view<4>({1, queries, heads, value_dim}), options);
  }
}

struct Shape {
  std::int64_t batch, query_length, key_length, query_heads, key_value_heads, dim;
};
constexpr Shape kShapes[] = {{1, 5, 5, 2, 2, 4},     {1, 200, 200, 2, 2, 64}, {40, 70, 70, 4, 2, 16},
                             {2, 1, 3000, 2, 1, 64}, {1, 1, 9000, 1, 1, 128}, {1, 150, 70, 3, 1, 80},
                             {64, 16, 16, 4, 2, 64}};

struct Operands {
  explicit Operands(const Shape& s)
      : query({s.batch, s.query_length, s.query_heads, s.dim}),
        key({s.batch, s.key_length, s.key_value_heads, s.dim}),
        value(key.shape()),
        out(query.shape()),
        log_sum_exp({s.batch, s.query_heads, s.query_length}),
        per_head({s.batch, s.query_heads, s.query_length, s.key_length}) {}
  Tensor<float, 4> query, key, value, out;
  Tensor<float, 3> log_sum_exp;
  Tensor<float, 4> per_head;
};

TEST_P(AttentionMemory, AllocatesNothingTheSecondTimeNorAfterReserve) {
  for (const int threads : {1, 2}) {
    for (const bool reserved : {false, true}) {
      for (const Shape& s : kShapes) {
        Engine engine(options(threads));
        test::wait_for_workers(engine);
        Operands t(s);
        AttentionOptions options;
        options.log_sum_exp = t.log_sum_exp;
        if (s.query_length > 100) options.probabilities.per_head = t.per_head;
        const AttentionShape shape = {s.batch,           s.query_length, s.key_length, s.query_heads,
                                      s.key_value_heads, s.dim,          s.dim};
        if (reserved) {
          reserve(engine, shape);
        } else {
          attention(engine, t.query, t.key, t.value, t.out, options);
        }
        const test::AllocationCounter counter;
        attention(engine, t.query, t.key, t.value, t.out, options);
        const std::int64_t allocations = counter.count();
        EXPECT_EQ(allocations, 0) << "Lq = " << s.query_length << ", threads " << threads << ", reserved " << reserved;
        EXPECT_LE(engine.scratch_bytes(), workspace_bytes(engine, shape) + 4096);
      }
    }
  }
}

TEST_P(AttentionMemory, ScratchDoesNotGrowWithTheLength) {
  for (const int threads : {1, 2}) {
    const Engine engine(options(threads));
    const std::int64_t length = 1'000'000;
    // Two numbers of each row are kept where probabilities are asked for.
    EXPECT_LE(workspace_bytes(engine, {1, length, length, 4, 2, 64, 64}), 4 * length * 8 + threads * (4 << 20));
  }
}

// What asking for probabilities takes beside the rows themselves grows with the rows asked for, not with the queries.
TEST_P(AttentionMemory, RowsAskedForTakeMemoryInProportion) {
  constexpr std::int64_t kLength = 500, kHeads = 12, kDim = 16;
  test::Random random(11);
  const auto query = random.normal_tensor<4>({1, kLength, kHeads, kDim});
  Tensor<float, 4> out(query.shape());
  const auto scratch = [&](const std::vector<std::int64_t>& rows, Tensor<float, 4>* found) {
    Engine engine(options(1));
    AttentionOptions asked;
    if (found != nullptr) asked.probabilities = {.per_head = found->view(), .rows = rows};
    attention(engine, query, query, query, out, asked);
    const AttentionShape shape{1, kLength, kLength, kHeads, kHeads, kDim, kDim};
    EXPECT_LE(engine.scratch_bytes(), workspace_bytes(engine, shape) + 4096) << rows.size() << " rows";
    return static_cast<std::int64_t>(engine.scratch_bytes());
  };
  const std::int64_t without = scratch({}, nullptr);
  std::vector<std::int64_t> every(kLength);
  for (std::size_t i = 0; i < every.size(); ++i) every[i] = static_cast<std::int64_t>(i) * 7 % kLength;
  Tensor<float, 4> all({1, kHeads, kLength, kLength});
  scratch(every, &all);
  // What a worker needs for a block of keys, whatever is asked for: at most what keys and values of a block take.
  std::int64_t of_worker = 256 << 10;
  for (const std::int64_t count : {1, 2, 10, 100, 400}) {
    const std::vector<std::int64_t> rows(every.begin(), every.begin() + count);
    Tensor<float, 4> some({1, kHeads, count, kLength});
    const std::int64_t more = scratch(rows, &some) - without;
    // Two floats a row and head, and the row's number; a block of the pool is a few pages more.
    EXPECT_LE(more, of_worker + count * (8 * kHeads + 8) + (16 << 10)) << count << " rows";
    if (count == 1) of_worker = more;
    // One row does not already take what many do.
    if (count == 400) {
      EXPECT_GE(more - of_worker, (count - 1) * 8 * kHeads - (16 << 10));
    }
    const View<const float, 4> same(all.data(), some.shape(), {0, kLength * kLength, kLength, 1});
    EXPECT_TRUE(test::same_bits(some.view(), same));
  }
}

HEADLIGHT_ON_EVERY_ISA(AttentionMemory);

}  // namespace headlight::attention_memory_test
