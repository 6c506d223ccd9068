// Each operation of the vocabulary against its meaning in plain C++.
#include <array>
#include <functional>
#include <string>

#include "headlight/storage_types.h"
#include "reference/number_types.h"
#include "simd/probe_fixture.h"
#include "support/guarded.h"

namespace headlight::test::vector_test {

using VectorTest = OnIsa;

struct Arguments {
  std::vector<float> a, b, c;
};

// All pairs of special values, then anything.
Arguments arguments() {
  Arguments all;
  const std::vector<float> special = special_values();
  Random random(1);
  for (std::size_t i = 0; i < special.size(); ++i) {
    for (std::size_t j = 0; j < special.size(); ++j) {
      all.a.push_back(special[i]);
      all.b.push_back(special[j]);
      all.c.push_back(special[(i + j) % special.size()]);
    }
  }
  for (int n = 0; n < 20000; ++n) {
    const bool any = n % 2 == 0;
    all.a.push_back(any ? random_bits(random) : random.normal());
    all.b.push_back(any ? random_bits(random) : random.normal());
    all.c.push_back(any ? random_bits(random) : random.normal());
  }
  for (std::vector<float>* values : {&all.a, &all.b, &all.c}) fill_up(*values);
  return all;
}

using Meaning = std::function<float(float, float, float)>;

void expect_meaning(const std::string& name, const Arguments& args, const std::vector<float>& got,
                    const Meaning& meaning) {
  int shown = 0;
  for (std::size_t i = 0; i < got.size() && shown < 5; ++i) {
    const float want = meaning(args.a[i], args.b[i], args.c[i]);
    if (same(got[i], want)) continue;
    ADD_FAILURE() << name << "(" << args.a[i] << ", " << args.b[i] << ", " << args.c[i] << ") is " << got[i] << ", not "
                  << want;
    ++shown;
  }
}

void check(const std::string& name, VectorProbe::Unary operation, const Meaning& meaning) {
  const Arguments args = arguments();
  std::vector<float> got(args.a.size());
  operation(args.a.data(), got.data(), static_cast<std::int64_t>(got.size()));
  expect_meaning(name, args, got, meaning);
}
void check(const std::string& name, VectorProbe::Binary operation, const Meaning& meaning) {
  const Arguments args = arguments();
  std::vector<float> got(args.a.size());
  operation(args.a.data(), args.b.data(), got.data(), static_cast<std::int64_t>(got.size()));
  expect_meaning(name, args, got, meaning);
}
void check(const std::string& name, VectorProbe::Ternary operation, const Meaning& meaning) {
  const Arguments args = arguments();
  std::vector<float> got(args.a.size());
  operation(args.a.data(), args.b.data(), args.c.data(), got.data(), static_cast<std::int64_t>(got.size()));
  expect_meaning(name, args, got, meaning);
}

float flag(bool value) { return value ? 1.0f : 0.0f; }

TEST_F(VectorTest, RunsTheInstructionSetItIsNamedAfter) {
  const Isa isa = probed_isa();
  EXPECT_EQ(probe().target, std::string(name(isa)));
  EXPECT_EQ(probe().lanes, isa == Isa::avx512 ? 16 : isa == Isa::avx2 ? 8 : isa == Isa::scalar ? 1 : 4);
  EXPECT_EQ(probe().has_fma, isa == Isa::avx512 || isa == Isa::avx2 || isa == Isa::neon);
}

TEST_F(VectorTest, Arithmetic) {
  check("add", probe().add, [](float a, float b, float) { return a + b; });
  check("sub", probe().sub, [](float a, float b, float) { return a - b; });
  check("mul", probe().mul, [](float a, float b, float) { return a * b; });
  check("div", probe().div, [](float a, float b, float) { return a / b; });
  check("sqrt", probe().sqrt, [](float a, float, float) { return std::sqrt(a); });
  check("round", probe().round, [](float a, float, float) { return std::nearbyint(a); });
}

TEST_F(VectorTest, MultiplyAddRoundsAsOftenAsItSays) {
  if (probe().has_fma) {
    check("fma", probe().fma, [](float a, float b, float c) { return std::fma(a, b, c); });
    check("fnma", probe().fnma, [](float a, float b, float c) { return std::fma(-a, b, c); });
  } else {
    check("fma", probe().fma, [](float a, float b, float c) { return a * b + c; });
    check("fnma", probe().fnma, [](float a, float b, float c) { return c - a * b; });
  }
}

TEST_F(VectorTest, MaximumAndMinimumGiveTheSecondOperandForNanAndZeros) {
  check("max", probe().max, [](float a, float b, float) { return a > b ? a : b; });
  check("min", probe().min, [](float a, float b, float) { return a < b ? a : b; });
}

TEST_F(VectorTest, SignsAreBits) {
  check("abs", probe().abs, [](float a, float, float) { return from_bits(bits_of(a) & 0x7fffffffu); });
  check("neg", probe().neg, [](float a, float, float) { return from_bits(bits_of(a) ^ 0x80000000u); });
  check("copysign", probe().copysign,
        [](float a, float b, float) { return from_bits((bits_of(a) & 0x7fffffffu) | (bits_of(b) & 0x80000000u)); });
}

TEST_F(VectorTest, Comparisons) {
  check("less", probe().less, [](float a, float b, float) { return flag(a < b); });
  check("less_equal", probe().less_equal, [](float a, float b, float) { return flag(a <= b); });
  check("equal", probe().equal, [](float a, float b, float) { return flag(a == b); });
  check("is_nan", probe().is_nan, [](float a, float, float) { return flag(std::isnan(a)); });
  check("select", probe().select_less, [](float a, float b, float c) { return a < b ? a : c; });
}

TEST_F(VectorTest, ScaleByPowerOfTwoRoundsOnce) {
  Arguments args;
  Random random(2);
  for (int n = -252; n <= 254; ++n) {
    for (const float v : {1.0f, -1.0f, 0.25f, -4.0f, 1.5f, 0x1.000002p0f, 0x1.fffffep0f, 1.0f + 0.5f * random.uniform(),
                          std::numeric_limits<float>::quiet_NaN()}) {
      args.a.push_back(v);
      args.b.push_back(static_cast<float>(n));
    }
  }
  fill_up(args.a);
  fill_up(args.b);
  args.c.resize(args.a.size());
  std::vector<float> got(args.a.size());
  probe().scale_by_power_of_two(args.a.data(), args.b.data(), got.data(), static_cast<std::int64_t>(got.size()));
  // The double product is exact, so the conversion is the only rounding.
  expect_meaning("scale", args, got, [](float v, float n, float) {
    return static_cast<float>(std::ldexp(static_cast<double>(v), static_cast<int>(n)));
  });
}

TEST_F(VectorTest, PartialLoadsAndStoresStayInside) {
  const int lanes = probe().lanes;
  for (const Against side : kBothSides) {
    for (int count = 0; count <= lanes; ++count) {
      const Guarded<float> buffer(count, side);
      std::array<float, 16> vector{};
      for (int i = 0; i < count; ++i) buffer.data()[i] = static_cast<float>(i + 1);
      probe().load_partial(buffer.data(), count, vector.data());
      for (int i = 0; i < lanes; ++i) {
        EXPECT_EQ(bits_of(vector[static_cast<std::size_t>(i)]), bits_of(i < count ? static_cast<float>(i + 1) : 0.0f));
      }
      for (float& x : vector) x += 10.0f;
      probe().store_partial(vector.data(), buffer.data(), count);
      for (int i = 0; i < count; ++i) EXPECT_EQ(buffer.data()[i], static_cast<float>(i + 11));
    }
  }
}

TEST_F(VectorTest, PartialStoresLeaveTheNeighboursAlone) {
  const int lanes = probe().lanes;
  const std::vector<float> ones(16, 1.0f);
  for (int count = 0; count <= lanes; ++count) {
    std::vector<float> to(18, -7.0f);
    probe().store_partial(ones.data(), to.data() + 1, count);
    for (int i = -1; i < 17; ++i) {
      EXPECT_EQ(to[static_cast<std::size_t>(i + 1)], i >= 0 && i < count ? 1.0f : -7.0f) << count << " " << i;
    }
  }
}

TEST_F(VectorTest, WholeVectorsNeedNoAlignment) {
  const int lanes = probe().lanes;
  for (const Against side : kBothSides) {
    const Guarded<float> buffer(lanes, side);
    std::vector<float> out(17);
    for (int i = 0; i < lanes; ++i) buffer.data()[i] = static_cast<float>(i * i);
    probe().load(buffer.data(), out.data() + 1);
    for (int i = 0; i < lanes; ++i) EXPECT_EQ(out[static_cast<std::size_t>(i + 1)], static_cast<float>(i * i));
  }
}

// binary16 in plain words: sign, five exponent bits, ten of the significand.
float widen_f16(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int significand = bits & 1023;
  const double magnitude = exponent == 0    ? std::ldexp(significand, -24)
                           : exponent == 31 ? (significand == 0 ? std::numeric_limits<double>::infinity()
                                                                : std::numeric_limits<double>::quiet_NaN())
                                            : std::ldexp(1024 + significand, exponent - 25);
  return static_cast<float>((bits & 0x8000) != 0 ? -magnitude : magnitude);
}

TEST_F(VectorTest, WidensEverySixteenBitNumber) {
  const int lanes = probe().lanes;
  const Guarded<std::uint16_t> buffer(lanes, Against::back);
  std::array<float, 16> bf16{}, f16{};
  int wrong = 0;
  for (int first = 0; first < 65536; first += lanes) {
    for (int i = 0; i < lanes; ++i) buffer.data()[i] = static_cast<std::uint16_t>(first + i);
    probe().load_bf16(buffer.data(), bf16.data());
    probe().load_f16(buffer.data(), f16.data());
    for (int i = 0; i < lanes; ++i) {
      const auto bits = static_cast<std::uint16_t>(first + i);
      wrong += same(bf16[static_cast<std::size_t>(i)], from_bits(static_cast<std::uint32_t>(bits) << 16)) ? 0 : 1;
      wrong += same(f16[static_cast<std::size_t>(i)], widen_f16(bits)) ? 0 : 1;
    }
  }
  EXPECT_EQ(wrong, 0);
}

TEST_F(VectorTest, RoundsToBFloat16) {
  const auto expected = [](float x, float, float) {
    return static_cast<float>(reference::rounded_to_bfloat16(static_cast<double>(x)));
  };
  check("round_to_bf16", probe().round_to_bf16, expected);
  // Every number of 16 bits, what lies half way to the next, and their neighbours.
  std::vector<float> values, got;
  for (std::uint32_t upper = 0; upper < 65536; ++upper) {
    for (const std::uint32_t lower : {0x0000u, 0x0001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      values.push_back(from_bits(upper << 16 | lower));
    }
  }
  fill_up(values);
  got.resize(values.size());
  probe().round_to_bf16(values.data(), got.data(), static_cast<std::int64_t>(values.size()));
  int wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i) wrong += same(got[i], expected(values[i], 0, 0)) ? 0 : 1;
  EXPECT_EQ(wrong, 0);
}

// The bits that the plain conversions of storage_types.h give; of a NaN, that it stays one.
template <class Stored>
void expect_stored(const char* name, void (*store)(const float*, std::uint16_t*)) {
  const auto lanes = static_cast<std::size_t>(probe().lanes);
  std::vector<float> values = arguments().a;
  for (std::uint32_t upper = 0; upper < 65536; ++upper) {
    for (const std::uint32_t lower :
         {0x0000u, 0x0001u, 0x0fffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      values.push_back(from_bits(upper << 16 | lower));
    }
  }
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    // Half way between two numbers, and its neighbours.
    const auto value = static_cast<float>(Stored::from_bits(static_cast<std::uint16_t>(bits)));
    const auto next = static_cast<float>(Stored::from_bits(static_cast<std::uint16_t>(bits + 1)));
    const float half = value + (next - value) / 2;
    for (const float x : {half, std::nextafter(half, value), std::nextafter(half, next)}) values.push_back(x);
  }
  fill_up(values);
  const Guarded<std::uint16_t> to(static_cast<std::int64_t>(lanes), Against::back);
  int wrong = 0;
  for (std::size_t first = 0; first + lanes <= values.size(); first += lanes) {
    store(values.data() + first, to.data());
    for (std::size_t i = 0; i < lanes; ++i) {
      const Stored expected(values[first + i]);
      const auto got = Stored::from_bits(to.data()[i]);
      const bool is_same =
          std::isnan(values[first + i]) ? std::isnan(static_cast<float>(got)) : got.bits == expected.bits;
      wrong += is_same ? 0 : 1;
    }
  }
  EXPECT_EQ(wrong, 0) << name;
}

TEST_F(VectorTest, StoresSixteenBitNumbersRounded) {
  expect_stored<BFloat16>("bfloat16", probe().store_bf16);
  expect_stored<Float16>("float16", probe().store_f16);
}

TEST_F(VectorTest, PartialSixteenBitStoresStayInside) {
  std::array<float, 16> from{};
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = 1.0f + static_cast<float>(i) / 8;
  for (const Against side : kBothSides) {
    for (int count = 0; count <= probe().lanes; ++count) {
      const Guarded<std::uint16_t> buffer(count, side);
      probe().store_bf16_partial(from.data(), count, buffer.data());
      for (int i = 0; i < count; ++i) EXPECT_EQ(buffer.data()[i], BFloat16(from[static_cast<std::size_t>(i)]).bits);
      probe().store_f16_partial(from.data(), count, buffer.data());
      for (int i = 0; i < count; ++i) EXPECT_EQ(buffer.data()[i], Float16(from[static_cast<std::size_t>(i)]).bits);
    }
  }
}

TEST_F(VectorTest, PartialSixteenBitLoadsStayInside) {
  const int lanes = probe().lanes;
  for (const Against side : kBothSides) {
    for (int count = 0; count <= lanes; ++count) {
      const Guarded<std::uint16_t> buffer(count, side);
      for (int i = 0; i < count; ++i) buffer.data()[i] = static_cast<std::uint16_t>(0x3c00 + i);
      std::array<float, 16> out{};
      probe().load_bf16_partial(buffer.data(), count, out.data());
      for (int i = 0; i < lanes; ++i) {
        const std::uint32_t want = i < count ? static_cast<std::uint32_t>(0x3c00 + i) << 16 : 0u;
        EXPECT_EQ(bits_of(out[static_cast<std::size_t>(i)]), want);
      }
      probe().load_f16_partial(buffer.data(), count, out.data());
      for (int i = 0; i < lanes; ++i) {
        EXPECT_EQ(out[static_cast<std::size_t>(i)], i < count ? 1.0f + static_cast<float>(i) / 1024.0f : 0.0f);
      }
    }
  }
}

TEST_F(VectorTest, Masks) {
  const int lanes = probe().lanes;
  std::array<float, 16> index{}, first{}, both{}, either{}, neither{};
  probe().lane_index(index.data());
  for (int a = 0; a <= lanes; ++a) {
    probe().mask_first(a, first.data());
    for (int b = 0; b <= lanes; ++b) {
      probe().masks(a, b, both.data(), either.data(), neither.data());
      for (int i = 0; i < lanes; ++i) {
        const auto lane = static_cast<std::size_t>(i);
        EXPECT_EQ(index[lane], static_cast<float>(i));
        EXPECT_EQ(first[lane], flag(i < a));
        EXPECT_EQ(both[lane], flag(i < a && i < b));
        EXPECT_EQ(either[lane], flag(i < a || i < b));
        EXPECT_EQ(neither[lane], flag(!(i < a)));
      }
    }
  }
}

TEST_F(VectorTest, EveryByteButZeroIsTrue) {
  const int lanes = probe().lanes;
  for (int byte = 0; byte < 256; ++byte) {
    for (int position = 0; position < lanes; ++position) {
      std::vector<std::uint8_t> bytes(static_cast<std::size_t>(lanes), 0);
      bytes[static_cast<std::size_t>(position)] = static_cast<std::uint8_t>(byte);
      std::array<float, 16> got{};
      probe().bytes_not_zero(bytes.data(), got.data());
      EXPECT_EQ(probe().any_of(bytes.data()), byte != 0) << byte << " at " << position;
      for (int i = 0; i < lanes; ++i) {
        EXPECT_EQ(got[static_cast<std::size_t>(i)], flag(i == position && byte != 0)) << byte << " at " << position;
      }
    }
  }
}

TEST_F(VectorTest, FoldsLanesInTheOrderWrittenDown) {
  const auto lanes = static_cast<std::size_t>(probe().lanes);
  const std::vector<float> special = special_values();
  Random random(3);
  for (int n = 0; n < 20000; ++n) {
    std::array<float, 16> vector{};
    for (float& x : vector) {
      const auto pick = static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(special.size()) - 1));
      x = n % 2 == 0 ? random.normal() : special[pick];
    }
    std::array<float, 16> sums = vector, maxima = vector;
    for (std::size_t half = lanes / 2; half > 0; half /= 2) {
      for (std::size_t i = 0; i < half; ++i) {
        sums[i] = sums[i] + sums[i + half];
        maxima[i] = maxima[i] > maxima[i + half] ? maxima[i] : maxima[i + half];
      }
    }
    ASSERT_TRUE(same(probe().sum_of_lanes(vector.data()), sums[0])) << n;
    ASSERT_TRUE(same(probe().max_of_lanes(vector.data()), maxima[0])) << n;
  }
}

TEST_F(VectorTest, Transposes) {
  const auto lanes = static_cast<std::size_t>(probe().lanes);
  std::vector<float> in(lanes * lanes), out(lanes * lanes);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
  probe().transpose(in.data(), out.data());
  for (std::size_t i = 0; i < lanes; ++i) {
    for (std::size_t j = 0; j < lanes; ++j) EXPECT_EQ(out[i * lanes + j], in[j * lanes + i]);
  }
}

TEST_F(VectorTest, Pairs) {
  if (probe().pairs == nullptr) GTEST_SKIP() << "one lane is no pair";
  const auto lanes = static_cast<std::size_t>(probe().lanes);
  std::array<float, 16> in{}, swapped{}, first{}, second{};
  for (std::size_t i = 0; i < lanes; ++i) in[i] = static_cast<float>(i + 1);
  probe().pairs(in.data(), swapped.data(), first.data(), second.data());
  for (std::size_t i = 0; i < lanes; ++i) {
    EXPECT_EQ(swapped[i], in[i ^ 1]);
    EXPECT_EQ(first[i], in[i & ~std::size_t{1}]);
    EXPECT_EQ(second[i], in[i | 1]);
  }
}

}  // namespace headlight::test::vector_test
