// What attention() promises of its numbers: the same bits however it is called.
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/attention.h"
#include "support/attention_case.h"
#include "support/compare.h"
#include "support/isas.h"
#include "support/quick.h"

namespace headlight::attention_promises_test {

using test::AttentionCase;
using test::AttentionInputs;

class AttentionPromises : public test::EachIsa {};

AttentionCase square(std::int64_t batch, std::int64_t length, std::int64_t query_heads, std::int64_t key_value_heads,
                     std::int64_t dim) {
  AttentionCase c;
  c.seed = static_cast<std::uint64_t>(length + dim);
  c.batch = batch;
  c.query_length = c.key_length = length;
  c.query_heads = query_heads;
  c.key_value_heads = key_value_heads;
  c.head_dim = c.value_dim = dim;
  return c;
}

Tensor<float, 4> run(Engine& engine, View<const float, 4> query, View<const float, 4> key, View<const float, 4> value,
                     const AttentionOptions& options) {
  Tensor<float, 4> out({query.extent(0), query.extent(1), query.extent(2), value.extent(3)});
  attention(engine, query, key, value, out, options);
  return out;
}

Tensor<float, 4> run(Engine& engine, const AttentionInputs& inputs) {
  return run(engine, inputs.query, inputs.key, inputs.value, inputs.options);
}

// `count` entries of one axis, from `first`.
template <class T>
View<T, 4> part(View<T, 4> view, int axis, std::int64_t first, std::int64_t count) {
  view.data += first * view.stride(axis);
  view.shape[static_cast<std::size_t>(axis)] = count;
  return view;
}

TEST_P(AttentionPromises, SameBitsForAnyNumberOfThreads) {
  std::vector<AttentionCase> cases = {
      square(1, 300, 2, 2, 64),   // keys packed first, where there are several threads
      square(40, 40, 4, 2, 20),   // packed block by block
      square(1, 700, 1, 1, 200),  // packed block by block for several blocks of rows, by one thread
      square(20, 1, 4, 4, 16),    // one query each
      square(1, 1, 4, 2, 72),     // keys split
  };
  cases[3].key_length = 700;
  cases[4].key_length = 5000;
  AttentionCase packed = square(1, 400, 2, 2, 33);
  packed.query_offsets = {0, 3, 3, 170, 180, 400};
  packed.causal = Causal::top_left;
  cases.push_back(packed);
  AttentionCase halves = square(1, 1536, 4, 4, 8);  // packed block by block, two blocks of rows for each head
  halves.causal = Causal::top_left;
  cases.push_back(halves);
  AttentionCase uneven = square(8, 150, 2, 2, 24);  // one sample outweighs the others, and is shared
  uneven.key_lengths = uneven.query_lengths = {150, 9, 9, 9, 0, 9, 9, 9};
  cases.push_back(uneven);
  for (const AttentionCase& c : cases) {
    SCOPED_TRACE(c.line());
    const AttentionInputs inputs(c);
    const auto computed = [&](int threads) {
      Engine engine(options(threads));
      return run(engine, inputs);
    };
    const Tensor<float, 4> expected = computed(1);
    EXPECT_TRUE(test::same_bits(computed(1), expected));
    for (const int threads : test::more_threads()) {
      EXPECT_TRUE(test::same_bits(computed(threads), expected)) << threads << " threads";
    }
  }
}

TEST_P(AttentionPromises, SameBitsAloneAndInABatch) {
  AttentionCase c = square(9, 77, 6, 3, 40);
  c.causal = Causal::bottom_right;
  c.key_lengths = {77, 60, 1, 33, 64, 32, 31, 76, 0};
  c.query_lengths = {77, 60, 1, 77, 64, 10, 77, 75, 9};
  const AttentionInputs inputs(c);
  Engine engine(options(2));
  const Tensor<float, 4> together = run(engine, inputs);
  for (std::int64_t b = 0; b < c.batch; ++b) {
    AttentionOptions one = inputs.options;
    one.key_lengths = inputs.options.key_lengths.subspan(static_cast<std::size_t>(b), 1);
    one.query_lengths = inputs.options.query_lengths.subspan(static_cast<std::size_t>(b), 1);
    const Tensor<float, 4> alone = run(engine, part(inputs.query.view(), 0, b, 1), part(inputs.key.view(), 0, b, 1),
                                       part(inputs.value.view(), 0, b, 1), one);
    EXPECT_TRUE(test::same_bits(alone.view(), part(together.view(), 0, b, 1))) << "sample " << b;
  }
}

TEST_P(AttentionPromises, SameBitsForOneHeadAndForAll) {
  const AttentionCase c = square(1, 150, 6, 2, 24);
  const AttentionInputs inputs(c);
  Engine engine(options(1));
  const Tensor<float, 4> together = run(engine, inputs);
  for (std::int64_t h = 0; h < 6; ++h) {
    const Tensor<float, 4> alone = run(engine, part(inputs.query.view(), 2, h, 1), part(inputs.key.view(), 2, h / 3, 1),
                                       part(inputs.value.view(), 2, h / 3, 1), inputs.options);
    EXPECT_TRUE(test::same_bits(alone.view(), part(together.view(), 2, h, 1))) << "head " << h;
  }
}

TEST_P(AttentionPromises, SameBitsPackedAndApart) {
  AttentionCase c = square(1, 333, 2, 1, 48);
  c.query_offsets = {0, 1, 40, 40, 200, 333};
  c.window = {50, -1};
  const AttentionInputs inputs(c);
  Engine engine(options(2));
  const Tensor<float, 4> together = run(engine, inputs);
  AttentionOptions one = inputs.options;
  one.query_offsets = {};
  for (std::size_t s = 0; s + 1 < c.query_offsets.size(); ++s) {
    const std::int64_t first = c.query_offsets[s];
    const std::int64_t count = c.query_offsets[s + 1] - first;
    const Tensor<float, 4> alone =
        run(engine, part(inputs.query.view(), 1, first, count), part(inputs.key.view(), 1, first, count),
            part(inputs.value.view(), 1, first, count), one);
    EXPECT_TRUE(test::same_bits(alone.view(), part(together.view(), 1, first, count))) << "sequence " << s;
  }
}

// The last rows of a prefill, asked for by themselves: one (a decode step), a few, many.
TEST_P(AttentionPromises, AFewQueriesEqualTheSameRowsOfAPrefill) {
  const auto with = [](auto change) {
    AttentionCase c = square(1, test::count<std::int64_t>(1100, 600), 4, 2, 24);
    c.value_dim = 40;
    c.align = Align::bottom_right;
    change(c);
    return c;
  };
  const std::vector<AttentionCase> cases = {
      with([](AttentionCase&) {}),
      with([](AttentionCase& c) { c.causal = Causal::bottom_right; }),
      with([](AttentionCase& c) {
        c.window = {100, -1};
      }),
      with([](AttentionCase& c) {
        c.window = {600, 3};
      }),
      with([](AttentionCase& c) {
        c.window = {-1, 0};
      }),
      with([](AttentionCase& c) { c.chunk = 530; }),
      with([](AttentionCase& c) { c.causal = Causal::bottom_right, c.chunk = 7; }),
      with([](AttentionCase& c) {
        c.causal = Causal::bottom_right, c.window = {45, -1}, c.chunk = 64;
      }),
      with([](AttentionCase& c) { c.scale = -0.3f; }),
      with([](AttentionCase& c) {
        c.bias = test::Shape4{1, 4, 1, c.key_length};
      }),
      with([](AttentionCase& c) {
        c.mask = test::Shape4{1, 1, 1, c.key_length};
      }),
  };
  for (const AttentionCase& c : cases) {
    SCOPED_TRACE(c.line());
    const AttentionInputs inputs(c);
    Engine one_thread(options(1));
    Engine two_threads(options(2));
    const Tensor<float, 4> prefill = run(two_threads, inputs);
    for (const std::int64_t rows : {1, 2, 5, 13, 100}) {
      const std::int64_t first = c.query_length - rows;
      for (Engine* engine : {&one_thread, &two_threads}) {
        const Tensor<float, 4> few =
            run(*engine, part(inputs.query.view(), 1, first, rows), inputs.key, inputs.value, inputs.options);
        EXPECT_TRUE(test::same_bits(few.view(), part(prefill.view(), 1, first, rows))) << rows << " rows";
      }
    }
    // A decode step in the middle, whose later keys do not exist yet.
    if (c.causal == Causal::none || c.bias || c.mask) continue;
    for (const std::int64_t row : {0, 31, 511, 512, 513}) {
      const Tensor<float, 4> step =
          run(one_thread, part(inputs.query.view(), 1, row, 1), part(inputs.key.view(), 1, 0, row + 1),
              part(inputs.value.view(), 1, 0, row + 1), inputs.options);
      EXPECT_TRUE(test::same_bits(step.view(), part(prefill.view(), 1, row, 1))) << "row " << row;
    }
  }
}

// The same tensor with each head by itself: [B, H, L, D] memory, seen as [B, L, H, D].
struct ByHead {
  explicit ByHead(const View<const float, 4>& from)
      : storage({from.extent(0), from.extent(2), from.extent(1), from.extent(3)}), view(storage.data(), from.shape) {
    const std::int64_t length = from.extent(1);
    const std::int64_t dim = from.extent(3);
    view.strides = {from.extent(2) * length * dim, dim, length * dim, 1};
    for (std::int64_t n = 0; n < storage.size(); ++n) {
      const std::int64_t row = n / dim;
      storage.data()[n] = from(row / length / from.extent(2), row % length, row / length % from.extent(2), n % dim);
    }
  }
  Tensor<float, 4> storage;
  View<float, 4> view;
};

// A few rows beside a prefill that packs its keys, their heads side by side and apart.
void expect_same_bits_however_heads_lie(const AttentionCase& c, Engine& one_thread, Engine& two_threads) {
  SCOPED_TRACE(c.line());
  const AttentionInputs inputs(c);
  const ByHead key(inputs.key.view());
  const ByHead value(inputs.value.view());
  const Tensor<float, 4> prefill = run(two_threads, inputs);
  for (const std::int64_t rows : {1, 2, 7}) {
    const std::int64_t first = c.query_length - rows;
    const View<const float, 4> query = part(inputs.query.view(), 1, first, rows);
    const View<const float, 4> expected = part(prefill.view(), 1, first, rows);
    for (Engine* engine : {&one_thread, &two_threads}) {
      const Tensor<float, 4> side_by_side = run(*engine, query, inputs.key, inputs.value, inputs.options);
      EXPECT_TRUE(test::same_bits(side_by_side.view(), expected)) << rows << " rows";
      const Tensor<float, 4> apart = run(*engine, query, key.view, value.view, inputs.options);
      EXPECT_TRUE(test::same_bits(apart.view(), expected)) << rows << " rows, heads apart";
    }
  }
}

// More heads than one sweep over memory takes.
TEST_P(AttentionPromises, AFewQueriesHaveTheSameBitsHoweverHeadsLie) {
  Engine one_thread(options(1)), two_threads(options(2));
  for (const std::int64_t group : {1, 3}) {
    for (const std::int64_t dim : {20, 144}) {
      AttentionCase c = square(1, test::count<std::int64_t>(600, 300), 37 * group, 37, dim);
      c.query_length = 30;
      c.causal = Causal::bottom_right;
      expect_same_bits_however_heads_lie(c, one_thread, two_threads);
    }
  }
}

// More keys than caches are taken to hold (16 MiB), which are asked for long before they are read.
TEST_P(AttentionPromises, AFewQueriesHaveTheSameBitsWhereKeysComeFromFar) {
  Engine one_thread(options(1)), two_threads(options(2));
  for (const std::int64_t dim : {24, 72, 128}) {
    AttentionCase c = square(1, 0, 3, 3, dim);
    c.key_length = (std::int64_t{17} << 20) / (2 * 4 * c.key_value_heads * dim) + 5;
    c.query_length = 10;
    c.causal = Causal::bottom_right;
    expect_same_bits_however_heads_lie(c, one_thread, two_threads);
  }
}

// Distances that a float does not hold are rounded alike, however many rows and keys are walked through together.
TEST_P(AttentionPromises, SlopesOfRowsFarFromTheirKeysHaveTheSameBits) {
  Engine engine(options(1));
  for (const int exponent : {24, 27, 29}) {
    AttentionCase c = square(1, 300, 2, 2, 16);
    c.query_length = 40;
    const AttentionInputs inputs(c);
    const std::vector<float> slopes = {0x1p-22f, 0x1.8p-25f};
    AttentionOptions distant = inputs.options;
    distant.alibi = slopes;
    const std::int64_t start = (std::int64_t{1} << exponent) + 101;
    distant.query_start = start;
    const Tensor<float, 4> together = run(engine, inputs.query, inputs.key, inputs.value, distant);
    for (std::int64_t row = 0; row < c.query_length; ++row) {
      distant.query_start = start + row;
      const Tensor<float, 4> alone =
          run(engine, part(inputs.query.view(), 1, row, 1), inputs.key, inputs.value, distant);
      EXPECT_TRUE(test::same_bits(alone.view(), part(together.view(), 1, row, 1))) << "row " << row << ", " << exponent;
    }
  }
}

// A few dozen keys have a kernel of their own, which knows no masks: one that hides nothing takes the
// other way. Lengths, large scores, rows that see nothing, shared keys.
TEST_P(AttentionPromises, SameBitsForShortSequencesByEitherWay) {
  test::Random random(5);
  Engine engine(options(2));
  for (int round = 0; round < test::count(160, 40); ++round) {
    AttentionCase c = square(random.integer(1, 3), 1, 4, round % 2 == 0 ? 4 : 2, random.integer(1, 130));
    c.seed = static_cast<std::uint64_t>(round);
    c.key_length = round % 2 == 0 ? 1 + round % 17 : random.integer(1, 100);
    c.query_length = random.integer((c.key_length + 1) / 2, 80);
    c.value_dim = random.integer(1, 70);
    if (round % 5 == 1) c.causal = Causal::top_left;
    if (round % 5 == 2) c.window = {random.integer(0, 9), random.integer(0, 9)};
    if (round % 3 == 2) {
      for (std::int64_t b = 0; b < c.batch; ++b) c.key_lengths.push_back(random.integer(0, c.key_length));
      for (std::int64_t b = 0; b < c.batch; ++b) c.query_lengths.push_back(random.integer(0, c.query_length));
    }
    if (round % 7 == 3) c.scale = 1e9f;
    if (round % 4 == 3) {  // packed
      c.batch = 1;
      c.key_lengths = c.query_lengths = {};
      c.query_offsets = {0};
      for (int s = 0; s < 6; ++s) c.query_offsets.push_back(c.query_offsets.back() + random.integer(1, c.key_length));
      c.query_length = c.key_length = c.query_offsets.back();
    }
    SCOPED_TRACE(c.line());
    const AttentionInputs inputs(c);
    AttentionOptions options = inputs.options;
    Tensor<float, 3> sums({c.batch, 4, c.query_length}), expected_sums(sums.shape());
    options.log_sum_exp = sums;
    const Tensor<float, 4> out = run(engine, inputs.query, inputs.key, inputs.value, options);
    Tensor<std::uint8_t, 4> mask({1, 1, 1, c.key_length});
    for (std::uint8_t& entry : mask) entry = 1;
    options.mask = BooleanMask{mask, MaskMeans::attend};
    options.log_sum_exp = expected_sums;
    const Tensor<float, 4> expected = run(engine, inputs.query, inputs.key, inputs.value, options);
    EXPECT_TRUE(test::same_bits(out.view(), expected.view()));
    EXPECT_TRUE(test::same_bits(sums.view(), expected_sums.view()));
  }
}

HEADLIGHT_ON_EVERY_ISA(AttentionPromises);

}  // namespace headlight::attention_promises_test
