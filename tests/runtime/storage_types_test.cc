// Numbers of 16 bits: every one of them, and every float between two of them where rounding turns.
#include "headlight/storage_types.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "gtest/gtest.h"
#include "headlight/number_type.h"
#include "headlight/typed_view.h"
#include "reference/number_types.h"

namespace headlight::storage_types_test {

// What bits of a type mean, in plain words: significand · 2^exponent.
struct Layout {
  int fraction_bits;
  int exponent_bits;

  [[nodiscard]] double value_of(std::uint16_t bits) const {
    const int most = (1 << exponent_bits) - 1;
    const int bias = most / 2;
    const int exponent = bits >> fraction_bits & most;
    const int fraction = bits & ((1 << fraction_bits) - 1);
    double magnitude = 0;
    if (exponent == most) {
      magnitude = fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    } else if (exponent == 0) {
      magnitude = std::ldexp(fraction, 1 - bias - fraction_bits);
    } else {
      magnitude = std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
    }
    return (bits & 0x8000) != 0 ? -magnitude : magnitude;
  }
};

bool same(double a, double b) { return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b); }

template <class T>
struct StorageTypes : testing::Test {};
struct BFloat16Type {
  using Stored = BFloat16;
  static constexpr Layout layout{7, 8};
  static double rounded(double x) { return reference::rounded_to_bfloat16(x); }
};
struct Float16Type {
  using Stored = Float16;
  static constexpr Layout layout{10, 5};
  static double rounded(double x) { return reference::rounded_to_float16(x); }
};
using Types = testing::Types<BFloat16Type, Float16Type>;
TYPED_TEST_SUITE(StorageTypes, Types);

TYPED_TEST(StorageTypes, EveryNumberWidensExactlyAndComesBack) {
  using Stored = typename TypeParam::Stored;
  int wrong = 0;
  for (int bits = 0; bits < 65536; ++bits) {
    const auto stored = Stored::from_bits(static_cast<std::uint16_t>(bits));
    const auto value = static_cast<float>(stored);
    const double expected = TypeParam::layout.value_of(stored.bits);
    wrong += same(static_cast<double>(value), expected) ? 0 : 1;
    const Stored back(value);
    const bool comes_back = std::isnan(value) ? std::isnan(static_cast<float>(back)) : back.bits == stored.bits;
    wrong += comes_back ? 0 : 1;
  }
  EXPECT_EQ(wrong, 0);
}

TYPED_TEST(StorageTypes, RoundsToTheNearestOfTwoTheEven) {
  using Stored = typename TypeParam::Stored;
  int wrong = 0;
  const auto check = [&](float x) {
    const double expected = TypeParam::rounded(static_cast<double>(x));
    wrong += same(static_cast<double>(static_cast<float>(Stored(x))), expected) ? 0 : 1;
  };
  for (int bits = 0; bits < 65536; ++bits) {
    const auto value = static_cast<float>(Stored::from_bits(static_cast<std::uint16_t>(bits)));
    const auto next = static_cast<float>(Stored::from_bits(static_cast<std::uint16_t>(bits + 1)));
    if (!std::isfinite(value) || std::signbit(value) != std::signbit(next)) continue;
    // Half way to the next number, which before infinity is the power of two that would come then.
    // (Of bfloat16 no float: see below.)
    if (!std::isfinite(next) && TypeParam::layout.exponent_bits == 8) continue;
    const float to = std::isfinite(next) ? next : std::copysign(0x1p16f, value);
    const float half = value + (to - value) / 2;
    for (const float x : {half, std::nextafter(half, value), std::nextafter(half, to), std::nextafter(value, to)}) {
      check(x);
    }
  }
  for (const float x : {std::numeric_limits<float>::max(),
                        std::numeric_limits<float>::denorm_min(),
                        0x1.fep127f,
                        0x1.feffffp127f,
                        0x1.ffp127f,
                        65519.0f,
                        65519.996f,
                        65520.0f,
                        65536.0f,
                        0x1p-25f,
                        0x1.8p-25f,
                        0x1.000002p-25f,
                        0x1p-126f,
                        0x1p-133f,
                        0x1p-134f,
                        0x1.000002p-134f,
                        0.0f,
                        -0.0f,
                        std::numeric_limits<float>::infinity(),
                        std::numeric_limits<float>::quiet_NaN()}) {
    check(x);
    check(-x);
  }
  EXPECT_EQ(wrong, 0);
}

TYPED_TEST(StorageTypes, ASignallingNanBecomesQuiet) {
  using Stored = typename TypeParam::Stored;
  const Stored stored(std::bit_cast<float>(0x7f800001u));
  EXPECT_TRUE(std::isnan(static_cast<float>(stored)));
  EXPECT_NE(stored.bits >> (TypeParam::layout.fraction_bits - 1) & 1, 0);
}

TEST(StorageTypes, AreComputedByTheCompilerAndAreNoWiderThanTheySay) {
  static_assert(BFloat16(1.0f).bits == 0x3f80 && static_cast<float>(BFloat16::from_bits(0xc000)) == -2.0f);
  static_assert(Float16(1.0f).bits == 0x3c00 && static_cast<float>(Float16::from_bits(0x0001)) == 0x1p-24f);
  static_assert(sizeof(BFloat16) == 2 && sizeof(Float16) == 2);
  static_assert(std::is_trivially_copyable_v<BFloat16> && std::is_trivially_default_constructible_v<Float16>);
  static_assert(!std::is_convertible_v<float, BFloat16> && !std::is_convertible_v<Float16, float>);
}

TEST(NumberTypes, HaveNamesAndSizes) {
  EXPECT_EQ(name(NumberType::float32), "float32");
  EXPECT_EQ(name(NumberType::bfloat16), "bfloat16");
  EXPECT_EQ(name(NumberType::float16), "float16");
  EXPECT_EQ(name(NumberType::int8), "int8");
  EXPECT_EQ(name(NumberType::int4), "int4");
  EXPECT_EQ(parse_number_type("int4"), NumberType::int4);
  EXPECT_EQ(parse_number_type("fp32"), NumberType::float32);
  EXPECT_EQ(parse_number_type("bf16"), NumberType::bfloat16);
  EXPECT_EQ(parse_number_type("fp16"), NumberType::float16);
  EXPECT_EQ(parse_number_type("BF16"), std::nullopt);
  EXPECT_EQ(parse_number_type(""), std::nullopt);
  EXPECT_EQ(name(static_cast<NumberType>(99)), "");
  EXPECT_EQ(bytes_of(NumberType::float32), sizeof(float));
  EXPECT_EQ(bytes_of(NumberType::bfloat16), sizeof(BFloat16));
  EXPECT_EQ(bytes_of(NumberType::float16), sizeof(Float16));
}

TEST(TypedViews, SayWhatTheyWereMadeOf) {
  Tensor<BFloat16, 2> tensor({3, 4});
  const TypedView<2> whole = tensor;
  EXPECT_EQ(whole.type, NumberType::bfloat16);
  EXPECT_EQ(whole.data, tensor.data());
  EXPECT_EQ(whole.shape, tensor.shape());
  EXPECT_EQ(whole.strides, tensor.view().strides);
  EXPECT_EQ(tensor.strides(), tensor.view().strides);
  const MutableTypedView<2> writes = View<float, 2>(nullptr, {3, 4}, {8, 1});
  EXPECT_EQ(writes.type, NumberType::float32);
  EXPECT_FALSE(writes);
  const TypedView<2> reads = writes;
  EXPECT_EQ(reads.stride(0), 8);
  EXPECT_EQ(TypedView<2>(View<const Float16, 2>()).type, NumberType::float16);
  static_assert(!std::is_convertible_v<View<const float, 2>, MutableTypedView<2>>);
  static_assert(!std::is_convertible_v<const Tensor<float, 2>&, MutableTypedView<2>>);
  static_assert(!std::is_convertible_v<View<double, 2>, TypedView<2>>);
}

}  // namespace headlight::storage_types_test
