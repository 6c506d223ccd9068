// Gradients of attention over operands of bfloat16. Where the instruction set multiplies pairs of them, sums are the
// documented chains over weights and score gradients that are rounded once, and all that attention_backward() promises
// holds.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/attention.h"
#include "kernels/attention/amx_shapes.h"
#include "kernels/kernels.h"
#include "ops/attention_backward/plan.h"
#include "support/isas.h"
#include "support/quick.h"
#include "support/random.h"
#include "support/typed_backward.h"

namespace headlight::attention_backward_bfloat16_test {

using test::AttentionCase;
using test::BackwardTypes;
using test::GradientTensors;
using test::Stored;
using test::TypedBackward;

class BFloat16AttentionBackward : public test::EachIsaAndFeature {};

// Whether they are multiplied in tile registers, which sum in an order of their own.
bool multiplies_tiles(const Engine& engine) { return engine.features().has(InstructionFeature::amx_bf16); }

std::int64_t key_block_of(const Engine& engine, std::int64_t head_dim, std::int64_t value_dim) {
  const kernels::AttentionKernels& kernels = kernels::attention_kernels(engine.isa());
  const ops::AttentionSizes sizes{1, 64, 64, 1, 1, 1, head_dim, value_dim};
  return ops::plan_attention_backward(
             engine, multiplies_tiles(engine) ? kernels::with_shapes_of_tile_registers(kernels) : kernels, sizes)
      .key_block;
}

// Gradients as they are summed.
constexpr BackwardTypes kSums{NumberType::bfloat16, {}};

void expect_error_of_roundings(const AttentionCase& c, Engine& engine) {
  SCOPED_TRACE(c.line());
  TypedBackward call(engine, c, kSums, false);
  test::for_each_error_of_roundings(
      engine, call, 0, [](const char* name, const auto& actual, const auto& truth, double allowed, const auto& sizes) {
        EXPECT_TRUE(test::within(actual, truth, allowed, sizes)) << name;
      });
}

TEST_P(BFloat16AttentionBackward, ErrsByTheRoundingOfWeightsAndScoreGradients) {
  Engine one(options(1)), three(options(3));
  for (std::uint64_t seed = 1; seed <= test::count<std::uint64_t>(150, 40) && !HasFailure(); ++seed) {
    expect_error_of_roundings(test::of_bfloat16(test::random_attention_case(seed, 110)), seed % 2 == 0 ? one : three);
  }
}

TEST_P(BFloat16AttentionBackward, FULL_ErrsNoMoreOverSeveralBlocksOfKeys) {
  Engine one(options(1)), three(options(3));
  const auto key_block = [&](std::int64_t head_dim, std::int64_t value_dim) {
    return key_block_of(one, head_dim, value_dim);
  };
  for (std::uint64_t seed = 1; seed <= test::count<std::uint64_t>(24, 5) && !HasFailure(); ++seed) {
    expect_error_of_roundings(test::of_bfloat16(test::random_case_of_several_blocks(seed, key_block)),
                              seed % 2 == 0 ? one : three);
  }
}

// Σ_n rounded[n] · x[n] over pairs of neighbours, the second number of each first; in tile registers, added to what is
// there, of every 32 numbers first and second ones by themselves.
template <class Left, class Right>
float chain(bool in_tiles, float sum, std::int64_t count, const Left& left, const Right& right) {
  const auto product = [&](std::int64_t n, float before) {
    return std::fma(test::rounded_to(NumberType::bfloat16, left(n)), right(n), before);
  };
  if (in_tiles) {
    for (std::int64_t first = 0; first < count; first += 32) {
      float chains[2] = {0, 0};
      for (std::int64_t n = first; n < std::min(first + 32, count); ++n) chains[n % 2] = product(n, chains[n % 2]);
      sum += chains[0] + chains[1];
    }
    return sum;
  }
  const auto add = [&](std::int64_t n) {
    if (n < count) sum = product(n, sum);
  };
  for (std::int64_t n = 0; n < count; n += 2) {
    add(n + 1);
    add(n);
  }
  return sum;
}

// Score gradients dS are what the gradient of a bias is made of. With values of 0, and δ = −1 in every row by an `out`
// made for it, they are the weights P.
class Chains {
 public:
  Chains(Engine& engine, const AttentionCase& c, std::int64_t key_block)
      : engine_(engine), c_(c), key_block_(key_block), call_(engine, c, kSums, false) {}

  void expect_documented() {
    test::BackwardProblem& problem = call_.problem;
    for (float& number : problem.out_gradient) number = 0;
    for_each_row([&](std::int64_t i, std::int64_t h) { problem.out_gradient(0, i, h, 0) = 1; });
    const GradientTensors<float> ours = call_.of_types(engine_);
    for (std::int64_t j = 0; j < c_.key_length; ++j) {
      for (std::int64_t d = 0; d < c_.head_dim; ++d) {
        ASSERT_EQ(ours.key(0, j, 0, d), 0.25f * over_rows(ours.bias, problem.in.query, j, d)) << j << ", " << d;
      }
    }
    for_each_row([&](std::int64_t i, std::int64_t h) {
      for (std::int64_t d = 0; d < c_.head_dim; ++d) {
        ASSERT_EQ(ours.query(0, i, h, d), 0.25f * over_keys(ours.bias, i, h, d)) << i << ", " << h << ", " << d;
      }
    });
    for (float& number : problem.in.value) number = 0;
    for (float& number : problem.out) number = 0;
    for_each_row([&](std::int64_t i, std::int64_t h) { problem.out(0, i, h, 0) = -1; });
    const GradientTensors<float> weights = call_.of_types(engine_);
    for (std::int64_t j = 0; j < c_.key_length; ++j) {
      for (std::int64_t d = 0; d < c_.value_dim; ++d) {
        ASSERT_EQ(ours.value(0, j, 0, d), over_rows(weights.bias, problem.out_gradient, j, d)) << j << ", " << d;
      }
    }
  }
  [[nodiscard]] bool are_multiplied() const { return call_.multiplies_pairs(engine_); }

 private:
  template <class Function>
  void for_each_row(const Function& f) const {
    for (std::int64_t i = 0; i < c_.query_length; ++i) {
      for (std::int64_t h = 0; h < c_.query_heads; ++h) f(i, h);
    }
  }
  // The rows of each head that shares the key, which are one block, and then those of the next: on and on in tile
  // registers, and a sum of sums elsewhere.
  [[nodiscard]] float over_rows(const Tensor<float, 4>& scores, const Tensor<float, 4>& rows, std::int64_t j,
                                std::int64_t d) const {
    float sum = 0;
    for (std::int64_t h = 0; h < c_.query_heads; ++h) {
      const float of_head = chain(
          in_tiles_, in_tiles_ ? sum : 0.0f, c_.query_length, [&](std::int64_t i) { return scores(0, h, i, j); },
          [&](std::int64_t i) { return rows(0, i, h, d); });
      sum = in_tiles_ ? of_head : sum + of_head;
    }
    return sum;
  }
  // Block after block.
  [[nodiscard]] float over_keys(const Tensor<float, 4>& scores, std::int64_t i, std::int64_t h, std::int64_t d) const {
    float sum = 0;
    for (std::int64_t first = 0; first < c_.key_length; first += key_block_) {
      sum += chain(
          in_tiles_, 0.0f, std::min(key_block_, c_.key_length - first),
          [&](std::int64_t j) { return scores(0, h, i, first + j); },
          [&](std::int64_t j) { return call_.problem.in.key(0, first + j, 0, d); });
    }
    return sum;
  }

  Engine& engine_;
  AttentionCase c_;
  std::int64_t key_block_;
  bool in_tiles_ = multiplies_tiles(engine_);
  TypedBackward call_;
};

TEST_P(BFloat16AttentionBackward, SumsAreTheDocumentedChains) {
  Engine engine(options(2));
  const auto expect = [&](std::int64_t dim, std::int64_t rows, std::int64_t blocks, const std::string& heads,
                          const std::string& mask) {
    const std::int64_t block = key_block_of(engine, dim, dim);
    AttentionCase c = AttentionCase::parse("seed=3 B=1 Lq=1 Lk=1 Hq=" + heads + " Hkv=1 D=2 Dv=2" + mask);
    c.scale = 0.25f;
    c.query_length = rows;
    c.key_length = (blocks - 1) * block + 2 * rows + 5;
    c.head_dim = c.value_dim = dim;
    c.bias = {1, c.query_heads, rows, c.key_length};
    c = test::of_bfloat16(c);
    SCOPED_TRACE(c.line());
    Chains chains(engine, c, block);
    if (chains.are_multiplied()) chains.expect_documented();
  };
  for (const std::int64_t dim : {2, 30, 64, 94, 130}) {
    for (const std::int64_t rows : {1, 37, 48}) expect(dim, rows, 1, "1", "");
    // Two blocks of keys, of which some rows see a part, and three heads that share them.
    expect(dim, 37, 2, "3", " causal=bottom-right");
    expect(dim, 48, 2, "1", " align=bottom-right window=30,7");
  }
}

// Whatever the gradients' types: the sums of floats, rounded once, from what was there.
TEST_P(BFloat16AttentionBackward, GradientsOfTypesAreTheSumsRounded) {
  Engine one(options(1)), three(options(3));
  for (std::uint64_t seed = 1; seed <= test::count<std::uint64_t>(100, 30) && !HasFailure(); ++seed) {
    const AttentionCase c = test::of_bfloat16(test::random_attention_case(seed, 70));
    SCOPED_TRACE(c.line());
    Engine& engine = seed % 2 == 0 ? one : three;
    const BackwardTypes types{NumberType::bfloat16, BackwardTypes::random(seed).gradients};
    for (const bool accumulate : {false, true}) {
      TypedBackward call(engine, c, types, accumulate);
      GradientTensors<float> sums = call.before();
      TypedAttentionGradients asked{sums.query, sums.key, sums.value};
      if (sums.bias.size() != 0) asked.bias = sums.bias;
      if (sums.sinks.size() != 0) asked.sinks = sums.sinks;
      asked.accumulate = accumulate;
      call.backward(engine, asked);
      test::expect_same_gradients(call.of_types(engine), call.rounded(std::move(sums)));
    }
  }
}

// On any number of threads, beside other samples or alone, with all gradients or one.
TEST_P(BFloat16AttentionBackward, BitsDependOnTheCallAlone) {
  const AttentionCase c = test::of_bfloat16(AttentionCase::parse(
      "seed=2 B=2 Lq=501 Lk=901 Hq=4 Hkv=2 D=16 Dv=24 causal=bottom-right bias=2,4,1,901 dropout=0.25"));
  Engine one(options(1));
  TypedBackward call(one, c, kSums, false);
  const GradientTensors<float> expected = call.of_types(one);
  for (const int threads : test::more_threads()) {
    Engine engine(options(threads));
    for (int run = 0; run < 2; ++run) test::expect_same_gradients(call.of_types(engine), expected);
    Tensor<float, 4> query(expected.query.shape()), key(expected.key.shape()), value(expected.value.shape());
    call.backward(engine, {.query = query});
    call.backward(engine, {.key = key});
    call.backward(engine, {.value = value});
    EXPECT_TRUE(test::same_bits(query, expected.query));
    EXPECT_TRUE(test::same_bits(key, expected.key));
    EXPECT_TRUE(test::same_bits(value, expected.value));
  }
}

TEST_P(BFloat16AttentionBackward, ASampleHasTheBitsThatItHasAlone) {
  Engine one(options(1)), three(options(3));
  for (const std::int64_t sample : {0, 1}) {
    AttentionCase both =
        test::of_bfloat16(AttentionCase::parse("seed=8 B=2 Lq=150 Lk=420 Hq=2 Hkv=1 D=34 Dv=64 window=200,20"));
    AttentionCase alone = both;
    alone.batch = 1;
    TypedBackward of_both(one, both, kSums, false), of_one(one, alone, kSums, false);
    const auto take = [&](const Tensor<float, 4>& from, Tensor<float, 4>& to) {
      std::copy_n(from.data() + sample * to.size(), to.size(), to.data());
    };
    take(of_both.problem.in.query, of_one.problem.in.query);
    take(of_both.problem.in.key, of_one.problem.in.key);
    take(of_both.problem.in.value, of_one.problem.in.value);
    take(of_both.problem.out_gradient, of_one.problem.out_gradient);
    of_one.problem.forward(one);
    const GradientTensors<float> all = of_both.of_types(three), single = of_one.of_types(one);
    Tensor<float, 4> query(single.query.shape()), key(single.key.shape()), value(single.value.shape());
    take(all.query, query);
    take(all.key, key);
    take(all.value, value);
    EXPECT_TRUE(test::same_bits(query, single.query));
    EXPECT_TRUE(test::same_bits(key, single.key));
    EXPECT_TRUE(test::same_bits(value, single.value));
  }
}

// Without the feature they are float32's, which is another number somewhere.
TEST_P(BFloat16AttentionBackward, FeaturesDecideTheBits) {
  const AttentionCase c = test::of_bfloat16(AttentionCase::parse("seed=4 B=1 Lq=70 Lk=70 Hq=1 Hkv=1 D=16 Dv=16"));
  Engine engine(options(1));
  TypedBackward call(engine, c, kSums, false);
  const GradientTensors<float> ours = call.of_types(engine), floats = call.of_floats(engine);
  const bool same = static_cast<bool>(test::same_bits(ours.key, floats.key));
  EXPECT_EQ(same, !call.multiplies_pairs(engine));
}

HEADLIGHT_ON_EVERY_FEATURE(BFloat16AttentionBackward);

}  // namespace headlight::attention_backward_bfloat16_test
