// Rows as integers of 8 bits with a scale for each row and head.
#include <cmath>
#include <cstdint>
#include <limits>

#include "gtest/gtest.h"
#include "headlight/attention.h"
#include "support/cached_rows.h"
#include "support/isas.h"
#include "support/quick.h"
#include "support/random.h"
#include "support/refusal.h"
#include "support/stored.h"
#include "support/typed_operands.h"

namespace headlight::quantize_rows_test {

using test::CachedRows;
using test::Stored;

class QuantizeRows : public test::EachIsaAndFeature {};

// Row by row the integers and scales of the twin, of any type, size and layout, and of what is hardly a number.
TEST_P(QuantizeRows, DoesAsTheTwin) {
  Engine one(options(1)), three(options(3));
  test::Random random(6);
  for (int round = 0; round < test::count(60, 20); ++round) {
    const std::int64_t length = random.integer(0, round % 9 == 0 ? 900 : 9), heads = random.integer(1, 4);
    const NumberType type = test::kStoredTypes[static_cast<std::size_t>(round % 3)];
    Tensor<float, 4> x = random.normal_tensor<4>({random.integer(1, 2), length, heads, random.integer(0, 90)});
    const float sizes[] = {1.0f, 0x1p-130f, 0x1p120f, 0x1p-149f, 0.0f};
    for (float& number : x) number *= sizes[round % 5];
    if (round % 4 == 3 && x.size() > 0) {
      x.data()[x.size() / 2] =
          round % 8 == 3 ? std::numeric_limits<float>::quiet_NaN() : -std::numeric_limits<float>::infinity();
    }
    Stored stored(type, x);
    const auto layout = round % 3 == 0 ? CachedRows::Layout::by_head : CachedRows::Layout::by_position;
    const CachedRows expected(stored.floats(), layout);
    const CachedRows made(Tensor<float, 4>(x.shape()), layout, test::kBothSides[static_cast<std::size_t>(round % 2)]);
    quantize_rows(round % 2 == 0 ? one : three, stored.view(), made.numbers(), made.scales());
    for (std::int64_t b = 0; b < x.shape()[0]; ++b) {
      for (std::int64_t l = 0; l < length; ++l) {
        for (std::int64_t h = 0; h < heads; ++h) {
          const float scale = made.scales()(b, l, h), of_twin = expected.scales()(b, l, h);
          ASSERT_TRUE(scale == of_twin || (std::isnan(scale) && std::isnan(of_twin))) << scale << ", " << of_twin;
          for (std::int64_t d = 0; d < x.shape()[3]; ++d) {
            ASSERT_EQ(made.numbers()(b, l, h, d), expected.numbers()(b, l, h, d)) << round << ": " << l << ", " << d;
          }
        }
      }
    }
  }
}

TEST_P(QuantizeRows, RefusesWhatItCannotRead) {
  Engine engine(options(1));
  test::Random random(8);
  const auto x = random.normal_tensor<4>({1, 4, 2, 8});
  const CachedRows rows(x);
  const View<std::int8_t, 4> numbers = rows.numbers();
  const View<float, 3> scales = rows.scales();
  const auto message = [&](const TypedView<4>& from, const View<std::int8_t, 4>& to, const View<float, 3>& of_rows) {
    return test::refusal([&] { quantize_rows(engine, from, to, of_rows); });
  };
  EXPECT_EQ(message(numbers, numbers, scales), "quantize_rows: x has type int8, expected float32, bfloat16 or float16");
  EXPECT_EQ(message(x, {numbers.data, {1, 4, 1, 8}}, scales),
            "quantize_rows: numbers has shape [1, 4, 1, 8], expected [1, 4, 2, 8] (the shape of x)");
  EXPECT_EQ(
      message(x, numbers, {scales.data, {1, 4, 1}}),
      "quantize_rows: scales has shape [1, 4, 1], expected [1, 4, 2] ([B, L, H], one for each row and head of x)");
  EXPECT_EQ(message(x, numbers, {const_cast<float*>(x.data()), {1, 4, 2}}),
            "quantize_rows: scales overlaps x in memory");
}

HEADLIGHT_ON_EVERY_FEATURE(QuantizeRows);

}  // namespace headlight::quantize_rows_test
