#include "runtime/cpu.h"

#include <algorithm>
#include <string_view>

#include "runtime/isa_list.h"

#if defined(__x86_64__)
#include <cpuid.h>

#include <array>
#include <cstring>
#endif

namespace headlight {

std::string_view name(Isa isa) noexcept {
  switch (isa) {
    case Isa::scalar:
      return "scalar";
    case Isa::sse4:
      return "sse4";
    case Isa::avx2:
      return "avx2";
    case Isa::avx512:
      return "avx512";
    case Isa::neon:
      return "neon";
  }
  return "";
}

std::optional<Isa> parse_isa(std::string_view text) noexcept {
  const auto same = [](char known, char given) { return known == (given >= 'A' && given <= 'Z' ? given + 32 : given); };
  for (const Isa isa : {Isa::scalar, Isa::sse4, Isa::avx2, Isa::avx512, Isa::neon}) {
    const std::string_view known = name(isa);
    if (std::equal(known.begin(), known.end(), text.begin(), text.end(), same)) return isa;
  }
  return std::nullopt;
}

std::vector<Isa> available_isas() {
  std::vector<Isa> found;
#define HEADLIGHT_ADD(isa) \
  if (runtime::is_available(Isa::isa)) found.push_back(Isa::isa);
  HEADLIGHT_FOR_EACH_ISA(HEADLIGHT_ADD)
#undef HEADLIGHT_ADD
  return found;
}

std::string_view simd_library() noexcept { return HEADLIGHT_SIMD_NAME; }

}  // namespace headlight

namespace headlight::runtime {

#if defined(__x86_64__)

X86Features read_x86_features() noexcept {
  X86Features features;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) return features;
  features.leaf1_ecx = ecx;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0) features.leaf7_ebx = ebx;
  if ((features.leaf1_ecx & bit_OSXSAVE) != 0) {
    // xgetbv by hand: the intrinsic wants -mxsave for the whole file.
    std::uint32_t low = 0, high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    features.xcr0 = (std::uint64_t{high} << 32) | low;
  }
  return features;
}

bool supports(const X86Features& features, Isa isa) noexcept {
  const auto leaf1_has = [&](std::uint32_t bits) { return (features.leaf1_ecx & bits) == bits; };
  const auto leaf7_has = [&](std::uint32_t bits) { return (features.leaf7_ebx & bits) == bits; };
  const auto saved = [&](std::uint64_t bits) { return (features.xcr0 & bits) == bits; };
  constexpr std::uint64_t kXmmYmm = 0x06;       // XCR0 bits 1 and 2
  constexpr std::uint64_t kMasksAndZmm = 0xE0;  // bits 5 (k0–k7), 6 (upper half of ZMM0–15), 7 (ZMM16–31)

  switch (isa) {
    case Isa::scalar:
      return true;
    case Isa::sse4:
      // -msse4.2 also lets the compiler use popcnt.
      return leaf1_has(bit_SSE3 | bit_SSSE3 | bit_SSE4_1 | bit_SSE4_2 | bit_POPCNT);
    case Isa::avx2:
      return supports(features, Isa::sse4) && leaf1_has(bit_OSXSAVE | bit_AVX | bit_FMA | bit_F16C) &&
             leaf7_has(bit_AVX2 | bit_BMI | bit_BMI2) && saved(kXmmYmm);
    case Isa::avx512:
      return supports(features, Isa::avx2) &&
             leaf7_has(bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL | bit_AVX512CD) && saved(kMasksAndZmm);
    case Isa::neon:
      return false;
  }
  return false;
}

bool is_available(Isa isa) noexcept { return supports(read_x86_features(), isa); }

std::string cpu_name() {
  // Leaves 0x80000002 … 4: 48 characters, padded with spaces on either side or cut by a zero.
  std::array<unsigned, 12> words{};
  for (unsigned leaf = 0; leaf < 3; ++leaf) {
    unsigned* const four = &words[leaf * 4];
    if (__get_cpuid(0x80000002U + leaf, &four[0], &four[1], &four[2], &four[3]) == 0) return "x86-64";
  }
  std::array<char, sizeof(words) + 1> text{};
  std::memcpy(text.data(), words.data(), sizeof(words));
  std::string_view trimmed(text.data());
  while (!trimmed.empty() && trimmed.front() == ' ') trimmed.remove_prefix(1);
  while (!trimmed.empty() && trimmed.back() == ' ') trimmed.remove_suffix(1);
  return trimmed.empty() ? "x86-64" : std::string(trimmed);
}

#else

// ARMv8-A always has NEON. The kernels are compiled with +crypto only because Highway asks for it; they use none of it.
bool is_available(Isa isa) noexcept {
#if defined(__aarch64__)
  return isa == Isa::scalar || isa == Isa::neon;
#else
  return isa == Isa::scalar;
#endif
}

std::string cpu_name() {
#if defined(__aarch64__)
  return "AArch64";
#else
  return "unknown CPU";
#endif
}

#endif

std::string list_of_available_isas() {
  std::string text;
  for (const Isa isa : available_isas()) text += (text.empty() ? "" : ", ") + std::string(name(isa));
  return text;
}

}  // namespace headlight::runtime
