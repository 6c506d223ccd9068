// The lengths of heads' parts against the plain twin, and the sum of the parts against the product.
#include "headlight/analysis/head_parts.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "reference/head_parts.h"
#include "support/compare.h"
#include "support/isas.h"
#include "support/random.h"

namespace headlight::test {
namespace {

TEST(HeadParts, AgreeWithTheTwin) {
  Random random(5);
  for (const Isa isa : available_isas()) {
    Engine engine({.isa = isa});
    for (const auto& [rows, width, heads] :
         {std::array<std::int64_t, 3>{1, 4, 1}, {7, 24, 3}, {300, 48, 12}, {5, 9, 9}}) {
      const Tensor<float, 2> outputs = random.normal_tensor<2>({rows, width});
      const Tensor<float, 2> weight = random.normal_tensor<2>({width, width});
      Tensor<float, 2> norms({rows, heads});
      analysis::head_part_norms(engine, outputs, weight, norms);
      Tensor<double, 2> expected({rows, heads});
      const Tensor<double, 2> wide_outputs = converted<double>(outputs);
      const Tensor<double, 2> wide_weight = converted<double>(weight);
      reference::head_part_norms<double>(wide_outputs.view(), wide_weight.view(), expected.view());
      for (std::int64_t n = 0; n < rows; ++n) {
        for (std::int64_t head = 0; head < heads; ++head) {
          EXPECT_NEAR(norms(n, head), expected(n, head), 1e-5 * (1 + expected(n, head))) << name(isa);
        }
      }
    }
  }
}

TEST(HeadParts, NoRowsAndWrongShapes) {
  Engine engine({.threads = 1});
  Tensor<float, 2> none({0, 8}), weight({8, 8}), norms({0, 2});
  analysis::head_part_norms(engine, none, weight, norms);
  Tensor<float, 2> outputs({3, 8}), three({3, 3}), zero({3, 0}), short_one({2, 2}), narrow({8, 7});
  EXPECT_THROW(analysis::head_part_norms(engine, outputs, weight, three), std::invalid_argument);
  EXPECT_THROW(analysis::head_part_norms(engine, outputs, weight, zero), std::invalid_argument);
  EXPECT_THROW(analysis::head_part_norms(engine, outputs, weight, short_one), std::invalid_argument);
  EXPECT_THROW(analysis::head_part_norms(engine, outputs, narrow, norms), std::invalid_argument);
}

}  // namespace
}  // namespace headlight::test
