// Attention over queries, keys and values of bfloat16. Where the instruction set multiplies pairs of them, a score is
// the documented chain, weights are rounded once, and all that attention() promises holds; where not, it holds too.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/attention.h"
#include "ops/attention/plan.h"
#include "support/attention_case.h"
#include "support/attention_results.h"
#include "support/isas.h"
#include "support/quick.h"
#include "support/random.h"
#include "support/stored.h"
#include "support/typed_operands.h"

namespace headlight::attention_bfloat16_test {

using test::AttentionCase;
using test::AttentionInputs;
using test::Stored;
using test::TypedOperands;

class BFloat16Attention : public test::EachIsaAndFeature {};

using Results = test::AttentionResults<float>;

AttentionCase of_bfloat16(AttentionCase c) {
  c.head_dim += c.head_dim % 2;
  c.types.fill(NumberType::bfloat16);
  c.types[3] = NumberType::float32;
  return c;
}

// Twice the error of the plain float32 computation, and a rounding to bfloat16 of each weight.
void expect_error_of_rounded_weights(const AttentionCase& c, Engine& engine) {
  SCOPED_TRACE(c.line());
  AttentionInputs in(c);
  TypedOperands operands(c, in);
  in.query = operands.query.floats();
  in.key = operands.key.floats();
  in.value = operands.value.floats();
  const auto plain = test::plain_results<float>(c, in);
  const auto truth = test::plain_results<double>(c, in);
  const Tensor<double, 4> sizes = test::added_up(c, in);
  Results ours(c);
  AttentionOptions options = in.options;
  options.log_sum_exp = ours.log_sum_exp;
  options.probabilities.per_head = ours.probabilities;
  attention(engine, operands.query.view(), operands.key.view(), operands.value.view(), ours.out, options);
  const auto of_plain = test::worst_row_error(plain.out.view(), truth.out.view(), sizes.view());
  const auto of_ours = test::worst_row_error(ours.out.view(), truth.out.view(), sizes.view());
  EXPECT_LE(of_ours.error, 2 * of_plain.error + 4 * test::kUnitRoundoff + 0x1p-8) << of_ours.where;
  // Neither of these is rounded: they are as near as float32's.
  const test::AttentionYardsticks yardsticks(c, in, truth);
  const auto lse_of_plain =
      test::worst_row_error(plain.log_sum_exp.view(), truth.log_sum_exp.view(), yardsticks.log_sum_exp.view());
  const auto lse_of_ours =
      test::worst_row_error(ours.log_sum_exp.view(), truth.log_sum_exp.view(), yardsticks.log_sum_exp.view());
  EXPECT_LE(lse_of_ours.error, 2 * lse_of_plain.error + 4 * test::kUnitRoundoff) << lse_of_ours.where;
}

TEST_P(BFloat16Attention, ErrsByTheRoundingOfItsWeights) {
  Engine one(options(1)), three(options(3));
  for (std::uint64_t seed = 1; seed <= test::count<std::uint64_t>(150, 40) && !HasFailure(); ++seed) {
    expect_error_of_rounded_weights(of_bfloat16(test::random_attention_case(seed, 70)), seed % 2 == 0 ? one : three);
  }
}

std::int64_t key_block(std::int64_t head_dim, std::int64_t value_dim) {
  return ops::attention_key_block({1, 1, 1, 1, 1, 1, head_dim, value_dim});
}

TEST_P(BFloat16Attention, FULL_ErrsNoMoreOverSeveralBlocksOfKeys) {
  Engine one(options(1)), three(options(3));
  for (std::uint64_t seed = 1; seed <= test::count<std::uint64_t>(16, 4) && !HasFailure(); ++seed) {
    expect_error_of_rounded_weights(of_bfloat16(test::random_case_of_several_blocks(seed, key_block)),
                                    seed % 2 == 0 ? one : three);
  }
}

// Of pairs of neighbours the second number of each first; in tile registers, of every 32 numbers, first and second
// numbers by themselves.
float chain(const float* query, const float* key, std::int64_t head_dim, bool in_tiles) {
  float sum = 0;
  if (in_tiles) {
    for (std::int64_t first = 0; first < head_dim; first += 32) {
      float chains[2] = {0, 0};
      for (std::int64_t d = first; d < std::min<std::int64_t>(first + 32, head_dim); ++d)
        chains[d % 2] = std::fma(query[d], key[d], chains[d % 2]);
      sum += chains[0] + chains[1];
    }
    return sum;
  }
  for (std::int64_t d = 0; d < head_dim; d += 2)
    sum = std::fma(query[d], key[d], std::fma(query[d + 1], key[d + 1], sum));
  return sum;
}

TEST_P(BFloat16Attention, ScoresAreTheDocumentedChain) {
  Engine engine(options(2));
  const bool in_tiles = engine.features().has(InstructionFeature::amx_bf16);
  for (const std::int64_t dim : {2, 30, 64, 94, 256}) {
    AttentionCase c;
    c.query_length = 19;
    c.key_length = 90;
    c.query_heads = c.key_value_heads = 2;
    c.head_dim = c.value_dim = dim;
    c = of_bfloat16(c);
    if (!test::multiplies_pairs(engine, c)) continue;
    const AttentionInputs in(c);
    TypedOperands operands(c, in);
    Results results(c);
    attention(engine, operands.query.view(), operands.key.view(), operands.value.view(), results.out,
              {.scale = 1.0f, .scores = results.scores});
    const Tensor<float, 4> query = operands.query.floats(), key = operands.key.floats();
    for (std::int64_t h = 0; h < 2; ++h) {
      for (std::int64_t i = 0; i < c.query_length; ++i) {
        for (std::int64_t j = 0; j < c.key_length; ++j) {
          ASSERT_EQ(results.scores(0, h, i, j), chain(&query(0, i, h, 0), &key(0, j, h, 0), dim, in_tiles)) << dim;
        }
      }
    }
  }
}

// Rows one at a time, a few, many, with one thread or three: the bits of all rows in one call, with every option.
TEST_P(BFloat16Attention, RowsByThemselvesHaveTheBitsOfAll) {
  Engine one(options(1)), three(options(3));
  for (const std::int64_t dim : {6, 64, 130}) {
    for (const Causal causal : {Causal::none, Causal::bottom_right}) {
      AttentionCase c;
      c.seed = static_cast<std::uint64_t>(dim);
      c.query_length = c.key_length = test::count<std::int64_t>(1101, 601);
      c.query_heads = 4;
      c.key_value_heads = 2;
      c.head_dim = dim;
      c.value_dim = dim / 2 + 1;
      c.causal = causal;
      c = of_bfloat16(c);
      const AttentionInputs in(c);
      TypedOperands operands(c, in);
      Results all(c);
      attention(three, operands.query.view(), operands.key.view(), operands.value.view(), all.out, in.options);
      for (const std::int64_t rows : {1, 2, 5, 13, 100}) {
        const std::int64_t first = c.query_length - rows;
        for (Engine* engine : {&one, &three}) {
          Tensor<float, 4> few({1, rows, c.query_heads, c.value_dim});
          attention(*engine, test::part(operands.query.view(), first, rows), operands.key.view(), operands.value.view(),
                    few, in.options);
          const View<const float, 4> expected(&all.out(0, first, 0, 0), few.shape());
          EXPECT_TRUE(test::same_bits(few.view(), expected)) << rows << " rows, D = " << dim;
        }
      }
      // Fewer keys than all, an odd number of them too: what the rows in the middle of a causal call see.
      if (causal == Causal::none) continue;
      for (const std::int64_t keys : {1, 2, 15, 17, 64, 512, 513}) {
        Tensor<float, 4> row({1, 1, c.query_heads, c.value_dim});
        attention(one, test::part(operands.query.view(), keys - 1, 1), test::part(operands.key.view(), 0, keys),
                  test::part(operands.value.view(), 0, keys), row);
        const View<const float, 4> expected(&all.out(0, keys - 1, 0, 0), row.shape());
        EXPECT_TRUE(test::same_bits(row.view(), expected)) << keys << " keys, D = " << dim;
      }
    }
  }
}

// Queries are read in place where pairs of them are words of memory, and copied where they are not: the same bits.
TEST_P(BFloat16Attention, QueriesMayLieAnywhere) {
  Engine one(options(1));
  AttentionCase c;
  c.query_length = c.key_length = 61;
  c.query_heads = c.key_value_heads = 3;
  c.head_dim = c.value_dim = 34;
  c = of_bfloat16(c);
  const AttentionInputs in(c);
  TypedOperands operands(c, in);
  Results expected(c);
  attention(one, operands.query.view(), operands.key.view(), operands.value.view(), expected.out, in.options);
  const TypedView<4> query = operands.query.view();
  // How far apart rows and heads are, and what lies before the first number.
  struct Place {
    std::int64_t row, head, first;
  };
  const std::int64_t dim = c.head_dim, length = c.query_length;
  for (const Place& place :
       {Place{3 * dim, dim, 1}, Place{3 * dim + 1, dim, 0}, Place{3 * dim + 3, dim + 1, 1}, Place{dim, length * dim, 0},
        Place{dim, length * dim + 1, 0}, Place{3 * dim + 2, dim, 2}}) {
    std::vector<BFloat16> memory(static_cast<std::size_t>(place.first + length * place.row + 3 * place.head));
    for (std::int64_t i = 0; i < length; ++i) {
      for (std::int64_t h = 0; h < c.query_heads; ++h) {
        const std::int64_t from = i * query.stride(1) + h * query.stride(2);
        std::memcpy(&memory[static_cast<std::size_t>(place.first + i * place.row + h * place.head)],
                    static_cast<const BFloat16*>(query.data) + from, static_cast<std::size_t>(dim) * sizeof(BFloat16));
      }
    }
    const View<const BFloat16, 4> moved(memory.data() + place.first, query.shape, {0, place.row, place.head, 1});
    Results ours(c);
    attention(one, moved, operands.key.view(), operands.value.view(), ours.out, in.options);
    EXPECT_TRUE(test::same_bits(ours.out, expected.out)) << place.row << ", " << place.head << ", " << place.first;
  }
}

// A call of a few keys has a way of its own, but not where its scores are asked for.
TEST_P(BFloat16Attention, ShortCallsHaveTheBitsOfOthers) {
  Engine one(options(1)), three(options(3));
  test::Random random(8);
  for (int round = 0; round < test::count(200, 50); ++round) {
    AttentionCase c;
    c.seed = static_cast<std::uint64_t>(round);
    c.batch = random.integer(1, 2);
    c.key_length = random.integer(1, round % 2 == 0 ? 18 : 64);
    c.query_length = random.integer((c.key_length + 1) / 2, 40);
    c.query_heads = c.key_value_heads = 2;
    c.head_dim = 2 * random.integer(1, 64);
    c.value_dim = random.integer(1, 130);
    if (round % 3 == 0) c.causal = Causal::top_left;
    if (round % 5 == 0) c.key_lengths.assign(static_cast<std::size_t>(c.batch), random.integer(0, c.key_length));
    c.types.fill(NumberType::bfloat16);
    if (round % 4 == 0) c.types[3] = NumberType::float32;
    SCOPED_TRACE(c.line());
    const AttentionInputs in(c);
    TypedOperands operands(c, in);
    Results alone(c), others(c);
    Stored out(c.types[3], alone.out), expected(c.types[3], others.out);
    Engine& engine = round % 7 == 0 ? three : one;
    AttentionOptions options = in.options;
    options.log_sum_exp = alone.log_sum_exp;
    attention(engine, operands.query.view(), operands.key.view(), operands.value.view(), out.view(), options);
    options.log_sum_exp = others.log_sum_exp;
    options.scores = others.scores;
    attention(engine, operands.query.view(), operands.key.view(), operands.value.view(), expected.view(), options);
    ASSERT_TRUE(test::same_bits(out.floats(), expected.floats()));
    ASSERT_TRUE(test::same_bits(alone.log_sum_exp, others.log_sum_exp));
  }
}

// Values of 1.5, but for one key's, which are NaN.
Tensor<float, 4> all_but_one(std::int64_t keys, std::int64_t hidden, std::int64_t value_dim) {
  Tensor<float, 4> values({1, keys, 1, value_dim});
  for (float& element : values) element = 1.5f;
  for (std::int64_t d = 0; d < value_dim; ++d) values(0, hidden, 0, d) = std::numeric_limits<float>::quiet_NaN();
  return values;
}

// A key that a row does not see shares its word with one that it sees: its value may be NaN.
TEST_P(BFloat16Attention, HiddenHalvesOfPairsDoNotShow) {
  Engine engine(options(1));
  for (const std::int64_t rows : {1, 30}) {
    for (const std::int64_t hidden : {0, 1, 16, 38, 39}) {
      constexpr std::int64_t kKeys = 40;
      for (const std::int64_t value_dim : {20, 64, 70}) {
        Stored query(NumberType::bfloat16, {1, rows, 1, 8}), key(NumberType::bfloat16, {1, kKeys, 1, 8}),
            value(NumberType::bfloat16, all_but_one(kKeys, hidden, value_dim));
        Tensor<float, 4> out({1, rows, 1, value_dim});
        Tensor<std::uint8_t, 4> mask({1, 1, 1, kKeys});
        for (std::int64_t j = 0; j < kKeys; ++j) mask(0, 0, 0, j) = j != hidden;
        attention(engine, query.view(), key.view(), value.view(), out,
                  {.mask = BooleanMask{mask.view(), MaskMeans::attend}});
        for (const float element : out) ASSERT_EQ(element, 1.5f) << "mask, " << rows << " rows, key " << hidden;
        // By the edges of what a row sees: a length, or for the last row a window.
        if (hidden == 0 && rows == 1) {
          attention(engine, query.view(), key.view(), value.view(), out,
                    {.align = Align::bottom_right, .window = {kKeys - 2, -1}});
          for (const float element : out) ASSERT_EQ(element, 1.5f) << "window";
        } else if (hidden != 0) {
          const std::vector<std::int64_t> lengths = {hidden};
          attention(engine, query.view(), key.view(), value.view(), out, {.key_lengths = lengths});
          for (const float element : out) ASSERT_EQ(element, 1.5f) << "length " << hidden << ", " << rows << " rows";
        }
      }
    }
  }
}

// The same where rows see different keys, packed and where they lie: of causal rows those before the key, of rows with
// a window those that it has left.
TEST_P(BFloat16Attention, HiddenHalvesOfPairsDoNotShowInRowsThatDiffer) {
  constexpr std::int64_t kKeys = 41, kWindow = 6, kDim = 70;
  Engine engine(options(1));
  for (const std::int64_t rows : {5, 30}) {
    for (std::int64_t hidden = 0; hidden < rows; ++hidden) {
      Stored query(NumberType::bfloat16, {1, rows, 1, 8}), key(NumberType::bfloat16, {1, kKeys, 1, 8}),
          value(NumberType::bfloat16, all_but_one(kKeys, hidden, kDim));
      Tensor<float, 4> out({1, rows, 1, kDim});
      const auto expect = [&](const AttentionOptions& of, std::int64_t first, std::int64_t last) {
        attention(engine, query.view(), key.view(), value.view(), out, of);
        for (std::int64_t i = 0; i < rows; ++i) {
          for (std::int64_t d = 0; d < kDim; ++d) {
            if (i >= first && i < last) {
              ASSERT_FLOAT_EQ(out(0, i, 0, d), 1.5f) << "row " << i << " of " << rows << ", key " << hidden;
            } else {
              ASSERT_TRUE(std::isnan(out(0, i, 0, d))) << "row " << i << " of " << rows << ", key " << hidden;
            }
          }
        }
      };
      expect({.causal = Causal::top_left}, 0, hidden);
      expect({.window = {kWindow, -1}}, hidden + kWindow + 1, rows);
    }
  }
}

HEADLIGHT_ON_EVERY_FEATURE(BFloat16Attention);

}  // namespace headlight::attention_bfloat16_test
