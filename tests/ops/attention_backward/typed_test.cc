// Gradients of attention over operands of 16 bits: float32's bits over the widened operands, rounded once. Where pairs
// of bfloat16 are multiplied instead, bfloat16_test.cc says which.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/attention.h"
#include "kernels/kernels.h"
#include "ops/attention_backward/plan.h"
#include "support/allocation_counter.h"
#include "support/attention_operands.h"
#include "support/guarded_operand.h"
#include "support/isas.h"
#include "support/quick.h"
#include "support/refusal.h"
#include "support/typed_backward.h"
#include "support/workers.h"

namespace headlight::attention_backward_typed_test {

using test::AttentionCase;
using test::BackwardTypes;
using test::GradientTensors;
using test::Stored;
using test::TypedBackward;

constexpr std::array kNarrowTypes = {NumberType::bfloat16, NumberType::float16};

class TypedAttentionBackward : public test::EachIsaAndFeature {
 protected:
  // Of 1, 2, 3, 5 and 8 threads.
  TypedAttentionBackward() {
    for (const int threads : {1, 2, 3, 5, 8}) engines_.push_back(std::make_unique<Engine>(options(threads)));
  }
  Engine& engine(std::uint64_t seed) { return *engines_[seed % engines_.size()]; }
  std::vector<std::unique_ptr<Engine>> engines_;

  void expect_bits_of_floats(const AttentionCase& c) {
    SCOPED_TRACE(c.line());
    TypedBackward call(engine(0), c, BackwardTypes::random(c.seed), c.seed % 3 == 0);
    if (call.multiplies_pairs(engine(0))) return;
    test::expect_same_gradients(call.of_types(engine(c.seed)), call.rounded(call.of_floats(engine(0))));
  }
};

TEST_P(TypedAttentionBackward, HasTheBitsOfFloat32OverWidenedOperands) {
  const auto longest = test::count<std::int64_t>(300, 60);
  for (std::uint64_t seed = 1; seed <= test::count<std::uint64_t>(150, 40) && !HasFailure(); ++seed) {
    expect_bits_of_floats(test::random_attention_case(seed, longest));
  }
}

TEST_P(TypedAttentionBackward, HasThemOverSeveralBlocksOfKeys) {
  const auto key_block = [&](std::int64_t head_dim, std::int64_t value_dim) {
    const ops::AttentionSizes sizes{1, 64, 64, 1, 1, 1, head_dim, value_dim};
    const kernels::AttentionKernels& kernels = kernels::attention_kernels(engine(0).isa());
    return ops::plan_attention_backward(engine(0), kernels, sizes).key_block;
  };
  for (std::uint64_t seed = 1; seed <= test::count<std::uint64_t>(30, 8) && !HasFailure(); ++seed) {
    expect_bits_of_floats(test::random_case_of_several_blocks(seed, key_block));
  }
}

TEST_P(TypedAttentionBackward, SameBitsForAnyNumberOfThreads) {
  for (const NumberType type : kNarrowTypes) {
    AttentionCase c = AttentionCase::parse(
        "seed=1 B=2 Lq=500 Lk=900 Hq=4 Hkv=2 D=16 Dv=24 causal=bottom-right bias=1,4,1,900 dropout=0.25");
    c.types.fill(type);
    TypedBackward call(engine(0), c, BackwardTypes::all(type), false);
    const GradientTensors<float> expected = call.of_types(engine(0));
    for (const auto& engine : engines_) test::expect_same_gradients(call.of_types(*engine), expected);
  }
}

// Twice the error of the plain float32 computation, and a rounding of each element. That of `out` puts a rounding into
// each δ, whose sizes the yardsticks hold.
TEST_P(TypedAttentionBackward, ErrsByOneRoundingMoreThanFloat32) {
  for (std::uint64_t seed = 1; seed <= test::count<std::uint64_t>(60, 15) && !HasFailure(); ++seed) {
    AttentionCase c = test::random_attention_case(seed, 60);
    SCOPED_TRACE(c.line());
    const bool narrow_out = seed % 2 == 0;
    c.types[3] = narrow_out ? NumberType::bfloat16 : NumberType::float32;
    BackwardTypes types = BackwardTypes::all(NumberType::bfloat16);
    types.out_gradient = c.types[0];
    TypedBackward call(engine(0), c, types, false);
    if (call.multiplies_pairs(engine(0))) continue;
    const GradientTensors<float> actual = call.of_types(engine(seed));
    const test::BackwardProblem& problem = call.problem;
    const auto plain = test::plain_gradients<float>(problem.in, problem.out_gradient);
    const auto truth = test::plain_gradients<double>(problem.in, problem.out_gradient);
    const auto yardsticks = test::gradient_yardsticks(problem.in, problem.out_gradient);
    const auto expect_close = [&](const auto& a, const auto& p, const auto& t, const auto& y, double rounding) {
      const double plain_error = test::worst_row_error(p.view(), t.view(), y.view()).error;
      const double of_delta = narrow_out ? 0x1p-8 : 0;
      const double allowed = (2 * plain_error + 8 * test::kUnitRoundoff + of_delta) * (1 + rounding) + rounding;
      EXPECT_TRUE(test::within(a.view(), t.view(), allowed, y.view()));
    };
    expect_close(actual.query, plain.query, truth.query, yardsticks.query, 0x1p-8);
    expect_close(actual.key, plain.key, truth.key, yardsticks.key, 0x1p-8);
    expect_close(actual.value, plain.value, truth.value, yardsticks.value, 0x1p-8);
    expect_close(actual.bias, plain.bias, truth.bias, yardsticks.bias, 0);
    expect_close(actual.sinks, plain.sinks, truth.sinks, yardsticks.sinks, 0);
  }
}

// Whatever else is asked for, and without what is not.
TEST_P(TypedAttentionBackward, GivesEachGradientByItself) {
  AttentionCase c = AttentionCase::parse("seed=4 B=2 Lq=100 Lk=500 Hq=4 Hkv=2 D=20 Dv=8 key_lengths=450,7");
  for (const NumberType type : kNarrowTypes) {
    c.types.fill(type);
    TypedBackward call(engine(0), c, BackwardTypes::all(type), false);
    const GradientTensors<float> all = call.of_types(engine(1));
    const auto expect = [&](MutableTypedView<4> TypedAttentionGradients::*which, const Tensor<float, 4>& expected) {
      Stored gradient(type, expected.shape());
      TypedAttentionGradients asked;
      asked.*which = gradient.view();
      call.backward(engine(1), asked);
      EXPECT_TRUE(test::same_bits(gradient.floats(), expected));
    };
    expect(&TypedAttentionGradients::query, all.query);
    expect(&TypedAttentionGradients::key, all.key);
    expect(&TypedAttentionGradients::value, all.value);
  }
}

TEST_P(TypedAttentionBackward, TheQueryGradientMayLieWhereOutDoes) {
  for (const NumberType type : test::kStoredTypes) {
    AttentionCase c = AttentionCase::parse("seed=6 B=2 Lq=500 Lk=500 Hq=2 Hkv=2 D=8 Dv=8 causal=bottom-right");
    c.types[3] = type;
    TypedBackward call(engine(0), c, BackwardTypes::all(type), false);
    const GradientTensors<float> expected = call.of_types(engine(0));
    const test::AttentionInputs& in = call.problem.in;
    Stored out(type, call.problem.out), out_gradient(type, call.problem.out_gradient);
    attention_backward(engine(1), in.query.view(), in.key.view(), in.value.view(), out.view(), call.problem.log_sum_exp,
                       out_gradient.view(), {.query = out.view()}, in.options);
    EXPECT_TRUE(test::same_bits(out.floats(), expected.query)) << name(type);
  }
}

TEST_P(TypedAttentionBackward, TouchesNothingOutside) {
  test::Random random(3);
  for (int round = 0; round < test::count(90, 20) && !HasFatalFailure(); ++round) {
    const test::Against side = test::kBothSides[static_cast<std::size_t>(round % 2)];
    const std::int64_t queries = random.integer(1, 40), keys = random.integer(1, round % 5 == 0 ? 600 : 70);
    const bool pairs = round % 4 < 2;
    const std::int64_t heads = random.integer(1, 3), step = pairs ? 2 : 1;
    const std::int64_t dim = step * random.integer(1, 140 / step), value_dim = step * random.integer(1, 140 / step);
    const auto type = [&] {
      return pairs ? NumberType::bfloat16 : test::kStoredTypes[static_cast<std::size_t>(random.integer(0, 2))];
    };
    const auto rows = [&](std::int64_t length, std::int64_t width) {
      return test::GuardedOperand(type(), {1, length, heads, width}, side, random);
    };
    test::GuardedOperand query = rows(queries, dim), key = rows(keys, dim), value = rows(keys, value_dim);
    test::GuardedOperand out = rows(queries, value_dim), out_gradient = rows(queries, value_dim);
    test::GuardedOperand query_gradient = rows(queries, dim), key_gradient = rows(keys, dim);
    test::GuardedOperand value_gradient = rows(keys, value_dim);
    const test::Guarded<float> log_sum_exp(heads * queries, side);
    for (test::GuardedOperand* const written : {&query_gradient, &key_gradient, &value_gradient}) written->mark_gaps();
    AttentionOptions options;
    if (round % 4 == 1) options.causal = Causal::bottom_right;
    options.log_sum_exp = log_sum_exp.view<3>({1, heads, queries});
    Engine& on = engine(static_cast<std::uint64_t>(round));
    attention(on, query.view(), key.view(), value.view(), out.view(), options);
    attention_backward(on, query.view(), key.view(), value.view(), out.view(), options.log_sum_exp, out_gradient.view(),
                       {query_gradient.view(), key_gradient.view(), value_gradient.view(), {}, {}, round % 3 == 0},
                       options);
    for (const test::GuardedOperand* const written : {&query_gradient, &key_gradient, &value_gradient})
      written->expect_gaps();
  }
}

TEST_P(TypedAttentionBackward, AllocatesNothingOnceReserved) {
  for (const int threads : {1, 2}) {
    for (const NumberType type : test::kStoredTypes) {
      Engine fresh(options(threads));
      test::wait_for_workers(fresh);
      AttentionCase c = AttentionCase::parse("seed=1 B=2 Lq=300 Lk=900 Hq=4 Hkv=2 D=18 Dv=40 causal=top-left");
      c.types.fill(type);
      TypedBackward call(engine(0), c, BackwardTypes::all(type), false);
      const AttentionShape shape{c.batch,           c.query_length, c.key_length, c.query_heads,
                                 c.key_value_heads, c.head_dim,     c.value_dim};
      Stored query(type, call.problem.in.query), key(type, call.problem.in.key), value(type, call.problem.in.value);
      Stored out(type, call.problem.out), to_query(type, call.problem.in.query), to_key(type, call.problem.in.key);
      reserve_backward(fresh, shape, type);
      const test::AllocationCounter counter;
      attention_backward(fresh, query.view(), key.view(), value.view(), out.view(), call.problem.log_sum_exp,
                         out.view(), {to_query.view(), to_key.view()}, call.problem.in.options);
      EXPECT_EQ(counter.count(), 0) << name(type);
      EXPECT_LE(fresh.scratch_bytes(), backward_workspace_bytes(fresh, shape, type) + 4096);
      EXPECT_EQ(backward_workspace_bytes(fresh, shape, NumberType::float32), backward_workspace_bytes(fresh, shape));
    }
  }
}

// A NaN that a row does not see stays unseen, and one that it sees does not. It is one number or the other of a pair of
// neighbours, in one row or the other of a pair of rows, or in the last row, which is in none.
TEST_P(TypedAttentionBackward, NothingPassesAMask) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr std::int64_t kLength = 41;
  constexpr struct { std::int64_t row, column; } kPlaces[] = {{20, 3}, {21, 2}, {21, 3}, {40, 2}, {40, 3}};
  for (const NumberType type : kNarrowTypes) {
    for (int n = 0; n < 15; ++n) {
      const char* const line =
          std::array{"seed=7 B=1 Lq=41 Lk=41 Hq=1 Hkv=1 D=20 Dv=12 causal=top-left",
                     "seed=9 B=1 Lq=41 Lk=41 Hq=1 Hkv=1 D=20 Dv=12 query_lengths=20 key_lengths=20",
                     "seed=8 B=1 Lq=41 Lk=41 Hq=1 Hkv=1 D=20 Dv=12 mask=1,1,41,41 "
                     "mask_means=attend"}[static_cast<std::size_t>(n % 3)];
      const auto [at, column] = kPlaces[n / 3];
      AttentionCase c = AttentionCase::parse(line);
      c.types.fill(type);
      for (int which = 0; which < 4; ++which) {
        SCOPED_TRACE(std::string(line) + ", " + std::to_string(which) + ", at " + std::to_string(at) + ", " +
                     std::to_string(column));
        TypedBackward clean(engine(0), c, BackwardTypes::all(type), false),
            spoiled(engine(0), c, BackwardTypes::all(type), false);
        test::BackwardProblem& problem = spoiled.problem;
        Tensor<float, 4>* const inputs[] = {&problem.in.query, &problem.in.key, &problem.in.value,
                                            &problem.out_gradient};
        (*inputs[which])(0, at, 0, column) = kNan;
        problem.forward(engine(0));
        problem.out = test::rounded_to(type, problem.out);
        const GradientTensors<float> a = clean.of_types(engine(1)), b = spoiled.of_types(engine(1));
        const auto sees = [&](std::int64_t i, std::int64_t j) {
          return reference::visible(problem.in.options, kLength, kLength, 0, 0, i, j);
        };
        const bool row = which == 0 || which == 3;
        const auto spoils_row = [&, spoiled_row = at](std::int64_t i) {
          return row ? i == spoiled_row : sees(i, spoiled_row);
        };
        int unspoiled = 0, seen = 0;
        for (std::int64_t k = 0; k < kLength; ++k) {
          bool spoils_key = false;
          for (std::int64_t i = 0; i < kLength; ++i) spoils_key = spoils_key || (spoils_row(i) && sees(i, k));
          if (!spoils_row(k)) {
            ++unspoiled;
            for (std::int64_t d = 0; d < c.head_dim; ++d) ASSERT_EQ(a.query(0, k, 0, d), b.query(0, k, 0, d)) << k;
          }
          seen += spoils_key ? 1 : 0;
          // Where only the values are NaN, weights are not.
          if (spoils_key) {
            ASSERT_TRUE(which == 2 || std::isnan(b.value(0, k, 0, column))) << k;
            ASSERT_TRUE(std::isnan(b.key(0, k, 0, column))) << k;
            continue;
          }
          for (std::int64_t d = 0; d < c.head_dim; ++d) ASSERT_EQ(a.key(0, k, 0, d), b.key(0, k, 0, d)) << k;
          for (std::int64_t d = 0; d < c.value_dim; ++d) ASSERT_EQ(a.value(0, k, 0, d), b.value(0, k, 0, d)) << k;
        }
        EXPECT_GT(unspoiled, 0);
        EXPECT_EQ(seen > 0, c.key_lengths.empty());
      }
    }
  }
}

// A bias of −FLT_MAX on every key: probabilities come from a walk over the keys as they are stored.
TEST_P(TypedAttentionBackward, KnowsRowsOfLargeScores) {
  for (const NumberType type : kNarrowTypes) {
    AttentionCase c = AttentionCase::parse("seed=5 B=1 Lq=9 Lk=30 Hq=2 Hkv=1 D=6 Dv=10 bias=1,1,9,30");
    c.types.fill(type);
    c.types[3] = NumberType::float32;
    TypedBackward call(engine(0), c, BackwardTypes::all(type), false);
    for (float& number : call.problem.in.bias) number = -std::numeric_limits<float>::max();
    call.problem.forward(engine(0));
    const GradientTensors<float> gradients = call.of_types(engine(0));
    if (!call.multiplies_pairs(engine(0))) {
      test::expect_same_gradients(gradients, call.rounded(call.of_floats(engine(0))));
    }
    // Every weight is 1/30. log_sum_exp, of which nothing can be seen in such numbers, would make it 1.
    TypedBackward sums(engine(0), c, {type, {}}, false);
    for (float& number : sums.problem.in.bias) number = -std::numeric_limits<float>::max();
    sums.problem.forward(engine(0));
    test::for_each_error_of_roundings(
        engine(0), sums, 0,
        [](const char* name, const auto& actual, const auto& truth, double allowed, const auto& sizes) {
          EXPECT_TRUE(test::within(actual, truth, allowed, sizes)) << name;
        });
    EXPECT_TRUE(std::any_of(gradients.value.begin(), gradients.value.end(), [](float x) { return x != 0; }));
  }
}

HEADLIGHT_ON_EVERY_FEATURE(TypedAttentionBackward);

TEST(TypedAttentionBackwardArguments, AreRefusedByName) {
  Engine engine;
  const AttentionCase c = AttentionCase::parse("seed=1 B=2 Lq=5 Lk=6 Hq=4 Hkv=2 D=8 Dv=8");
  TypedBackward call(engine, c, BackwardTypes::all(NumberType::bfloat16), false);
  const test::BackwardProblem& problem = call.problem;
  Stored gradient(NumberType::bfloat16, problem.in.query.shape());
  const ops::AttentionBackwardOperands good = {problem.in.query.view(),    problem.in.key.view(),
                                               problem.in.value.view(),    problem.out.view(),
                                               problem.log_sum_exp.view(), problem.out_gradient.view()};
  const auto refused = [&](const ops::AttentionBackwardOperands& operands, const TypedAttentionGradients& gradients) {
    return test::refusal([&] { test::attend_backward(engine, operands, gradients, problem.in.options); });
  };
  ops::AttentionBackwardOperands operands = good;
  operands.out_gradient.type = NumberType::int8;
  EXPECT_EQ(refused(operands, {.query = gradient.view()}),
            "attention_backward: out_gradient has type int8, expected float32, bfloat16 or float16");
  operands = good;
  operands.key.type = NumberType::int8;
  EXPECT_EQ(refused(operands, {.query = gradient.view()}),
            "attention_backward: key has type int8, expected float32, bfloat16 or float16");
  TypedAttentionGradients wrong{.query = gradient.view()};
  wrong.query.type = NumberType::int8;
  EXPECT_EQ(refused(good, wrong),
            "attention_backward: gradients.query has type int8, expected float32, bfloat16 or float16");
  wrong = {.key = gradient.view()};
  EXPECT_EQ(refused(good, wrong),
            "attention_backward: gradients.key has shape [2, 5, 4, 8], expected [2, 6, 2, 8] (the shape of key)");
  wrong = {.query = gradient.view()};
  wrong.query.data = static_cast<char*>(gradient.view().data) + 1;
  EXPECT_EQ(refused(good, wrong),
            "attention_backward: gradients.query lies at an address that is no multiple of a number's 2 bytes");
  // The same memory as `out`, but as another type.
  operands = good;
  operands.out.type = NumberType::float16;
  wrong = {.query = MutableTypedView<4>(NumberType::bfloat16, const_cast<void*>(operands.out.data), good.out.shape)};
  EXPECT_EQ(refused(operands, wrong), "attention_backward: gradients.query overlaps out in memory");
  EXPECT_EQ(test::refusal([&] {
              static_cast<void>(backward_workspace_bytes(engine, {1, 5, 5, 1, 1, 8, 8}, NumberType::int8));
            }),
            "attention_backward: query_gradient has type int8, expected float32, bfloat16 or float16");
}

}  // namespace headlight::attention_backward_typed_test
