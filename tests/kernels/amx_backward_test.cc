// Gradients of attention by AMX's tile registers, whose instructions are plain C++ here (tile_instructions.h), so that
// machines without them run the test: all of attention_backward() over these kernels.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "gtest/gtest.h"
#include "kernels/kernels.h"
#include "ops/attention_backward/check.h"
#include "ops/attention_backward/run.h"
#include "support/guarded.h"
#include "support/quick.h"
#include "support/random.h"
#include "support/typed_backward.h"

namespace headlight::amx_bf16 {
extern const kernels::AttentionKernels pair_attention_kernels;
extern const kernels::AttentionBackwardKernels pair_backward_kernels;
}  // namespace headlight::amx_bf16

namespace headlight::test::amx_backward_test {

bool has_vectors() { return available_features(Isa::avx512).has(InstructionFeature::avx512_bf16); }

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

// Rows of bfloat16 and the floats that they hold.
struct Rows {
  Rows(std::int64_t count, std::int64_t dim_, Random& random)
      : dim(dim_), floats({count, dim_}), numbers({count, dim_}) {
    for (std::int64_t n = 0; n < floats.size(); ++n) {
      numbers.data()[n] = BFloat16(random.normal());
      floats.data()[n] = static_cast<float>(numbers.data()[n]);
    }
  }
  [[nodiscard]] kernels::Operand operand() const {
    return {.type = NumberType::bfloat16, .stride = dim, .data = numbers.data()};
  }

  std::int64_t dim;
  Tensor<float, 2> floats;
  Tensor<BFloat16, 2> numbers;
};

struct TileSizes {
  std::int64_t rows, keys, head_dim, value_dim;
};

// A tile of the kernels, all of whose memory lies against pages that nobody may touch.
class GuardedTile {
 public:
  GuardedTile(const TileSizes& sizes, bool causal, Against side)
      : random_(static_cast<std::uint64_t>(1 + sizes.rows + 7 * sizes.keys + 31 * sizes.head_dim)),
        sizes_(sizes),
        query_(sizes.rows, sizes.head_dim, random_),
        key_(sizes.keys, sizes.head_dim, random_),
        value_(sizes.keys, sizes.value_dim, random_),
        out_gradient_(sizes.rows, sizes.value_dim, random_),
        query_panels_(words_of(filled(sizes.rows), sizes.head_dim), side),
        gradient_panels_(words_of(filled(sizes.rows), sizes.value_dim), side),
        query_pairs_(filled(sizes.rows) / 2 * columns(sizes.head_dim), side),
        gradient_pairs_(filled(sizes.rows) / 2 * columns(sizes.value_dim), side),
        key_rows_(words_of(filled(sizes.keys), sizes.head_dim), side),
        value_rows_(words_of(filled(sizes.keys), sizes.value_dim), side),
        key_tiles_(words_of(filled(sizes.keys), sizes.head_dim), side),
        weights_(filled(sizes.rows) * stride(), side),
        score_gradients_(filled(sizes.rows) * stride(), side),
        pairs_(filled(sizes.keys) * filled(sizes.rows) / 2, side),
        room_(kernels::BackwardTile::kRoomOfTiles, side),
        minus_log_sum_exp_(sizes.rows, side),
        delta_(sizes.rows, side),
        begin_(sizes.rows, side),
        end_(sizes.rows, side),
        query_gradient_(sizes.rows * sizes.head_dim, side),
        key_gradient_(sizes.keys * columns(sizes.head_dim), side),
        value_gradient_(sizes.keys * columns(sizes.value_dim), side) {
    const kernels::AttentionKernels& pack = amx_bf16::pair_attention_kernels;
    pack.pack_keys(query_.operand(), sizes.rows, sizes.head_dim, query_panels_.data());
    pack.pack_keys(out_gradient_.operand(), sizes.rows, sizes.value_dim, gradient_panels_.data());
    const std::int64_t panel = filled(sizes.rows) / 2 * pack.value_panel;
    pack.pack_values(query_.operand(), sizes.rows, sizes.head_dim, query_pairs_.data(), panel);
    pack.pack_values(out_gradient_.operand(), sizes.rows, sizes.value_dim, gradient_pairs_.data(), panel);
    pack.copy_rows(key_.operand(), 1.0f, sizes.keys, sizes.head_dim, key_rows_.data());
    pack.copy_rows(value_.operand(), 1.0f, sizes.keys, sizes.value_dim, value_rows_.data());
    products().take_keys(key_.operand(), sizes.keys, sizes.head_dim, key_tiles_.data(), columns(sizes.head_dim));
    for (std::int64_t r = 0; r < sizes.rows; ++r) {
      minus_log_sum_exp_.data()[r] = -4 - 0.1f * random_.normal();
      delta_.data()[r] = random_.normal();
      begin_.data()[r] = 0;
      end_.data()[r] = static_cast<std::int32_t>(causal ? std::min(r + 1, sizes.keys) : sizes.keys);
    }
    std::fill_n(query_gradient_.data(), sizes.rows * sizes.head_dim, 1.0f);
    std::fill_n(key_gradient_.data(), sizes.keys * columns(sizes.head_dim), 1.0f);
    std::fill_n(value_gradient_.data(), sizes.keys * columns(sizes.value_dim), 1.0f);
    tile_.rows = sizes.rows;
    tile_.keys = sizes.keys;
    tile_.head_dim = sizes.head_dim;
    tile_.value_dim = sizes.value_dim;
    tile_.padded_head_dim = columns(sizes.head_dim);
    tile_.padded_value_dim = columns(sizes.value_dim);
    tile_.query = query_panels_.data();
    tile_.out_gradient = gradient_panels_.data();
    tile_.query_of_sums = query_pairs_.data();
    tile_.out_gradient_of_sums = gradient_pairs_.data();
    tile_.minus_log_sum_exp = minus_log_sum_exp_.data();
    tile_.delta = delta_.data();
    tile_.next_query = query_.operand();
    tile_.next_out_gradient = out_gradient_.operand();
    tile_.key_panels = key_rows_.data();
    tile_.value_panels = value_rows_.data();
    tile_.key = key_tiles_.data();
    tile_.keys_are_rows = true;
    tile_.whole = !causal;
    tile_.begin = begin_.data();
    tile_.end = end_.data();
    tile_.modifiers.exponent_scale = 0.25f;
    tile_.scale = 0.5f;
    tile_.weights = weights_.data();
    tile_.score_gradients = score_gradients_.data();
    tile_.stride = stride();
    tile_.key_pair_gradients = pairs_.data();
    tile_.room = room_.data();
    tile_.key_gradient = {key_gradient_.data(), columns(sizes.head_dim)};
    tile_.value_gradient = {value_gradient_.data(), columns(sizes.value_dim)};
    tile_.query_gradient = {query_gradient_.data(), sizes.head_dim};
  }

  // The gradients that are summed from the weights and score gradients of float_score_gradients().
  void expect_documented() {
    products().score_gradients(tile_);
    products().query_gradient(tile_);
    products().float_score_gradients(tile_);
    const auto weight = [&](std::int64_t r, std::int64_t j) { return rounded(weights_.data()[r * stride() + j]); };
    const auto change = [&](std::int64_t r, std::int64_t j) {
      return rounded(score_gradients_.data()[r * stride() + j]);
    };
    const std::int64_t rows = sizes_.rows, keys = sizes_.keys;
    for (std::int64_t j = 0; j < keys; ++j) {
      for (std::int64_t d = 0; d < sizes_.value_dim; ++d) {
        const float sum = chain(
            1.0f, rows, [&](auto r) { return weight(r, j); }, [&](auto r) { return out_gradient_.floats(r, d); });
        ASSERT_EQ(value_gradient_.data()[j * columns(sizes_.value_dim) + d], sum) << j << ", " << d;
      }
      for (std::int64_t d = 0; d < sizes_.head_dim; ++d) {
        const float sum = chain(
            1.0f, rows, [&](auto r) { return change(r, j); }, [&](auto r) { return query_.floats(r, d); });
        ASSERT_EQ(key_gradient_.data()[j * columns(sizes_.head_dim) + d], sum) << j << ", " << d;
      }
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t d = 0; d < sizes_.head_dim; ++d) {
        const float sum = chain(
            0.0f, keys, [&](auto j) { return change(r, j); }, [&](auto j) { return key_.floats(j, d); });
        ASSERT_EQ(query_gradient_.data()[r * sizes_.head_dim + d], std::fma(sum, 0.5f, 1.0f)) << r << ", " << d;
      }
    }
  }

 private:
  static const kernels::BackwardProductKernels& products() { return amx_bf16::pair_backward_kernels.products; }
  static std::int64_t filled(std::int64_t count) { return (count + 31) / 32 * 32; }
  static std::int64_t columns(std::int64_t dim) { return (dim + 15) / 16 * 16; }
  static std::int64_t words_of(std::int64_t count, std::int64_t dim) { return count * (filled(dim) / 2); }
  [[nodiscard]] std::int64_t stride() const { return filled(sizes_.keys) + 16; }
  static float rounded(float number) { return static_cast<float>(BFloat16(number)); }

  // Of every 32 numbers the first and the second ones of the pairs by themselves.
  template <class Left, class Right>
  static float chain(float sum, std::int64_t count, const Left& left, const Right& right) {
    for (std::int64_t first = 0; first < count; first += 32) {
      float chains[2] = {0, 0};
      for (std::int64_t n = first; n < std::min(first + 32, count); ++n)
        chains[n % 2] = std::fma(left(n), right(n), chains[n % 2]);
      sum += chains[0] + chains[1];
    }
    return sum;
  }

  Random random_;
  TileSizes sizes_;
  Rows query_, key_, value_, out_gradient_;
  Guarded<float> query_panels_, gradient_panels_, query_pairs_, gradient_pairs_, key_rows_, value_rows_, key_tiles_;
  Guarded<float> weights_, score_gradients_, pairs_, room_, minus_log_sum_exp_, delta_;
  Guarded<std::int32_t> begin_, end_;
  Guarded<float> query_gradient_, key_gradient_, value_gradient_;
  kernels::BackwardTile tile_{};
};

TEST(AmxBackward, SumsHaveTheDocumentedBits) {
  if (!has_vectors()) GTEST_SKIP() << "no AVX512-BF16 here";
  for (const TileSizes& sizes :
       {TileSizes{1, 1, 2, 2}, {31, 33, 16, 34}, {32, 64, 64, 64}, {45, 32, 34, 8}, {70, 100, 96, 48}}) {
    for (const bool causal : {false, true}) {
      for (const Against side : kBothSides) {
        SCOPED_TRACE(std::to_string(sizes.rows) + " rows, " + std::to_string(sizes.keys) + " keys");
        GuardedTile(sizes, causal, side).expect_documented();
      }
    }
  }
}

TEST(AmxBackward, ErrsByTheRoundingOfWeightsAndScoreGradients) {
  if (!has_vectors()) GTEST_SKIP() << "no AVX512-BF16 here";
  Engine one({.threads = 1}), three({.threads = 3});
  for (std::uint64_t seed = 1; seed <= count<std::uint64_t>(60, 15) && !HasFailure(); ++seed) {
    const AttentionCase c = test::of_bfloat16(random_attention_case(seed, 90));
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
    TileGradients gradients(test::of_bfloat16(AttentionCase::parse(line)));
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
      test::of_bfloat16(AttentionCase::parse("seed=7 B=1 Lq=41 Lk=41 Hq=1 Hkv=1 D=20 Dv=12 causal=top-left")));
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
