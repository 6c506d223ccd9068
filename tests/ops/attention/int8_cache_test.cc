// Attention over keys and values of int8: float32's bits over what they hold, on every route.
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/attention.h"
#include "ops/attention/plan.h"
#include "support/allocation_counter.h"
#include "support/attention_case.h"
#include "support/attention_operands.h"
#include "support/attention_results.h"
#include "support/cached_rows.h"
#include "support/isas.h"
#include "support/quick.h"
#include "support/refusal.h"
#include "support/stored.h"
#include "support/typed_operands.h"
#include "support/workers.h"

namespace headlight::attention_int8_cache_test {

using test::AttentionCase;
using test::AttentionInputs;
using test::CachedRows;
using test::Stored;
using Layout = CachedRows::Layout;
using Results = test::AttentionResults<float>;

class Int8Cache : public test::EachIsaAndFeature {};

// What of a call is int8; the other may be of any type.
enum class Cached : std::uint8_t { both, key, value };

struct Operands {
  Operands(const AttentionCase& c, const AttentionInputs& in, Layout layout, Cached cached)
      : query(c.types[0], in.query),
        other(c.types[1], cached == Cached::key ? in.value : in.key),
        key(in.key, layout),
        value(in.value, layout),
        which(cached) {}

  [[nodiscard]] ops::AttentionOperands with(const MutableTypedView<4>& out) {
    ops::AttentionOperands operands{query.view(), key.numbers(), value.numbers(), out, key.scales(), value.scales()};
    if (which == Cached::key) operands.value = other.view(), operands.value_scales = {};
    if (which == Cached::value) operands.key = other.view(), operands.key_scales = {};
    return operands;
  }
  [[nodiscard]] Tensor<float, 4> keys() const { return which == Cached::value ? other.floats() : key.floats(); }
  [[nodiscard]] Tensor<float, 4> values() const { return which == Cached::key ? other.floats() : value.floats(); }

  Stored query, other;
  CachedRows key, value;
  Cached which;
};

AttentionOptions asking_for(AttentionOptions options, Results& results, bool all) {
  options.log_sum_exp = results.log_sum_exp;
  if (all) {
    options.probabilities.per_head = results.probabilities;
    options.scores = results.scores;
  }
  return options;
}

void expect_bits_of_floats(const AttentionCase& c, Engine& engine, Layout layout, Cached cached) {
  SCOPED_TRACE(c.line());
  const AttentionInputs in(c);
  Operands operands(c, in, layout, cached);
  Results expected(c);
  attention(engine, operands.query.floats(), operands.keys(), operands.values(), expected.out,
            asking_for(in.options, expected, true));
  for (const bool all : {false, true}) {
    Results results(c);
    Stored out(c.types[3], results.out);
    test::attend(engine, operands.with(out.view()), asking_for(in.options, results, all));
    EXPECT_TRUE(test::same_bits(out.floats(), test::rounded_to(c.types[3], expected.out)));
    EXPECT_TRUE(test::same_bits(results.log_sum_exp, expected.log_sum_exp));
    if (!all) continue;
    EXPECT_TRUE(test::same_bits(results.probabilities, expected.probabilities));
    EXPECT_TRUE(test::same_bits(results.scores, expected.scores));
  }
}

Layout layout_of(std::uint64_t seed) { return seed % 3 == 0 ? Layout::by_head : Layout::by_position; }
Cached cached_of(std::uint64_t seed) {
  return seed % 4 == 0 ? Cached::key : seed % 4 == 1 ? Cached::value : Cached::both;
}

TEST_P(Int8Cache, HasTheBitsOfFloat32OverWhatItHolds) {
  Engine one(options(1)), three(options(3));
  const auto longest = test::count<std::int64_t>(300, 60);
  for (std::uint64_t seed = 1; seed <= test::count<std::uint64_t>(120, 30) && !HasFailure(); ++seed) {
    expect_bits_of_floats(test::random_attention_case(seed, longest), seed % 2 == 0 ? one : three, layout_of(seed),
                          cached_of(seed / 2));
  }
}

std::int64_t key_block(std::int64_t head_dim, std::int64_t value_dim) {
  return ops::attention_key_block({1, 1, 1, 1, 1, 1, head_dim, value_dim});
}

TEST_P(Int8Cache, HasThemOverSeveralBlocksOfKeys) {
  Engine one(options(1)), three(options(3));
  for (std::uint64_t seed = 1; seed <= test::count<std::uint64_t>(24, 6) && !HasFailure(); ++seed) {
    expect_bits_of_floats(test::random_case_of_several_blocks(seed, key_block), seed % 2 == 0 ? one : three,
                          layout_of(seed), cached_of(seed / 2));
  }
}

// Where rows are few and keys are read where they lie: whole blocks of bytes and what is left of a row and of the keys.
TEST_P(Int8Cache, HasThemForFewRowsOfAnyWidth) {
  Engine one(options(1)), three(options(3));
  for (const std::int64_t rows : {1, 2, 3, 13, 40}) {
    for (const std::int64_t dim : {1, 16, 33, 64, 100, 128, 145}) {
      for (const std::int64_t keys : {63, 64, 200}) {
        AttentionCase c;
        c.seed = static_cast<std::uint64_t>(rows + dim);
        c.query_length = rows;
        c.key_length = keys;
        c.query_heads = rows == 1 ? 4 : 2;
        c.key_value_heads = 2;
        c.head_dim = dim;
        c.value_dim = dim + 3;
        c.window.left = keys == 200 ? 150 : -1;
        c.align = Align::bottom_right;
        expect_bits_of_floats(c, rows == 2 ? one : three, dim % 2 == 0 ? Layout::by_head : Layout::by_position,
                              Cached::both);
      }
    }
  }
}

// Half a scale for each element of a key moves a score by as much as its query has of absolute value, a score moved by
// ε moves a weight by a factor of at most exp(2ε), and values are off by half a scale themselves; all in exact
// arithmetic, beside which float32 errs as ever.
TEST_P(Int8Cache, ErrsByHalfAScaleOfEachElement) {
  Engine engine(options(2));
  constexpr double kHalf = 0.5 * (1 + 0x1p-16);  // the inverse of the scale is rounded, and so is the product with it
  for (std::uint64_t seed = 1; seed <= test::count<std::uint64_t>(60, 15) && !HasFailure(); ++seed) {
    AttentionCase c = test::random_attention_case(seed, 60);
    c.types = {};
    c.dropout = 0;
    SCOPED_TRACE(c.line());
    const AttentionInputs in(c);
    Operands operands(c, in, Layout::by_position, Cached::both);
    Results results(c);
    test::attend(engine, operands.with(results.out), in.options);
    const auto plain = test::plain_results<float>(c, in);
    const auto truth = test::plain_results<double>(c, in);
    const auto sizes = test::added_up(c, in);
    const double of_plain = test::worst_row_error(plain.out.view(), truth.out.view(), sizes.view()).error;
    double largest_query = 0, largest_value = 0;
    for (std::int64_t n = 0; n < in.query.size() / std::max<std::int64_t>(c.head_dim, 1); ++n) {
      double sum = 0;
      for (std::int64_t d = 0; d < c.head_dim; ++d)
        sum += std::abs(static_cast<double>(in.query.data()[n * c.head_dim + d]));
      largest_query = std::max(largest_query, sum);
    }
    for (const float v : in.value) largest_value = std::max(largest_value, std::abs(static_cast<double>(v)));
    const double scale =
        c.scale ? std::abs(static_cast<double>(*c.scale)) : 1 / std::sqrt(static_cast<double>(c.head_dim));
    const double of_score = scale * largest_query * kHalf * static_cast<double>(operands.key.largest_scale());
    const double bound = std::expm1(2 * of_score) * largest_value +
                         kHalf * static_cast<double>(operands.value.largest_scale()) +
                         (2 * of_plain + 8 * test::kUnitRoundoff) * static_cast<double>(c.value_dim) * largest_value;
    double worst = 0;
    for (std::int64_t n = 0; n < results.out.size(); ++n) {
      worst = std::max(worst, std::abs(static_cast<double>(results.out.data()[n]) - truth.out.data()[n]));
    }
    EXPECT_LE(worst, bound);
  }
}

// A decode step, a few rows, many: the same rows of a prefill.
TEST_P(Int8Cache, DecodingEqualsPrefill) {
  for (const Layout layout : {Layout::by_position, Layout::by_head}) {
    AttentionCase c;
    c.seed = 3;
    c.query_length = c.key_length = test::count<std::int64_t>(1100, 600);
    c.query_heads = 4;
    c.key_value_heads = 2;
    c.head_dim = 80;
    c.value_dim = 24;
    c.causal = Causal::bottom_right;
    const AttentionInputs in(c);
    Operands operands(c, in, layout, Cached::both);
    Tensor<float, 4> prefill(Results(c).out.shape());
    Engine one(options(1)), two(options(2));
    test::attend(two, operands.with(prefill), in.options);
    for (const std::int64_t rows : {1, 2, 5, 13, 100}) {
      const std::int64_t first = c.query_length - rows;
      for (Engine* engine : {&one, &two}) {
        Tensor<float, 4> few({1, rows, c.query_heads, c.value_dim});
        ops::AttentionOperands part = operands.with(few);
        part.query = test::part(operands.query.view(), first, rows);
        test::attend(*engine, part, in.options);
        const View<const float, 4> expected(&prefill(0, first, 0, 0), few.shape());
        EXPECT_TRUE(test::same_bits(View<const float, 4>(few.view()), expected)) << rows << " rows";
      }
    }
  }
}

TEST_P(Int8Cache, SameBitsForAnyNumberOfThreads) {
  for (const std::int64_t rows : {1, 50, 400}) {
    AttentionCase c;
    c.seed = 9;
    c.batch = 2;
    c.query_length = rows;
    c.key_length = 3000;
    c.query_heads = c.key_value_heads = 3;
    c.head_dim = c.value_dim = 64;
    const AttentionInputs in(c);
    Operands operands(c, in, Layout::by_position, Cached::both);
    const auto computed = [&](int threads) {
      Engine engine(options(threads));
      Tensor<float, 4> out(Results(c).out.shape());
      test::attend(engine, operands.with(out.view()), in.options);
      return out;
    };
    const Tensor<float, 4> expected = computed(1);
    for (const int threads : test::more_threads()) {
      EXPECT_TRUE(test::same_bits(computed(threads), expected)) << threads << " threads, " << rows << " rows";
    }
  }
}

// The memory of both, numbers and scales, ends or begins at a page that nobody may touch.
TEST_P(Int8Cache, TouchesNothingOutside) {
  Engine engine(options(1));
  test::Random random(3);
  for (int round = 0; round < test::count(90, 20); ++round) {
    const test::Against side = test::kBothSides[static_cast<std::size_t>(round % 2)];
    const std::int64_t queries = random.integer(1, round % 3 == 0 ? 2 : 40);
    const std::int64_t keys = random.integer(1, round % 5 == 0 ? 600 : 140);
    const std::int64_t heads = random.integer(1, 3), dim = random.integer(1, 140), value_dim = random.integer(1, 140);
    const Layout layout = layout_of(static_cast<std::uint64_t>(round));
    const auto query = random.normal_tensor<4>({1, queries, heads, dim});
    const CachedRows key(random.normal_tensor<4>({1, keys, heads, dim}), layout, side);
    const CachedRows value(random.normal_tensor<4>({1, keys, heads, value_dim}), layout, side);
    Tensor<float, 4> out({1, queries, heads, value_dim});
    Tensor<std::uint8_t, 4> mask({1, heads, 1, keys});
    for (std::int64_t n = 0; n < mask.size(); ++n) mask.data()[n] = n % 5 != 0;
    AttentionOptions options;
    if (round % 4 == 1) options.causal = Causal::bottom_right;
    if (round % 3 == 1) options.mask = BooleanMask{mask.view(), MaskMeans::attend};
    test::attend(engine, {query, key.numbers(), value.numbers(), out, key.scales(), value.scales()}, options);
  }
}

TEST_P(Int8Cache, AllocatesNothingAfterReserve) {
  struct Shape {
    std::int64_t batch, query_length, key_length, heads, dim;
  };
  test::Random random(5);
  for (const int threads : {1, 2}) {
    for (const Shape& s : {Shape{1, 5, 5, 2, 4}, {1, 200, 200, 2, 64}, {40, 70, 70, 2, 16}, {1, 1, 9000, 1, 128}}) {
      Engine engine(options(threads));
      test::wait_for_workers(engine);
      const auto query = random.normal_tensor<4>({s.batch, s.query_length, s.heads, s.dim});
      const auto rows = random.normal_tensor<4>({s.batch, s.key_length, s.heads, s.dim});
      const CachedRows key(rows);
      Tensor<float, 4> out(query.shape());
      const AttentionShape shape{s.batch, s.query_length, s.key_length, s.heads, s.heads, s.dim, s.dim};
      reserve(engine, shape);
      const test::AllocationCounter counter;
      quantize_rows(engine, rows, key.numbers(), key.scales());
      test::attend(engine, {query, key.numbers(), key.numbers(), out, key.scales(), key.scales()});
      EXPECT_EQ(counter.count(), 0) << "Lq = " << s.query_length << ", threads " << threads;
      EXPECT_LE(engine.scratch_bytes(), workspace_bytes(engine, shape) + 4096);
    }
  }
}

// Values that are all 127, but those of the last key, which a mask may hide.
class LastKey {
 public:
  explicit LastKey(std::int64_t rows)
      : query_(random_.normal_tensor<4>({1, rows, 1, 8})),
        key_(random_.normal_tensor<4>({1, kKeys, 1, 8})),
        value_(all_of(127.0f)),
        out_({1, rows, 1, kDim}) {
    for (std::uint8_t& seen : mask_) seen = 1;
    mask_(0, 0, 0, kKeys - 1) = 0;
  }

  [[nodiscard]] float& key_scale() { return key_.scales()(0, kKeys - 1, 0); }
  void set_value(float scale, std::int8_t integer) {
    value_.scales()(0, kKeys - 1, 0) = scale;
    for (std::int64_t d = 0; d < kDim; ++d) value_.numbers()(0, kKeys - 1, 0, d) = integer;
  }
  const Tensor<float, 4>& attend(Engine& engine, bool hidden) {
    AttentionOptions options;
    if (hidden) options.mask = BooleanMask{mask_.view(), MaskMeans::attend};
    test::attend(engine, {query_, key_.numbers(), value_.numbers(), out_, key_.scales(), value_.scales()}, options);
    return out_;
  }
  void expect_hidden(Engine& engine) {
    constexpr float kTolerance = 127.0f * kKeys * 0x1p-23f;  // a rounding of a product and a sum for each key
    for (const float number : attend(engine, true)) EXPECT_NEAR(number, 127.0f, kTolerance);
  }

 private:
  static constexpr std::int64_t kKeys = 80, kDim = 20;
  static Tensor<float, 4> all_of(float number) {
    Tensor<float, 4> made({1, kKeys, 1, kDim});
    for (float& x : made) x = number;
    return made;
  }

  test::Random random_{4};
  Tensor<float, 4> query_;
  CachedRows key_, value_;
  Tensor<std::uint8_t, 4> mask_{{1, 1, 1, kKeys}};
  Tensor<float, 4> out_;
};

// A finite scale may overflow times its integer: that value is infinite, and as well hidden.
TEST_P(Int8Cache, HidesScalesThatOverflow) {
  Engine engine(options(1));
  for (const std::int8_t integer : {std::int8_t{127}, std::int8_t{-128}}) {
    for (const std::int64_t rows : {1, 2, 5, 30, 200}) {
      SCOPED_TRACE(std::to_string(rows) + " rows, " + std::to_string(integer));
      LastKey last(rows);
      last.set_value(3e36f, integer);
      last.expect_hidden(engine);
    }
  }
}

// A scale that is NaN makes its row NaN, which those see who see the row.
TEST_P(Int8Cache, HidesScalesThatAreNotFinite) {
  Engine engine(options(1));
  for (const float broken : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const std::int64_t rows : {1, 2, 30}) {
      SCOPED_TRACE(std::to_string(rows) + " rows");
      LastKey last(rows);
      last.key_scale() = broken;
      last.set_value(broken, 0);
      last.expect_hidden(engine);
      last.key_scale() = 1;
      for (const float number : last.attend(engine, false)) EXPECT_TRUE(std::isnan(number));
    }
  }
}

TEST_P(Int8Cache, RefusesWhatItCannotRead) {
  Engine engine(options(1));
  test::Random random(8);
  const auto x = random.normal_tensor<4>({1, 4, 2, 8});
  const CachedRows rows(x);
  Tensor<float, 4> out(x.shape());
  const auto message = [&](const ops::AttentionOperands& operands) {
    return test::refusal([&] { test::attend(engine, operands); });
  };
  const View<std::int8_t, 4> numbers = rows.numbers();
  const View<float, 3> scales = rows.scales();
  EXPECT_EQ(message({x, numbers, numbers, out, scales, scales}), "");
  EXPECT_EQ(message({numbers, x, x, out}), "attention: query has type int8, expected float32, bfloat16 or float16");
  EXPECT_EQ(message({x, x, x, numbers}), "attention: out has type int8, expected float32, bfloat16 or float16");
  EXPECT_EQ(message({x, numbers, x, out}),
            "attention: key_scales has shape [0, 0, 0], expected [1, 4, 2] ([B, Lk, Hkv], one for each row and head)");
  EXPECT_EQ(
      message({x, x, numbers, out, {}, View<float, 3>(scales.data, {1, 2, 4})}),
      "attention: value_scales has shape [1, 2, 4], expected [1, 4, 2] ([B, Lk, Hkv], one for each row and head)");
  EXPECT_EQ(message({x, x, x, out, {}, scales}),
            "attention: value_scales is given with a value of float32, expected int8");
  const View<float, 3> within(out.data() + 3, {1, 4, 2});
  EXPECT_EQ(message({x, numbers, numbers, out, scales, within}), "attention: out overlaps value_scales in memory");
  Tensor<float, 3> log_sum_exp({1, 2, 4});
  const View<float, 3> shared(log_sum_exp.data(), {1, 4, 2});
  EXPECT_EQ(test::refusal([&] {
              test::attend(engine, {x, numbers, numbers, out, shared, scales}, {.log_sum_exp = log_sum_exp});
            }),
            "attention: log_sum_exp overlaps key_scales in memory");
}

HEADLIGHT_ON_EVERY_FEATURE(Int8Cache);

}  // namespace headlight::attention_int8_cache_test
