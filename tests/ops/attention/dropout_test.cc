// Dropout of attention: the mask itself, place by place, against Philox's words.
#include <cmath>
#include <cstdint>

#include "gtest/gtest.h"
#include "headlight/attention.h"
#include "runtime/philox.h"
#include "support/attention_routes.h"
#include "support/compare.h"
#include "support/random.h"
#include "support/refusal.h"

namespace headlight::attention_dropout_test {

class AttentionDropoutTest : public test::EachRoute {};

constexpr Dropout kDropout = {0.375f, 0x0123456789abcdefu, 42};

bool kept(std::int64_t j, std::int64_t i, std::int64_t plane) {
  const auto words = runtime::philox4x32({static_cast<std::uint32_t>(j / 4), static_cast<std::uint32_t>(i),
                                          static_cast<std::uint32_t>(plane), kDropout.stream},
                                         runtime::philox_key(kDropout.seed));
  return words[static_cast<std::size_t>(j % 4)] >= 0x60000000u;  // 0.375 · 2³²
}

// Queries of zeros weigh all keys alike, and values of the identity show each weight: out_ij = 1/L · (0 or 1/0.625).
TEST_P(AttentionDropoutTest, KeepsWhatTheWordsSay) {
  constexpr std::int64_t kBatch = 2, kHeads = 3;
  for (const std::int64_t length : {1, 3, 70, 600}) {
    for (const std::int64_t queries : {std::int64_t{1}, std::int64_t{40}}) {
      Tensor<float, 4> query({kBatch, queries, kHeads, 4}), key({kBatch, length, kHeads, 4});
      Tensor<float, 4> value({kBatch, length, kHeads, length}), out({kBatch, queries, kHeads, length});
      Tensor<float, 4> probabilities({kBatch, kHeads, queries, length});
      for (std::int64_t b = 0; b < kBatch; ++b) {
        for (std::int64_t h = 0; h < kHeads; ++h) {
          for (std::int64_t j = 0; j < length; ++j) value(b, j, h, j) = 1;
        }
      }
      AttentionOptions options;
      options.dropout = kDropout;
      options.probabilities.per_head = probabilities;
      GetParam()(query, key, value, out, options);
      const float weight = 1.0f / static_cast<float>(length);
      for (std::int64_t b = 0; b < kBatch; ++b) {
        for (std::int64_t h = 0; h < kHeads; ++h) {
          for (std::int64_t i = 0; i < queries; ++i) {
            for (std::int64_t j = 0; j < length; ++j) {
              const float expected = kept(j, i, b * kHeads + h) ? weight / 0.625f : 0.0f;
              ASSERT_NEAR(out(b, i, h, j), expected, 1e-6f * weight) << b << " " << i << " " << h << " " << j;
              ASSERT_NEAR(probabilities(b, h, i, j), weight, 1e-6f * weight);
            }
          }
        }
      }
    }
  }
}

TEST_P(AttentionDropoutTest, RowsAndKeysCountWithinTheirSequence) {
  test::Random random(5);
  const auto query = random.normal_tensor<4>({1, 37, 2, 8}), key = random.normal_tensor<4>({1, 37, 2, 8}),
             value = random.normal_tensor<4>({1, 37, 2, 8});
  Tensor<float, 4> packed({1, 37, 2, 8}), alone({1, 24, 2, 8});
  const std::int64_t offsets[] = {0, 13, 37};
  AttentionOptions options;
  options.dropout = kDropout;
  const auto second = [](const Tensor<float, 4>& x) {
    return View<const float, 4>(&x(0, 13, 0, 0), {1, 24, 2, 8}, x.view().strides);
  };
  GetParam()(second(query), second(key), second(value), alone, options);
  options.query_offsets = offsets;
  GetParam()(query, key, value, packed, options);
  EXPECT_TRUE(test::within(second(packed), alone.view(), 1e-6));
}

HEADLIGHT_ON_EVERY_ROUTE(AttentionDropoutTest, test::engine_routes());

TEST(AttentionDropoutArguments, TheProbabilityIsOne) {
  Engine engine;
  Tensor<float, 4> x({1, 2, 1, 4}), out({1, 2, 1, 4});
  for (const float bad : {-0.1f, 1.0f, 2.0f, std::nanf("")}) {
    AttentionOptions options;
    options.dropout.probability = bad;
    EXPECT_NE(
        test::refusal([&] { attention(engine, x, x, x, out, options); }).find("attention: dropout.probability is"),
        std::string::npos);
  }
}

}  // namespace headlight::attention_dropout_test
