// Which instruction sets may be used, from registers made up for the purpose.
#include "runtime/cpu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "runtime/isa_list.h"

namespace headlight::runtime::cpu_test {

// Those of them that this build holds.
InstructionFeatures built(InstructionFeatures features) {
  const InstructionFeatures of_the_build = {
#define HEADLIGHT_ITEM(name) InstructionFeature::name,
      HEADLIGHT_FOR_EACH_FEATURE(HEADLIGHT_ITEM)
#undef HEADLIGHT_ITEM
  };
  return InstructionFeatures::of_bits(features.bits() & of_the_build.bits());
}

TEST(Isa, NamesReadBack) {
  for (const InstructionSet& row : kInstructionSets) {
    EXPECT_EQ(name(row.isa), row.name);
    EXPECT_EQ(parse_isa(row.name), row.isa);
  }
  EXPECT_EQ(parse_isa("AVX2"), Isa::avx2);
  EXPECT_EQ(parse_isa("Avx512"), Isa::avx512);
  for (const char* text : {"", "avx", "avx2 ", "avx512f", "avx2x"}) EXPECT_EQ(parse_isa(text), std::nullopt) << text;
  EXPECT_EQ(name(static_cast<Isa>(200)), "");
}

TEST(Isa, ScalarIsAvailableAndComesFirst) {
  const std::vector<Isa> isas = available_isas();
  ASSERT_FALSE(isas.empty());
  EXPECT_EQ(isas.front(), Isa::scalar);
  const CpuFeatures features = cpu_features();
  EXPECT_FALSE(is_available(features, static_cast<Isa>(200)));
  EXPECT_EQ(best_isa(features), isas.back());
  // A set that this build lacks is none, whatever the CPU could run.
  for (const InstructionSet& row : kInstructionSets) {
#define HEADLIGHT_IS(name) || row.isa == Isa::name
    const bool is_listed = false HEADLIGHT_FOR_EACH_ISA(HEADLIGHT_IS);
#undef HEADLIGHT_IS
    EXPECT_EQ(is_available(features, row.isa), is_listed && supports(features, row.isa)) << row.name;
    EXPECT_EQ(is_available(features, row.isa), std::count(isas.begin(), isas.end(), row.isa) == 1) << row.name;
  }
  for (const Isa isa : isas) EXPECT_NE(list_of_available_isas().find(name(isa)), std::string::npos);
}

TEST(InstructionFeature, NamesAndListsFollowTheTable) {
  InstructionFeatures all;
  for (std::size_t row = 0; row < kFeatures.size(); ++row) {
    EXPECT_EQ(static_cast<std::size_t>(kFeatures[row].feature), row) << "the rows are in the order of the enumeration";
    EXPECT_EQ(name(kFeatures[row].feature), kFeatures[row].name);
    EXPECT_FALSE(all.has(kFeatures[row].feature));
    all = all | kFeatures[row].feature;
    EXPECT_TRUE(all.has(kFeatures[row].feature));
    EXPECT_EQ(all.list().size(), row + 1);
  }
  EXPECT_EQ(name(static_cast<InstructionFeature>(31)), "");
  EXPECT_EQ(list_of({}), "none");
  EXPECT_EQ(list_of({InstructionFeature::avx512_bf16}), "avx512_bf16");
  EXPECT_TRUE(all.has(InstructionFeatures{}));
  EXPECT_FALSE(InstructionFeatures{}.has(all));
}

TEST(Numerics, NamesReadBackAndAllowWhatFeaturesWant) {
  for (const Numerics numerics : {Numerics::reproducible, Numerics::fast}) {
    EXPECT_EQ(parse_numerics(name(numerics)), numerics);
  }
  EXPECT_EQ(name(static_cast<Numerics>(2)), "");
  for (const char* text : {"", "Fast", "fast ", "exact"}) EXPECT_EQ(parse_numerics(text), std::nullopt) << text;
  for (const FeatureOfSet& row : kFeatures) {
    const bool is_there = features_of(row.needs, row.isa, Numerics::fast).has(row.feature);
    EXPECT_EQ(features_of(row.needs, row.isa).has(row.feature), is_there && row.wants == Numerics::reproducible);
  }
}

TEST(Cpu, HasAName) {
  const std::string cpu = cpu_name();
  ASSERT_FALSE(cpu.empty());
  EXPECT_NE(cpu.front(), ' ');
  EXPECT_NE(cpu.back(), ' ');
  EXPECT_EQ(cpu.find('\0'), std::string::npos);
}

#if defined(__x86_64__)

using Bits = std::vector<std::uint32_t>;

// Intel's manual, volume 2, CPUID.
constexpr std::uint32_t kAmxBf16 = 1U << 22, kAmxTile = 1U << 24, kAmxInt8 = 1U << 25;

CpuFeatures everything() {
  CpuFeatures features;
  features.leaf1_ecx =
      bit_SSE3 | bit_SSSE3 | bit_SSE4_1 | bit_SSE4_2 | bit_POPCNT | bit_OSXSAVE | bit_AVX | bit_FMA | bit_F16C;
  features.leaf7_ebx =
      bit_AVX2 | bit_BMI | bit_BMI2 | bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL | bit_AVX512CD;
  features.leaf7_ecx = bit_AVX512VNNI;
  features.leaf7_edx = kAmxBf16 | kAmxTile | kAmxInt8;
  features.leaf7_1_eax = bit_AVX512BF16 | bit_AVXVNNI;
  features.xcr0 = 0x600E7;
  return features;
}

Isa best(const CpuFeatures& features) {
  Isa found = Isa::scalar;
  bool gap = false;
  for (const Isa isa : {Isa::sse4, Isa::avx2, Isa::avx512}) {
    if (supports(features, isa)) {
      EXPECT_FALSE(gap) << "a set without the ones below it";
      found = isa;
    } else {
      gap = true;
    }
  }
  return found;
}

TEST(Cpu, EveryMissingBitTakesItsSetAway) {
  EXPECT_EQ(best(everything()), Isa::avx512);
  EXPECT_EQ(best({}), Isa::scalar);
  const auto without_leaf1 = [](std::uint32_t bit) {
    CpuFeatures features = everything();
    features.leaf1_ecx &= ~bit;
    return best(features);
  };
  const auto without_leaf7 = [](std::uint32_t bit) {
    CpuFeatures features = everything();
    features.leaf7_ebx &= ~bit;
    return best(features);
  };
  for (const std::uint32_t bit : Bits{bit_SSE3, bit_SSSE3, bit_SSE4_1, bit_SSE4_2, bit_POPCNT}) {
    EXPECT_EQ(without_leaf1(bit), Isa::scalar) << bit;
  }
  for (const std::uint32_t bit : Bits{bit_OSXSAVE, bit_AVX, bit_FMA, bit_F16C}) {
    EXPECT_EQ(without_leaf1(bit), Isa::sse4) << bit;
  }
  for (const std::uint32_t bit : Bits{bit_AVX2, bit_BMI, bit_BMI2}) {
    EXPECT_EQ(without_leaf7(bit), Isa::sse4) << bit;
  }
  for (const std::uint32_t bit : Bits{bit_AVX512F, bit_AVX512BW, bit_AVX512DQ, bit_AVX512VL, bit_AVX512CD}) {
    EXPECT_EQ(without_leaf7(bit), Isa::avx2) << bit;
  }
}

TEST(Cpu, AFeatureNeedsItsBitAndItsSet) {
  using enum InstructionFeature;
  // Tile registers, which want more, are not lent here.
  const auto everything_else = [] {
    CpuFeatures features = everything();
    features.xcr0 = 0xE7;
    return features;
  };
  EXPECT_EQ(features_of(everything_else(), Isa::avx512), built({avx512_bf16, avx512_vnni}));
  EXPECT_EQ(features_of(everything(), Isa::avx2), built({avx_vnni}));
  for (const Isa isa : {Isa::scalar, Isa::sse4, Isa::neon}) {
    EXPECT_EQ(features_of(everything(), isa), InstructionFeatures{}) << name(isa);
  }
  CpuFeatures features = everything_else();
  features.leaf7_1_eax = 0;
  EXPECT_EQ(features_of(features, Isa::avx512), built({avx512_vnni}));
  EXPECT_EQ(features_of(features, Isa::avx2), InstructionFeatures{});
  features = everything_else();
  features.leaf7_ecx = 0;
  EXPECT_EQ(features_of(features, Isa::avx512), built({avx512_bf16}));
  features = everything_else();
  features.leaf7_ebx &= ~static_cast<std::uint32_t>(bit_AVX512BW);
  EXPECT_EQ(features_of(features, Isa::avx512), InstructionFeatures{});
  EXPECT_EQ(features_of(features, Isa::avx2), built({avx_vnni}));
  features = everything_else();
  features.xcr0 = 0x07;
  EXPECT_EQ(features_of(features, Isa::avx512), InstructionFeatures{});
}

TEST(Cpu, TileRegistersWantTheirBitsAndTheSystem) {
  using enum InstructionFeature;
  const InstructionFeatures tiles = {amx_bf16, amx_int8};
  EXPECT_EQ(features_of(everything(), Isa::avx512).has(tiles), built(tiles) == tiles);
  if (built(tiles) != tiles) GTEST_SKIP() << "this build has none";
  EXPECT_FALSE(features_of(everything(), Isa::avx2).has(amx_bf16));
  const auto found = [](auto change) {
    CpuFeatures features = everything();
    change(features);
    const InstructionFeatures all = features_of(features, Isa::avx512);
    return std::pair(all.has(amx_bf16), all.has(amx_int8));
  };
  EXPECT_EQ(found([](CpuFeatures& cpu) { cpu.leaf7_edx &= ~kAmxBf16; }), std::pair(false, true));
  EXPECT_EQ(found([](CpuFeatures& cpu) { cpu.leaf7_edx &= ~kAmxInt8; }), std::pair(true, false));
  EXPECT_EQ(found([](CpuFeatures& cpu) { cpu.leaf7_edx &= ~kAmxTile; }), std::pair(false, false));
  EXPECT_EQ(found([](CpuFeatures& cpu) { cpu.leaf7_1_eax = 0; }), std::pair(false, true));
  EXPECT_EQ(found([](CpuFeatures& cpu) { cpu.leaf7_ecx = 0; }), std::pair(true, false));
  for (const std::uint64_t bit : {0x20000U, 0x40000U}) {
    EXPECT_EQ(found([bit](CpuFeatures& cpu) { cpu.xcr0 &= ~bit; }), std::pair(false, false)) << bit;
  }
}

// vdpbf16ps takes twice the time of two multiply-adds there, lent tiles or not.
TEST(Cpu, PairsOfBFloat16AreNotForIntelsCpusWithTiles) {
  using enum InstructionFeature;
  const InstructionFeatures all = {avx512_bf16, avx512_vnni, amx_bf16, amx_int8};
  CpuFeatures cpu = everything();
  EXPECT_EQ(worthwhile(cpu, all), all);
  cpu.is_of_intel = true;
  EXPECT_EQ(worthwhile(cpu, all), InstructionFeatures({avx512_vnni, amx_bf16, amx_int8}));
  EXPECT_EQ(worthwhile(cpu, {}), InstructionFeatures{});
  cpu.xcr0 = 0xE7;
  EXPECT_EQ(worthwhile(cpu, {avx512_bf16}), InstructionFeatures{});
  EXPECT_EQ(features_of(cpu, Isa::avx512).has(avx512_bf16), built({avx512_bf16}) != InstructionFeatures{})
      << "who wants it gets it";
  cpu.leaf7_edx &= ~kAmxTile;
  EXPECT_EQ(worthwhile(cpu, all), all);
}

TEST(Cpu, TheOperatingSystemMustSaveTheRegisters) {
  CpuFeatures features = everything();
  for (const std::uint64_t bit : {0x20U, 0x40U, 0x80U}) {
    features.xcr0 = 0xE7 & ~bit;
    EXPECT_EQ(best(features), Isa::avx2) << bit;
  }
  for (const std::uint64_t bit : {0x02U, 0x04U}) {
    features.xcr0 = 0xE7 & ~bit;
    EXPECT_EQ(best(features), Isa::sse4) << bit;
  }
}

// The compiler's run-time library reads the same registers by its own code.
TEST(Cpu, AgreesWithTheCompilersOwnDetection) {
  const CpuFeatures features = cpu_features();
  EXPECT_EQ(supports(features, Isa::sse4), __builtin_cpu_supports("sse4.2") != 0);
  EXPECT_EQ(supports(features, Isa::avx2), __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                                               __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2"));
  EXPECT_EQ(supports(features, Isa::avx512), __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                                                 __builtin_cpu_supports("avx512vl") &&
                                                 __builtin_cpu_supports("avx512cd"));
  InstructionFeatures found;
  if (__builtin_cpu_supports("avx512bf16")) found = found | InstructionFeature::avx512_bf16;
  if (__builtin_cpu_supports("avx512vnni")) found = found | InstructionFeature::avx512_vnni;
  for (const InstructionFeature feature : {InstructionFeature::avx512_bf16, InstructionFeature::avx512_vnni}) {
    EXPECT_EQ(features_of(features, Isa::avx512).has(feature), built(found).has(feature)) << name(feature);
  }
  EXPECT_EQ(features.is_of_intel, __builtin_cpu_is("intel") != 0);
  EXPECT_FALSE(is_available(cpu_features(), Isa::neon));
}

#elif defined(__aarch64__)

TEST(Cpu, AFeatureNeedsItsBitAndItsSet) {
  using enum InstructionFeature;
  constexpr std::uint64_t kDotprod = 1 << 20, kI8mm = 1 << 13, kBf16 = 1 << 14;
  EXPECT_EQ(features_of({.hwcap = kDotprod}, Isa::neon), built({neon_dotprod}));
  EXPECT_EQ(features_of({.hwcap = ~kDotprod}, Isa::neon), InstructionFeatures{});
  EXPECT_EQ(features_of({.hwcap = kDotprod, .hwcap2 = kI8mm}, Isa::neon), built({neon_dotprod, neon_i8mm}));
  EXPECT_EQ(features_of({.hwcap = kDotprod, .hwcap2 = ~kI8mm}, Isa::neon), built({neon_dotprod}));
  EXPECT_EQ(features_of({.hwcap = ~kDotprod, .hwcap2 = kI8mm}, Isa::neon), InstructionFeatures{});
  EXPECT_EQ(features_of({.hwcap = kDotprod, .hwcap2 = kI8mm}, Isa::scalar), InstructionFeatures{});
  EXPECT_EQ(features_of({.hwcap2 = kBf16}, Isa::neon, Numerics::fast), built({neon_bf16}));
  EXPECT_EQ(features_of({.hwcap2 = kBf16}, Isa::neon), InstructionFeatures{});
  EXPECT_EQ(features_of({.hwcap2 = ~kBf16}, Isa::neon, Numerics::fast), InstructionFeatures{});
  EXPECT_EQ(features_of({.hwcap2 = kBf16}, Isa::scalar, Numerics::fast), InstructionFeatures{});
}

#endif

}  // namespace headlight::runtime::cpu_test
