// Attention over operands of 16 bits: float32's bits over the widened operands, rounded once, on every route. Where
// pairs of bfloat16 are multiplied instead, bfloat16_test.cc says which.
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/attention.h"
#include "ops/attention/plan.h"
#include "reference/number_types.h"
#include "support/allocation_counter.h"
#include "support/attention_case.h"
#include "support/attention_operands.h"
#include "support/attention_results.h"
#include "support/guarded_operand.h"
#include "support/isas.h"
#include "support/quick.h"
#include "support/refusal.h"
#include "support/stored.h"
#include "support/typed_operands.h"
#include "support/workers.h"

namespace headlight::attention_typed_test {

using test::AttentionCase;
using test::AttentionInputs;
using test::Stored;
using Operands = test::TypedOperands;

class TypedAttention : public test::EachIsaAndFeature {};

using Results = test::AttentionResults<float>;

// By float32's attention() over the widened operands.
Results of_floats(Engine& engine, const AttentionCase& c, const AttentionInputs& in, const Operands& operands) {
  Results results(c);
  AttentionOptions options = in.options;
  options.log_sum_exp = results.log_sum_exp;
  options.probabilities.per_head = results.probabilities;
  options.scores = results.scores;
  const Tensor<float, 4> query = operands.query.floats(), key = operands.key.floats(), value = operands.value.floats();
  attention(engine, query, key, value, results.out, options);
  return results;
}

void expect_bits_of_floats(const AttentionCase& c, Engine& engine) {
  if (test::multiplies_pairs(engine, c)) return;
  SCOPED_TRACE(c.line());
  const AttentionInputs in(c);
  Operands operands(c, in);
  const Results expected = of_floats(engine, c, in, operands);
  for (const bool alone : {true, false}) {
    Results results(c);
    Stored out(c.types[3], results.out);
    AttentionOptions options = in.options;
    options.log_sum_exp = results.log_sum_exp;
    if (!alone) {
      options.probabilities.per_head = results.probabilities;
      options.scores = results.scores;
    }
    attention(engine, operands.query.view(), operands.key.view(), operands.value.view(), out.view(), options);
    EXPECT_TRUE(test::same_bits(out.floats(), test::rounded_to(c.types[3], expected.out)));
    EXPECT_TRUE(test::same_bits(results.log_sum_exp, expected.log_sum_exp));
    if (alone) continue;
    EXPECT_TRUE(test::same_bits(results.probabilities, expected.probabilities));
    EXPECT_TRUE(test::same_bits(results.scores, expected.scores));
  }
}

TEST_P(TypedAttention, HasTheBitsOfFloat32OverWidenedOperands) {
  Engine one(options(1)), three(options(3));
  const auto longest = test::count<std::int64_t>(300, 60);
  for (std::uint64_t seed = 1; seed <= test::count<std::uint64_t>(120, 30) && !HasFailure(); ++seed) {
    expect_bits_of_floats(test::random_attention_case(seed, longest), seed % 2 == 0 ? one : three);
  }
}

std::int64_t key_block(std::int64_t head_dim, std::int64_t value_dim) {
  return ops::attention_key_block({1, 1, 1, 1, 1, 1, head_dim, value_dim});
}

TEST_P(TypedAttention, HasThemOverSeveralBlocksOfKeys) {
  Engine one(options(1)), three(options(3));
  for (std::uint64_t seed = 1; seed <= test::count<std::uint64_t>(24, 6) && !HasFailure(); ++seed) {
    expect_bits_of_floats(test::random_case_of_several_blocks(seed, key_block), seed % 2 == 0 ? one : three);
  }
}

// Every pair of types of keys and values where they lie: one row, some, and heads side by side and apart.
TEST_P(TypedAttention, HasThemInEveryPairOfTypes) {
  Engine one(options(1)), three(options(3));
  for (const NumberType key : test::kStoredTypes) {
    for (const NumberType value : test::kStoredTypes) {
      for (const std::int64_t rows : {1, 2, 7, 40}) {
        for (const std::int64_t dim : {33, 64, 130}) {
          AttentionCase c;
          c.seed = static_cast<std::uint64_t>(rows + dim);
          c.query_length = rows;
          c.key_length = test::count(700, 300);
          c.query_heads = 4;
          c.key_value_heads = 2;
          c.head_dim = dim;
          c.value_dim = dim + 3;
          c.types = {value, key, value, key};
          expect_bits_of_floats(c, rows == 2 ? one : three);
        }
      }
    }
  }
}

// Σ of exact arithmetic on the rounded operands: twice the error of the plain float32 computation, and one rounding.
TEST_P(TypedAttention, ErrsByOneRoundingMoreThanFloat32) {
  Engine engine(options(2));
  for (std::uint64_t seed = 1; seed <= test::count<std::uint64_t>(60, 15) && !HasFailure(); ++seed) {
    const AttentionCase c = test::random_attention_case(seed, 60);
    if (test::multiplies_pairs(engine, c)) continue;
    SCOPED_TRACE(c.line());
    AttentionInputs in(c);
    Operands operands(c, in);
    in.query = operands.query.floats();
    in.key = operands.key.floats();
    in.value = operands.value.floats();
    const auto plain = test::plain_results<float>(c, in);
    const auto truth = test::plain_results<double>(c, in);
    const test::AttentionYardsticks yardsticks(c, in, truth);
    Stored out(c.types[3], Results(c).out);
    attention(engine, operands.query.view(), operands.key.view(), operands.value.view(), out.view(), in.options);
    // Half a unit in the last place of the type, of the largest element of the row at most: its norm.
    const double rounding = c.types[3] == NumberType::bfloat16  ? 0x1p-8
                            : c.types[3] == NumberType::float16 ? 0x1p-11
                                                                : 0;
    const auto of_plain = test::worst_row_error(plain.out.view(), truth.out.view(), yardsticks.out.view());
    const auto of_ours = test::worst_row_error(out.floats().view(), truth.out.view(), yardsticks.out.view());
    EXPECT_LE(of_ours.error, 2 * of_plain.error + 4 * test::kUnitRoundoff + rounding * (1 + 2 * of_plain.error))
        << of_ours.where;
  }
}

// A decode step, a few rows, many: the same rows of a prefill.
TEST_P(TypedAttention, DecodingEqualsPrefill) {
  for (const NumberType type : {NumberType::bfloat16, NumberType::float16}) {
    AttentionCase c;
    c.seed = 3;
    c.query_length = c.key_length = test::count<std::int64_t>(1100, 600);
    c.query_heads = 4;
    c.key_value_heads = 2;
    c.head_dim = 40;
    c.value_dim = 24;
    c.causal = Causal::bottom_right;
    c.types.fill(type);
    const AttentionInputs in(c);
    Operands operands(c, in);
    Stored all(type, Results(c).out);
    Engine one(options(1)), two(options(2));
    attention(two, operands.query.view(), operands.key.view(), operands.value.view(), all.view(), in.options);
    const Tensor<float, 4> prefill = all.floats();
    for (const std::int64_t rows : {1, 2, 5, 13, 100}) {
      const std::int64_t first = c.query_length - rows;
      for (Engine* engine : {&one, &two}) {
        Stored few(type, {1, rows, c.query_heads, c.value_dim});
        attention(*engine, test::part(operands.query.view(), first, rows), operands.key.view(), operands.value.view(),
                  few.view(), in.options);
        const Tensor<float, 4> got = few.floats();
        const View<const float, 4> expected(&prefill(0, first, 0, 0), got.shape());
        EXPECT_TRUE(test::same_bits(got.view(), expected)) << rows << " rows of " << name(type);
      }
    }
  }
}

TEST_P(TypedAttention, SameBitsForAnyNumberOfThreads) {
  for (const std::int64_t rows : {1, 50, 400}) {
    AttentionCase c;
    c.seed = 9;
    c.batch = 2;
    c.query_length = rows;
    c.key_length = 3000;
    c.query_heads = c.key_value_heads = 3;
    c.head_dim = c.value_dim = 64;
    c.types = {NumberType::bfloat16, NumberType::float16, NumberType::bfloat16, NumberType::float16};
    const AttentionInputs in(c);
    Operands operands(c, in);
    const auto computed = [&](int threads) {
      Engine engine(options(threads));
      Stored out(c.types[3], Results(c).out);
      attention(engine, operands.query.view(), operands.key.view(), operands.value.view(), out.view(), in.options);
      return out.floats();
    };
    const Tensor<float, 4> expected = computed(1);
    for (const int threads : test::more_threads()) {
      EXPECT_TRUE(test::same_bits(computed(threads), expected)) << threads << " threads, " << rows << " rows";
    }
  }
}

TEST_P(TypedAttention, TouchesNothingOutside) {
  Engine engine(options(1));
  test::Random random(3);
  for (int round = 0; round < test::count(90, 20); ++round) {
    const test::Against side = test::kBothSides[static_cast<std::size_t>(round % 2)];
    const std::int64_t queries = random.integer(1, round % 3 == 0 ? 2 : 40);
    const std::int64_t keys = random.integer(1, round % 5 == 0 ? 600 : 70);
    const std::int64_t heads = random.integer(1, 3), dim = random.integer(1, 140), value_dim = random.integer(1, 140);
    const bool pairs = round % 4 == 0;
    const auto type = [&] {
      return pairs ? NumberType::bfloat16 : test::kStoredTypes[static_cast<std::size_t>(random.integer(0, 2))];
    };
    const test::GuardedOperand query(type(), {1, queries, heads, dim}, side, random);
    const test::GuardedOperand key(type(), {1, keys, heads, dim}, side, random);
    const test::GuardedOperand value(type(), {1, keys, heads, value_dim}, side, random);
    const test::GuardedOperand out(type(), {1, queries, heads, value_dim}, side, random);
    const test::Guarded<std::uint8_t> mask(heads * keys, side);
    for (std::int64_t n = 0; n < heads * keys; ++n) mask.data()[n] = n % 5 != 0;
    AttentionOptions options;
    if (round % 4 == 1) options.causal = Causal::bottom_right;
    if (round % 3 == 1) options.mask = BooleanMask{mask.view<4>({1, heads, 1, keys}), MaskMeans::attend};
    attention(engine, query.view(), key.view(), value.view(), out.view(), options);
  }
}

TEST_P(TypedAttention, AllocatesNothingAfterReserve) {
  struct Shape {
    std::int64_t batch, query_length, key_length, heads, dim;
  };
  for (const int threads : {1, 2}) {
    for (const Shape& s : {Shape{1, 5, 5, 2, 4}, {1, 200, 200, 2, 64}, {40, 70, 70, 2, 16}, {1, 1, 9000, 1, 128}}) {
      Engine engine(options(threads));
      test::wait_for_workers(engine);
      Stored query(NumberType::float16, {s.batch, s.query_length, s.heads, s.dim});
      Stored pairs(NumberType::bfloat16, {s.batch, s.query_length, s.heads, s.dim});
      Stored key(NumberType::bfloat16, {s.batch, s.key_length, s.heads, s.dim});
      Stored out(NumberType::float16, {s.batch, s.query_length, s.heads, s.dim});
      const AttentionShape shape{s.batch, s.query_length, s.key_length, s.heads, s.heads, s.dim, s.dim};
      reserve(engine, shape);
      const test::AllocationCounter counter;
      attention(engine, query.view(), key.view(), key.view(), out.view());
      attention(engine, pairs.view(), key.view(), key.view(), out.view());
      EXPECT_EQ(counter.count(), 0) << "Lq = " << s.query_length << ", threads " << threads;
      EXPECT_LE(engine.scratch_bytes(), workspace_bytes(engine, shape) + 4096);
    }
  }
}

// What a row does not see stays unseen, and what it sees is what it is: NaN, infinities, subnormal numbers, and sums
// that the type of the result does not hold.
TEST_P(TypedAttention, TakesNumbersAsTheyAre) {
  Engine engine(options(1));
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const NumberType type : {NumberType::bfloat16, NumberType::float16}) {
    for (const std::int64_t rows : {1, 30}) {
      constexpr std::int64_t kKeys = 40;
      Tensor<float, 4> value({1, kKeys, 1, 20});
      for (float& number : value) number = 0x1p-24f;
      for (std::int64_t d = 0; d < 20; ++d) value(0, kKeys - 1, 0, d) = kNan;
      Tensor<std::uint8_t, 4> mask({1, 1, 1, kKeys});
      for (std::uint8_t& seen : mask) seen = 1;
      mask(0, 0, 0, kKeys - 1) = 0;
      Stored query(type, {1, rows, 1, 8}), key(type, {1, kKeys, 1, 8}), stored(type, value),
          out(type, {1, rows, 1, 20});
      attention(engine, query.view(), key.view(), stored.view(), out.view(),
                {.mask = BooleanMask{mask.view(), MaskMeans::attend}});
      for (const float number : out.floats()) EXPECT_EQ(number, 0x1p-24f) << name(type) << ", " << rows << " rows";
      attention(engine, query.view(), key.view(), stored.view(), out.view());
      for (const float number : out.floats()) EXPECT_TRUE(std::isnan(number)) << name(type);
    }
  }
  Tensor<BFloat16, 4> query({1, 1, 1, 4}), value({1, 1, 1, 4});
  for (BFloat16& number : value) number = BFloat16(-1e6f);
  Tensor<Float16, 4> out(query.shape());
  attention(engine, query, query, value, out);
  for (const Float16 number : out) EXPECT_EQ(static_cast<float>(number), -std::numeric_limits<float>::infinity());
}

// Types as they come; and all of float32 by either form of the function.
TEST_P(TypedAttention, IsCalledLikeFloat32) {
  Engine engine(options(1));
  test::Random random(1);
  const auto x = random.normal_tensor<4>({1, 9, 2, 12});
  Tensor<float, 4> expected(x.shape()), typed(x.shape());
  attention(engine, x, x, x, expected);
  attention(engine, TypedView<4>(x), x, x, typed);
  EXPECT_TRUE(test::same_bits(typed, expected));
  Tensor<BFloat16, 4> cache(x.shape());
  for (std::int64_t n = 0; n < x.size(); ++n) cache.data()[n] = BFloat16(x.data()[n]);
  Tensor<float, 4> from_cache(x.shape());
  attention(engine, x, cache, cache, from_cache, {.causal = Causal::top_left});
  const Tensor<float, 4> widened = test::rounded_to(NumberType::bfloat16, x);
  attention(engine, x, widened, widened, expected, {.causal = Causal::top_left});
  EXPECT_TRUE(test::same_bits(from_cache, expected));
}

TEST_P(TypedAttention, RefusesWhatItCannotRead) {
  Engine engine(options(1));
  Tensor<BFloat16, 4> x({1, 4, 2, 8}), out(x.shape());
  const auto message = [&](const ops::AttentionOperands& operands) {
    return test::refusal([&] { test::attend(engine, operands); });
  };
  ops::AttentionOperands operands{x, x, x, out};
  operands.key.type = static_cast<NumberType>(77);
  EXPECT_EQ(message(operands), "attention: key has type 77, expected float32, bfloat16, float16 or int8");
  operands = {x, x, {}, out};
  EXPECT_EQ(
      message(operands),
      "attention: value has shape [0, 0, 0, 0], expected [1, 4, 2, any] ([B, Lk, Hkv, Dv], all but Dv those of key)");
  operands = {x, x, x, MutableTypedView<4>(NumberType::bfloat16, nullptr, x.shape())};
  EXPECT_EQ(message(operands), "attention: out of shape [1, 4, 2, 8] has no memory (a null pointer)");
  const auto odd = reinterpret_cast<std::byte*>(out.data()) + 1;
  EXPECT_EQ(message({x, x, x, MutableTypedView<4>(NumberType::bfloat16, odd, {1, 3, 2, 8})}),
            "attention: out has shape [1, 3, 2, 8], expected [1, 4, 2, 8] ([B, Lq, Hq, Dv])");
  EXPECT_EQ(message({TypedView<4>(NumberType::bfloat16, odd, {1, 3, 2, 8}), x, x, x}),
            "attention: query lies at an address that is no multiple of a number's 2 bytes");
  // Where the bytes lie decides, not how many numbers there are: the second half of twice the numbers is apart, as
  // floats it would not be.
  Tensor<BFloat16, 4> both({1, 8, 2, 8});
  const View<BFloat16, 4> second(both.data() + x.size(), x.shape());
  EXPECT_EQ(message({View<BFloat16, 4>(both.data(), x.shape()), x, x, second}), "");
  EXPECT_NE(message({View<BFloat16, 4>(both.data() + 1, x.shape()), x, x, second}), "");
  EXPECT_NE(message({View<float, 4>(reinterpret_cast<float*>(both.data()), x.shape()), x, x, second}), "");
}

HEADLIGHT_ON_EVERY_FEATURE(TypedAttention);

}  // namespace headlight::attention_typed_test
