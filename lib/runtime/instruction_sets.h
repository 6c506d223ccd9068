// The instruction sets that kernels are written for, and the features beyond them: one row each says what it is called
// and what it needs of a CPU. Their compiler flags are in the set's folder in lib/simd/isa/, and which of them a build
// holds is isa_list.h.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "headlight/engine.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace headlight::runtime {

// What decides which instructions a CPU runs. On x86-64 registers of CPUID (leaf 1, leaf 7 sub-leaves 0 and 1, and of
// leaf 0 whether it is Intel's, which decides what they are good for), and XCR0, in which the operating system says
// which registers it saves on a context switch (0 when it does not use XSAVE):
// AMD's and Intel's manuals agree on every bit used. On 64-bit Arm, where NEON is always there, what Linux says in
// AT_HWCAP and AT_HWCAP2 (https://docs.kernel.org/arch/arm64/elf_hwcaps.html).
struct CpuFeatures {
  bool is_of_intel = false;
  std::uint32_t leaf1_ecx = 0;
  std::uint32_t leaf7_ebx = 0;
  std::uint32_t leaf7_ecx = 0;
  std::uint32_t leaf7_edx = 0;
  std::uint32_t leaf7_1_eax = 0;
  std::uint64_t xcr0 = 0;
  std::uint64_t hwcap = 0;
  std::uint64_t hwcap2 = 0;

  [[nodiscard]] constexpr bool has(const CpuFeatures& needed) const noexcept {
    return (is_of_intel || !needed.is_of_intel) && (leaf1_ecx & needed.leaf1_ecx) == needed.leaf1_ecx &&
           (leaf7_ebx & needed.leaf7_ebx) == needed.leaf7_ebx && (leaf7_ecx & needed.leaf7_ecx) == needed.leaf7_ecx &&
           (leaf7_edx & needed.leaf7_edx) == needed.leaf7_edx &&
           (leaf7_1_eax & needed.leaf7_1_eax) == needed.leaf7_1_eax && (xcr0 & needed.xcr0) == needed.xcr0 &&
           (hwcap & needed.hwcap) == needed.hwcap && (hwcap2 & needed.hwcap2) == needed.hwcap2;
  }
  [[nodiscard]] constexpr CpuFeatures operator|(const CpuFeatures& other) const noexcept {
    return {is_of_intel || other.is_of_intel,
            leaf1_ecx | other.leaf1_ecx,
            leaf7_ebx | other.leaf7_ebx,
            leaf7_ecx | other.leaf7_ecx,
            leaf7_edx | other.leaf7_edx,
            leaf7_1_eax | other.leaf7_1_eax,
            xcr0 | other.xcr0,
            hwcap | other.hwcap,
            hwcap2 | other.hwcap2};
  }
};

struct InstructionSet {
  Isa isa;
  std::string_view name;
  bool is_of_this_architecture;
  CpuFeatures needs;
};

// Of XCR0: the configuration of AMX's tile registers, and the registers.
inline constexpr std::uint64_t kTileState = 0x60000;

#if defined(__x86_64__)
inline constexpr bool kIsX86 = true;
// -msse4.2 also lets the compiler use popcnt.
inline constexpr CpuFeatures kSse4Needs = {.leaf1_ecx = bit_SSE3 | bit_SSSE3 | bit_SSE4_1 | bit_SSE4_2 | bit_POPCNT};
inline constexpr CpuFeatures kAvx2Needs =
    kSse4Needs | CpuFeatures{.leaf1_ecx = bit_OSXSAVE | bit_AVX | bit_FMA | bit_F16C,
                             .leaf7_ebx = bit_AVX2 | bit_BMI | bit_BMI2,
                             .xcr0 = 0x06};  // XMM, YMM
inline constexpr CpuFeatures kAvx512Needs =
    kAvx2Needs | CpuFeatures{.leaf7_ebx = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL | bit_AVX512CD,
                             .xcr0 = 0xE0};  // k0–k7, upper half of ZMM0–15, ZMM16–31
inline constexpr CpuFeatures kAvx512Bf16Needs = kAvx512Needs | CpuFeatures{.leaf7_1_eax = bit_AVX512BF16};
// Intel's CPUs with AMX-TILE, whether or not the system lends the registers. There vdpbf16ps does less than
// multiply-adds of float32.
inline constexpr CpuFeatures kIntelTiles = {.is_of_intel = true, .leaf7_edx = 1U << 24};
inline constexpr CpuFeatures kAvx512VnniNeeds = kAvx512Needs | CpuFeatures{.leaf7_ecx = bit_AVX512VNNI};
inline constexpr CpuFeatures kAvxVnniNeeds = kAvx2Needs | CpuFeatures{.leaf7_1_eax = bit_AVXVNNI};
// AMX-BF16, AMX-INT8 and AMX-TILE, whose names in <cpuid.h> are not the same with every compiler. A is rounded and
// quantized as for the feature of vectors.
inline constexpr CpuFeatures kAmxBf16Needs =
    kAvx512Bf16Needs | CpuFeatures{.leaf7_edx = 1U << 22 | 1U << 24, .xcr0 = kTileState};
inline constexpr CpuFeatures kAmxInt8Needs =
    kAvx512VnniNeeds | CpuFeatures{.leaf7_edx = 1U << 25 | 1U << 24, .xcr0 = kTileState};
#else
inline constexpr bool kIsX86 = false;
inline constexpr CpuFeatures kSse4Needs, kAvx2Needs, kAvx512Needs, kAvx512Bf16Needs, kIntelTiles, kAvx512VnniNeeds,
    kAvxVnniNeeds, kAmxBf16Needs, kAmxInt8Needs;
#endif
#if defined(__aarch64__)
inline constexpr bool kIsArm = true;
inline constexpr CpuFeatures kNeonDotprodNeeds = {.hwcap = 1 << 20};                               // HWCAP_ASIMDDP
inline constexpr CpuFeatures kNeonI8mmNeeds = kNeonDotprodNeeds | CpuFeatures{.hwcap2 = 1 << 13};  // HWCAP2_I8MM
inline constexpr CpuFeatures kNeonBf16Needs = {.hwcap2 = 1 << 14};                                 // HWCAP2_BF16
#else
inline constexpr bool kIsArm = false;
inline constexpr CpuFeatures kNeonDotprodNeeds, kNeonI8mmNeeds, kNeonBf16Needs;
#endif

// In the order of Isa, so worst first on every architecture. The kernels are compiled for what `needs` names and no
// more.
inline constexpr std::array<InstructionSet, 5> kInstructionSets = {{
    {Isa::scalar, "scalar", true, {}},
    {Isa::sse4, "sse4", kIsX86, kSse4Needs},
    {Isa::avx2, "avx2", kIsX86, kAvx2Needs},
    {Isa::avx512, "avx512", kIsX86, kAvx512Needs},
    {Isa::neon, "neon", kIsArm, {}},
}};

// Its row, or null for what is no instruction set.
[[nodiscard]] constexpr const InstructionSet* row_of(Isa isa) noexcept {
  const auto row = static_cast<std::size_t>(isa);
  return row < kInstructionSets.size() ? &kInstructionSets[row] : nullptr;
}

static_assert(
    [] {
      for (std::size_t row = 0; row < kInstructionSets.size(); ++row) {
        if (static_cast<std::size_t>(kInstructionSets[row].isa) != row) return false;
      }
      return true;
    }(),
    "the rows are in the order of Isa");

// What a set's own kernels do without. `wants`: the numerics without which no engine uses it. `slow_on`: CPUs that have
// it and are faster without, so that no engine uses it there unless it is told to.
struct FeatureOfSet {
  InstructionFeature feature;
  std::string_view name;
  Isa isa;
  CpuFeatures needs;
  Numerics wants = Numerics::reproducible;
  std::optional<CpuFeatures> slow_on = std::nullopt;

  // Whether the operating system must be asked first: tile_permission.h.
  [[nodiscard]] constexpr bool uses_tiles() const noexcept { return (needs.xcr0 & kTileState) != 0; }
};

// In the order of InstructionFeature.
inline constexpr std::array<FeatureOfSet, 8> kFeatures = {{
    {InstructionFeature::avx512_bf16, "avx512_bf16", Isa::avx512, kAvx512Bf16Needs, Numerics::reproducible,
     kIntelTiles},
    {InstructionFeature::avx512_vnni, "avx512_vnni", Isa::avx512, kAvx512VnniNeeds},
    {InstructionFeature::avx_vnni, "avx_vnni", Isa::avx2, kAvxVnniNeeds},
    {InstructionFeature::neon_dotprod, "neon_dotprod", Isa::neon, kNeonDotprodNeeds},
    {InstructionFeature::neon_i8mm, "neon_i8mm", Isa::neon, kNeonI8mmNeeds},
    {InstructionFeature::neon_bf16, "neon_bf16", Isa::neon, kNeonBf16Needs, Numerics::fast},
    {InstructionFeature::amx_bf16, "amx_bf16", Isa::avx512, kAmxBf16Needs},
    {InstructionFeature::amx_int8, "amx_int8", Isa::avx512, kAmxInt8Needs},
}};

[[nodiscard]] constexpr const FeatureOfSet& row_of(InstructionFeature feature) noexcept {
  return kFeatures[static_cast<std::size_t>(feature)];
}

}  // namespace headlight::runtime
