// The operations on lanes that hold integers against their meaning in plain C++.
#include <array>
#include <cstdint>

#include "simd/probe_fixture.h"
#include "support/guarded.h"

namespace headlight::test::vector_test {

using VectorTest = OnIsa;

TEST_F(VectorTest, IntegersWrapAround) {
  const auto lanes = static_cast<std::size_t>(probe().lanes);
  Random random(4);
  for (int n = 0; n < 1000; ++n) {
    std::array<float, 16> a{}, b{}, sum{}, difference{}, conjunction{}, left{}, right{}, minus_one{};
    for (std::size_t i = 0; i < lanes; ++i) {
      a[i] = random_bits(random);
      b[i] = random_bits(random);
    }
    probe().integers(a.data(), b.data(), sum.data(), difference.data(), conjunction.data(), left.data(), right.data(),
                     minus_one.data());
    for (std::size_t i = 0; i < lanes; ++i) {
      const std::uint32_t x = bits_of(a[i]);
      const std::uint32_t y = bits_of(b[i]);
      EXPECT_EQ(bits_of(sum[i]), x + y);
      EXPECT_EQ(bits_of(difference[i]), x - y);
      EXPECT_EQ(bits_of(conjunction[i]), x & y);
      EXPECT_EQ(bits_of(left[i]), x << 5);
      EXPECT_EQ(bits_of(right[i]), static_cast<std::uint32_t>(static_cast<std::int32_t>(x) >> 5));
      EXPECT_EQ(bits_of(minus_one[i]), 0xffffffffu);
    }
  }
}

// Two int16 in the 32 bits of a lane, and their products.
std::uint32_t halves(std::int32_t lower, std::int32_t upper) {
  return (static_cast<std::uint32_t>(upper) << 16) | (static_cast<std::uint32_t>(lower) & 0xffffu);
}
std::uint32_t product_of_halves(std::uint32_t x, std::uint32_t y) {
  const auto half = [](std::uint32_t bits) { return static_cast<std::int32_t>(static_cast<std::int16_t>(bits)); };
  return static_cast<std::uint32_t>(half(x) * half(y));
}

TEST_F(VectorTest, MultipliesSmallIntegersExactly) {
  const auto lanes = static_cast<std::size_t>(probe().lanes);
  Random random(5);
  for (int n = 0; n < 1000; ++n) {
    std::array<float, 16> a{}, b{}, c{}, product{}, even{}, odd{}, dot{}, number{};
    for (std::size_t i = 0; i < lanes; ++i) {
      a[i] = random_bits(random);
      b[i] = random_bits(random);
      c[i] = random_bits(random);
    }
    // Limits, and an integer half way between two floats.
    const std::uint32_t limits[] = {0x80808080u, 0x7f7f7f7fu, 0x7fff8001u, 0xffffffffu, 0x01000001u, 0x80000000u};
    if (n < 6) a[0] = from_bits(limits[n]);
    probe().small_integers(a.data(), b.data(), c.data(), product.data(), even.data(), odd.data(), dot.data(),
                           number.data());
    for (std::size_t i = 0; i < lanes; ++i) {
      const std::uint32_t x = bits_of(a[i]), y = bits_of(b[i]);
      const auto byte = [&](int index) { return static_cast<std::int32_t>(static_cast<std::int8_t>(x >> 8 * index)); };
      EXPECT_EQ(bits_of(product[i]), x * y);
      EXPECT_EQ(bits_of(even[i]), halves(byte(0), byte(2)));
      EXPECT_EQ(bits_of(odd[i]), halves(byte(1), byte(3)));
      EXPECT_EQ(bits_of(dot[i]), bits_of(c[i]) + product_of_halves(x, y) + product_of_halves(x >> 16, y >> 16));
      EXPECT_EQ(number[i], static_cast<float>(static_cast<std::int32_t>(x)));
    }
  }
}

TEST_F(VectorTest, WidensBytesAndTouchesNoOther) {
  const int lanes = probe().lanes;
  Random random(7);
  for (const Against side : kBothSides) {
    for (int count = 0; count <= lanes; ++count) {
      const Guarded<std::int8_t> bytes(count, side);
      for (int i = 0; i < count; ++i) bytes.data()[i] = static_cast<std::int8_t>(random.integer(-128, 127));
      if (count > 0) bytes.data()[0] = -128;
      std::array<float, 16> out{};
      probe().load_i8_partial(bytes.data(), count, out.data());
      for (int i = 0; i < lanes; ++i) {
        EXPECT_EQ(out[static_cast<std::size_t>(i)], i < count ? static_cast<float>(bytes.data()[i]) : 0.0f);
      }
      if (count < lanes) continue;
      probe().load_i8(bytes.data(), out.data());
      for (int i = 0; i < lanes; ++i) EXPECT_EQ(out[static_cast<std::size_t>(i)], static_cast<float>(bytes.data()[i]));
    }
  }
}

TEST_F(VectorTest, WidensEveryByteInEveryLane) {
  const auto lanes = static_cast<std::size_t>(probe().lanes);
  std::array<std::int8_t, 256 + 16> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::int8_t>(i % 256);
  for (std::size_t first = 0; first < 256; ++first) {
    std::array<float, 16> out{};
    probe().load_i8(bytes.data() + first, out.data());
    for (std::size_t i = 0; i < lanes; ++i) EXPECT_EQ(bits_of(out[i]), bits_of(static_cast<float>(bytes[first + i])));
  }
}

TEST_F(VectorTest, InterleavesBytesOfEverySixteen) {
  if (probe().interleave_bytes == nullptr) GTEST_SKIP() << "one lane has no sixteen bytes";
  std::array<std::uint8_t, 64> a{}, b{}, lower{}, upper{};
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<std::uint8_t>(i);
    b[i] = static_cast<std::uint8_t>(128 + i);
  }
  probe().interleave_bytes(a.data(), b.data(), lower.data(), upper.data());
  for (std::size_t i = 0; i < 4 * static_cast<std::size_t>(probe().lanes); ++i) {
    const std::size_t from = i / 16 * 16 + i % 16 / 2;
    EXPECT_EQ(lower[i], (i % 2 == 0 ? a : b)[from]);
    EXPECT_EQ(upper[i], (i % 2 == 0 ? a : b)[from + 8]);
  }
}

TEST_F(VectorTest, StoresTheLowestBytes) {
  const int lanes = probe().lanes;
  Random random(8);
  for (const Against side : kBothSides) {
    const Guarded<std::int8_t> buffer(lanes, side);
    std::array<float, 16> values{};
    for (float& x : values) x = random_bits(random);
    probe().store_i8(values.data(), buffer.data());
    for (int i = 0; i < lanes; ++i) {
      const std::uint32_t bits = bits_of(values[static_cast<std::size_t>(i)]);
      EXPECT_EQ(buffer.data()[i], static_cast<std::int8_t>(bits & 0xffu));
    }
  }
}

TEST_F(VectorTest, StoresTheLowerHalves) {
  const int lanes = probe().lanes;
  Random random(6);
  for (const Against side : kBothSides) {
    const Guarded<std::uint16_t> buffer(lanes, side);
    std::array<float, 16> values{};
    for (float& x : values) x = random_bits(random);
    probe().store_u16(values.data(), buffer.data());
    for (int i = 0; i < lanes; ++i) {
      EXPECT_EQ(buffer.data()[i], bits_of(values[static_cast<std::size_t>(i)]) & 0xffffu);
    }
  }
}

}  // namespace headlight::test::vector_test
