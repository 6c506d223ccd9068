// The same test on every instruction set that this machine runs.
//
//   using AttentionTest = headlight::test::EachIsa;
//   TEST_P(AttentionTest, SumsToOne) { Engine engine(options(2)); … }
//   HEADLIGHT_ON_EVERY_ISA(AttentionTest);
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/engine.h"
#include "headlight/number_type.h"

namespace headlight::test {

class EachIsa : public testing::TestWithParam<Isa> {
 protected:
  // An engine made from these runs the test's instruction set, or throws.
  [[nodiscard]] static EngineOptions options(int threads = 1) {
    EngineOptions options;
    options.isa = GetParam();
    options.threads = threads;
    return options;
  }
};

// An instruction set with all or none of what this CPU has beyond it, and where some of that wants fast numerics, with
// all but those, too. And with a feature that another would stand in for.
struct Instructions {
  Isa isa;
  InstructionFeatures features;
  Numerics numerics = Numerics::reproducible;

  // An engine made from these runs them, or throws.
  [[nodiscard]] EngineOptions options(int threads) const {
    EngineOptions options;
    options.isa = isa;
    options.features = features;
    options.numerics = numerics;
    options.threads = threads;
    return options;
  }
};

[[nodiscard]] inline std::vector<Instructions> available_instructions() {
  std::vector<Instructions> found;
  for (const Isa isa : available_isas()) {
    found.push_back({isa, {}});
    const InstructionFeatures features = available_features(isa), all = available_features(isa, Numerics::fast);
    if (features.has(InstructionFeature::neon_i8mm)) found.push_back({isa, {InstructionFeature::neon_dotprod}});
    if (features.has(InstructionFeature::amx_bf16) || features.has(InstructionFeature::amx_int8)) {
      InstructionFeatures vectors;
      for (const InstructionFeature feature : features.list()) {
        if (feature != InstructionFeature::amx_bf16 && feature != InstructionFeature::amx_int8)
          vectors = vectors | feature;
      }
      found.push_back({isa, vectors});
    }
    if (features != InstructionFeatures{}) found.push_back({isa, features});
    if (all != features) found.push_back({isa, all, Numerics::fast});
  }
  return found;
}

[[nodiscard]] inline std::string name(const Instructions& instructions) {
  std::string text(name(instructions.isa));
  for (const InstructionFeature feature : instructions.features.list()) text.append("_with_").append(name(feature));
  return text;
}

// Whether products have the bits that they have on the set without features.
[[nodiscard]] inline bool has_bits_of_set(const Instructions& instructions, NumberType type) {
  using enum InstructionFeature;
  return type != NumberType::bfloat16 || !(instructions.features.has(amx_bf16) || instructions.features.has(neon_bf16));
}

// For messages of the test.
inline void PrintTo(const Instructions& instructions, std::ostream* to) { *to << name(instructions); }

// For kernels that features override.
class EachIsaAndFeature : public testing::TestWithParam<Instructions> {
 protected:
  [[nodiscard]] static EngineOptions options(int threads = 1) { return GetParam().options(threads); }
};

}  // namespace headlight::test

#define HEADLIGHT_ON_EVERY_FEATURE(suite)                                                           \
  INSTANTIATE_TEST_SUITE_P(On, suite, testing::ValuesIn(headlight::test::available_instructions()), \
                           [](const auto& on) { return headlight::test::name(on.param); })
#define HEADLIGHT_ON_EVERY_ISA(suite)                                                 \
  INSTANTIATE_TEST_SUITE_P(On, suite, testing::ValuesIn(headlight::available_isas()), \
                           [](const auto& isa) { return std::string(headlight::name(isa.param)); })
