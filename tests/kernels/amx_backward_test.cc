// Gradients of attention by AMX's tile registers, whose instructions are plain C++ here (tile_instructions.h), so that
// machines without them run the test: all of attention_backward() over these kernels.
#include <cmath>
#include <cstdint>
#include <limits>

#include "gtest/gtest.h"
#include "kernels/kernels.h"
#include "ops/attention_backward/check.h"
#include "ops/attention_backward/run.h"
#include "support/quick.h"
#include "support/random.h"
#include "support/typed_backward.h"

namespace headlight::amx_bf16 {
extern const kernels::AttentionKernels pair_attention_kernels;
extern const kernels::AttentionBackwardKernels pair_backward_kernels;
}  // namespace headlight::amx_bf16

namespace headlight::test::amx_backward_test {

bool has_vectors() { return available_features(Isa::avx512).has(InstructionFeature::avx512_bf16); }

// Operands of bfloat16 but for `out`, in whose place float32 shows what is summed; even dims.
AttentionCase of_bfloat16(AttentionCase c) {
  c.head_dim += c.head_dim % 2;
  c.value_dim += c.value_dim % 2;
  c.types.fill(NumberType::bfloat16);
  c.types[3] = NumberType::float32;
  return c;
}

class TileGradients {
 public:
  explicit TileGradients(const AttentionCase& c) : call_(floats_, c, {NumberType::bfloat16, {}}, false) {}

  [[nodiscard]] BackwardProblem& problem() { return call_.problem; }

  [[nodiscard]] GradientTensors<float> by(Engine& engine) {
    BackwardProblem& problem = call_.problem;
    GradientTensors<float> gradients = call_.before();
    Stored query(NumberType::bfloat16, problem.in.query), key(NumberType::bfloat16, problem.in.key);
    Stored value(NumberType::bfloat16, problem.in.value), rows(NumberType::bfloat16, problem.out_gradient);
    const ops::AttentionBackwardOperands operands{
        query.view(), key.view(), value.view(), problem.out.view(), problem.log_sum_exp, rows.view(), {}};
    TypedAttentionGradients asked{gradients.query, gradients.key, gradients.value};
    if (gradients.bias.size() != 0) asked.bias = gradients.bias;
    if (gradients.sinks.size() != 0) asked.sinks = gradients.sinks;
    const auto sizes = ops::check_attention_backward("test", operands, asked, problem.in.options);
    ops::differentiate(engine, "test", operands, asked, problem.in.options, sizes, amx_bf16::pair_attention_kernels,
                       amx_bf16::pair_backward_kernels);
    return gradients;
  }

 private:
  Engine floats_{{.threads = 1}};  // whose forward pass says what is differentiated
  TypedBackward call_;
};

TEST(AmxBackward, ErrsByTheRoundingOfWeightsAndScoreGradients) {
  if (!has_vectors()) GTEST_SKIP() << "no AVX512-BF16 here";
  Engine one({.threads = 1}), three({.threads = 3});
  for (std::uint64_t seed = 1; seed <= count<std::uint64_t>(60, 15) && !HasFailure(); ++seed) {
    const AttentionCase c = of_bfloat16(random_attention_case(seed, 90));
    SCOPED_TRACE(c.line());
    TileGradients gradients(c);
    for_each_error_of_roundings(gradients.problem(), gradients.by(seed % 2 == 0 ? one : three), true, 0,
                                [](const char* name, const auto& actual, const auto& truth, double allowed,
                                   const auto& sizes) { EXPECT_TRUE(within(actual, truth, allowed, sizes)) << name; });
  }
}

TEST(AmxBackward, SameBitsForAnyNumberOfThreads) {
  if (!has_vectors()) GTEST_SKIP() << "no AVX512-BF16 here";
  for (const char* const line : {"seed=2 B=2 Lq=301 Lk=561 Hq=2 Hkv=1 D=16 Dv=24 causal=bottom-right",
                                 "seed=3 B=1 Lq=70 Lk=601 Hq=2 Hkv=2 D=34 Dv=8 bias=1,2,1,601 dropout=0.25"}) {
    TileGradients gradients(of_bfloat16(AttentionCase::parse(line)));
    Engine one({.threads = 1}), three({.threads = 3});
    const GradientTensors<float> expected = gradients.by(one);
    expect_same_gradients(gradients.by(three), expected);
  }
}

// Under a causal mask the last key, and the last row, are known to the last row alone.
TEST(AmxBackward, NothingPassesAMask) {
  if (!has_vectors()) GTEST_SKIP() << "no AVX512-BF16 here";
  constexpr std::int64_t kLength = 41;
  Engine engine({.threads = 1});
  TileGradients gradients(
      of_bfloat16(AttentionCase::parse("seed=7 B=1 Lq=41 Lk=41 Hq=1 Hkv=1 D=20 Dv=12 causal=top-left")));
  BackwardProblem& problem = gradients.problem();
  for (std::int64_t d = 0; d < 20; ++d) problem.in.key(0, kLength - 1, 0, d) = 0;
  const GradientTensors<float> expected = gradients.by(engine);
  problem.in.key(0, kLength - 1, 0, 3) = std::numeric_limits<float>::quiet_NaN();
  const GradientTensors<float> found = gradients.by(engine);
  for (std::int64_t i = 0; i < kLength; ++i) {
    for (std::int64_t d = 0; d < 20; ++d) {
      if (i + 1 < kLength) {
        EXPECT_EQ(found.query(0, i, 0, d), expected.query(0, i, 0, d)) << i << ", " << d;
      } else {
        EXPECT_TRUE(std::isnan(found.query(0, i, 0, d))) << d;
      }
    }
  }
}

}  // namespace headlight::test::amx_backward_test
