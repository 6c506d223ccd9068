#include "runtime/cpu.h"

#include <algorithm>
#include <string_view>

#include "runtime/isa_list.h"
#include "runtime/list_text.h"

#if defined(__x86_64__)
#include <cpuid.h>

#include <array>
#include <cstring>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace headlight {

std::string_view name(Isa isa) noexcept {
  const runtime::InstructionSet* const row = runtime::row_of(isa);
  return row == nullptr ? "" : row->name;
}

std::optional<Isa> parse_isa(std::string_view text) noexcept {
  const auto same = [](char known, char given) { return known == (given >= 'A' && given <= 'Z' ? given + 32 : given); };
  for (const runtime::InstructionSet& row : runtime::kInstructionSets) {
    if (std::equal(row.name.begin(), row.name.end(), text.begin(), text.end(), same)) return row.isa;
  }
  return std::nullopt;
}

std::vector<Isa> available_isas() {
  std::vector<Isa> found;
  const runtime::CpuFeatures features = runtime::cpu_features();
  for (const runtime::InstructionSet& row : runtime::kInstructionSets) {
    if (runtime::is_available(features, row.isa)) found.push_back(row.isa);
  }
  return found;
}

std::string_view name(InstructionFeature feature) noexcept {
  const auto row = static_cast<std::size_t>(feature);
  return row < runtime::kFeatures.size() ? runtime::kFeatures[row].name : "";
}

std::string_view name(Numerics numerics) noexcept {
  return numerics == Numerics::reproducible ? "reproducible" : numerics == Numerics::fast ? "fast" : "";
}

std::optional<Numerics> parse_numerics(std::string_view text) noexcept {
  for (const Numerics numerics : {Numerics::reproducible, Numerics::fast}) {
    if (text == name(numerics)) return numerics;
  }
  return std::nullopt;
}

InstructionFeatures available_features(Isa isa) noexcept { return available_features(isa, Numerics::reproducible); }

InstructionFeatures available_features(Isa isa, Numerics numerics) noexcept {
  return runtime::features_of(runtime::cpu_features(), isa, numerics);
}

std::vector<InstructionFeature> InstructionFeatures::list() const {
  std::vector<InstructionFeature> found;
  for (const runtime::FeatureOfSet& row : runtime::kFeatures) {
    if (has(row.feature)) found.push_back(row.feature);
  }
  return found;
}

std::string_view simd_library() noexcept { return HEADLIGHT_SIMD_NAME; }

}  // namespace headlight

namespace headlight::runtime {

bool supports(const CpuFeatures& features, Isa isa) noexcept {
  const InstructionSet* const row = row_of(isa);
  return row != nullptr && row->is_of_this_architecture && features.has(row->needs);
}

bool is_built(Isa isa) noexcept {
  switch (isa) {
#define HEADLIGHT_CASE(name) case Isa::name:
    HEADLIGHT_FOR_EACH_ISA(HEADLIGHT_CASE)
#undef HEADLIGHT_CASE
    return true;
    default:
      return false;
  }
}

Isa best_isa(const CpuFeatures& features) noexcept {
  Isa best = Isa::scalar;
  for (const InstructionSet& row : kInstructionSets) {
    if (is_available(features, row.isa)) best = row.isa;
  }
  return best;
}

InstructionFeatures features_of(const CpuFeatures& features, Isa isa, Numerics numerics) noexcept {
  constexpr InstructionFeatures kBuilt = {
#define HEADLIGHT_ITEM(name) InstructionFeature::name,
      HEADLIGHT_FOR_EACH_FEATURE(HEADLIGHT_ITEM)
#undef HEADLIGHT_ITEM
  };
  InstructionFeatures found;
  for (const FeatureOfSet& row : kFeatures) {
    const bool is_allowed = row.wants <= numerics;
    if (row.isa == isa && is_allowed && kBuilt.has(row.feature) && features.has(row.needs)) found = found | row.feature;
  }
  return found;
}

InstructionFeatures worthwhile(const CpuFeatures& cpu, InstructionFeatures features) noexcept {
  InstructionFeatures found;
  for (const FeatureOfSet& row : kFeatures) {
    const bool is_slow = row.slow_on && cpu.has(*row.slow_on);
    if (features.has(row.feature) && !is_slow) found = found | row.feature;
  }
  return found;
}

bool is_available(const CpuFeatures& features, Isa isa) noexcept { return is_built(isa) && supports(features, isa); }

#if defined(__x86_64__)

CpuFeatures cpu_features() noexcept {
  CpuFeatures features;
  // __get_cpuid() would ask for the last leaf each time.
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  const auto last_leaf = static_cast<unsigned>(__get_cpuid_max(0, &ebx));
  if (last_leaf < 1) return features;
  features.is_of_intel = ebx == signature_INTEL_ebx;
  __cpuid(1, eax, ebx, ecx, edx);
  features.leaf1_ecx = ecx;
  if (last_leaf >= 7) {
    __cpuid_count(7, 0, eax, ebx, ecx, edx);
    features.leaf7_ebx = ebx;
    features.leaf7_ecx = ecx;
    features.leaf7_edx = edx;
    // Leaf 7 names its last sub-leaf in eax.
    if (eax >= 1) {
      __cpuid_count(7, 1, eax, ebx, ecx, edx);
      features.leaf7_1_eax = eax;
    }
  }
  if ((features.leaf1_ecx & bit_OSXSAVE) != 0) {
    // xgetbv by hand: the intrinsic wants -mxsave for the whole file.
    std::uint32_t low = 0, high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    features.xcr0 = (std::uint64_t{high} << 32) | low;
  }
  return features;
}

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

#if defined(__aarch64__) && defined(__linux__)
CpuFeatures cpu_features() noexcept { return {.hwcap = getauxval(AT_HWCAP), .hwcap2 = getauxval(AT_HWCAP2)}; }
#else
CpuFeatures cpu_features() noexcept { return {}; }
#endif

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
  for (const Isa isa : available_isas()) append_item(text, name(isa));
  return text;
}

std::string list_of(InstructionFeatures features) {
  std::string text;
  for (const InstructionFeature feature : features.list()) append_item(text, name(feature));
  return text.empty() ? "none" : text;
}

}  // namespace headlight::runtime
