// Which types of numbers a build has, in which everything works, and that it refuses the others by name.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "headlight/attention.h"
#include "headlight/engine.h"
#include "headlight/gemm.h"
#include "headlight/layers/linear.h"
#include "headlight/layers/training.h"
#include "headlight/normalization.h"
#include "headlight/storage_types.h"
#include "headlight/system.h"
#include "headlight/tensor.h"

namespace headlight::test::types_test {

bool is_here(NumberType type) {
  const std::vector<NumberType> types = available_types();
  return std::find(types.begin(), types.end(), type) != types.end();
}

// Works where the build has the type, and else names argument, type and option.
void works_or_is_refused(NumberType type, const std::string& argument, const std::function<void()>& call) {
  SCOPED_TRACE(std::string(name(type)) + ", " + argument);
  if (is_here(type)) {
    EXPECT_NO_THROW(call());
    return;
  }
  try {
    call();
    ADD_FAILURE() << "not refused";
  } catch (const std::invalid_argument& error) {
    const std::string expected =
        argument + " is " + std::string(name(type)) + ", which this build lacks: HEADLIGHT_TYPES";
    EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
  }
}

Tensor<float, 2> ones(std::int64_t rows, std::int64_t columns) {
  Tensor<float, 2> made({rows, columns});
  std::fill(made.begin(), made.end(), 1.0f);
  return made;
}

TEST(Types, AreThoseOfTheBuild) {
  std::stringstream list(HEADLIGHT_TYPES_OF_BUILD);
  std::vector<std::string> expected, found;
  for (std::string type; list >> type;) expected.push_back(type);
  for (const NumberType type : available_types()) found.emplace_back(name(type));
  EXPECT_EQ(found, expected);
  EXPECT_EQ(found.front(), "float32");
}

TEST(Types, OfProducts) {
  Engine engine({.threads = 1});
  const Tensor<float, 2> a = ones(5, 40), b = ones(40, 20);
  for (const NumberType type : kNumberTypes) {
    works_or_is_refused(type, "type", [&] {
      const PackedMatrix packed(engine, b, Transpose::no, type);
      Tensor<float, 2> c({5, 20});
      gemm(engine, a, packed, c);
      EXPECT_NEAR(c(4, 19), 40.0f, 40 * 0x1p-8f);  // the scales of int4 are bfloat16
    });
    works_or_is_refused(type, "precision", [&] { Linear(40, 20).set_precision(type); });
  }
  works_or_is_refused(NumberType::bfloat16, "activations", [] { const SavedState state(NumberType::bfloat16); });
}

TEST(Types, OfAttention) {
  Engine engine({.threads = 1});
  for (const NumberType type : {NumberType::float32, NumberType::bfloat16, NumberType::float16}) {
    std::vector<std::uint32_t> numbers(3 * 2 * 8);
    const TypedView<4> x{type, numbers.data(), {1, 3, 2, 8}};
    std::vector<std::uint32_t> result(numbers.size());
    const MutableTypedView<4> out{type, result.data(), {1, 3, 2, 8}};
    works_or_is_refused(type, "query", [&] { attention(engine, x, x, x, out); });
  }
  Tensor<float, 4> x({1, 3, 2, 8});
  Tensor<std::int8_t, 4> numbers({1, 3, 2, 8});
  Tensor<float, 3> scales({1, 3, 2});
  works_or_is_refused(NumberType::int8, "numbers",
                      [&] { quantize_rows(engine, View<const float, 4>(x), numbers, scales); });
}

// Rows of 16 bits, in which files of models keep their numbers, are widened in every build.
TEST(Types, OfRows) {
  Engine engine({.threads = 1});
  const Tensor<BFloat16, 2> x({1, 8});
  Tensor<float, 2> y({1, 8});
  softmax(engine, x, y);
  EXPECT_EQ(y(0, 7), 0.125f);
}

}  // namespace headlight::test::types_test
