// The same test on every instruction set that this machine runs.
//
//   using AttentionTest = headlight::test::EachIsa;
//   TEST_P(AttentionTest, SumsToOne) { Engine engine(options(2)); … }
//   HEADLIGHT_ON_EVERY_ISA(AttentionTest);
#pragma once

#include <string>

#include "gtest/gtest.h"
#include "headlight/engine.h"

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

}  // namespace headlight::test

#define HEADLIGHT_ON_EVERY_ISA(suite)                                                 \
  INSTANTIATE_TEST_SUITE_P(On, suite, testing::ValuesIn(headlight::available_isas()), \
                           [](const auto& isa) { return std::string(headlight::name(isa.param)); })
