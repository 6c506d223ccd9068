// A model writes its results where it is told to, or refuses the place.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "headlight/models/text_encoder.h"
#include "headlight/out_of_memory.h"
#include "models/random_input.h"
#include "models/tiny_bert.h"
#include "support/compare.h"
#include "support/random.h"
#include "support/refusal.h"

namespace headlight::models::model_results_test {

using test::same_bits;
using test::TinyBert;

// Rows and matrices of `out` may lie apart, in any order.
TEST(ModelResults, ResultsGoWhereTheyAreWanted) {
  test::Random random(5);
  const TextEncoder model = tiny();
  Engine engine({.threads = 1});
  const auto texts = random_texts(random, 5, 6);
  const Ids rows = random_ids(random, 3, 7);
  const std::int64_t width = TinyBert::kWidth;
  std::vector<float> memory(3 * 7 * 40, -1.0f);
  const View<float, 2> apart(memory.data() + 4, {5, width}, {40, 1});
  model.embed(engine, texts, apart);
  EXPECT_TRUE(same_bits(View<const float, 2>(apart), model.embed(engine, texts).view()));
  EXPECT_EQ(memory[3], -1.0f);
  EXPECT_EQ(memory[4 + static_cast<std::size_t>(width)], -1.0f);
  const View<float, 3> turned(memory.data(), {3, 7, width}, {width, 3 * width, 1});
  model.encode(engine, rows.ids, rows.mask, turned);
  EXPECT_TRUE(same_bits(View<const float, 3>(turned), model.encode(engine, rows.ids, rows.mask).view()));
}

TEST(ModelResults, PlacesThatWillNotDoAreRefused) {
  const TextEncoder model = tiny();
  Engine engine({.threads = 1});
  const std::vector<std::string> texts{"a", "b"};
  std::vector<float> memory(1000, -1.0f);
  const auto refused = [&](View<float, 2> out) {
    const std::string words = test::refusal([&] { model.embed(engine, texts, out); });
    EXPECT_EQ(memory, std::vector<float>(1000, -1.0f));
    return words;
  };
  EXPECT_EQ(refused({memory.data(), {2, 23}}), "models::TextEncoder: out has shape [2, 23], expected [2, 24]");
  EXPECT_EQ(refused({nullptr, {2, 24}}), "models::TextEncoder: out has no memory (a null pointer)");
  EXPECT_EQ(refused({memory.data(), {2, 24}, {48, 2}}), "models::TextEncoder: out has the last stride 2, expected 1");
  for (const std::int64_t stride : {0, 23, -24}) {
    EXPECT_EQ(refused({memory.data() + 100, {2, 24}, {stride, 1}}),
              "models::TextEncoder: out has the strides [" + std::to_string(stride) +
                  ", 1] for the shape [2, 24], expected rows apart from each other");
  }
  // A text that is none is found before the first is written.
  const std::vector<std::string> broken{"a", "\xFF"};
  EXPECT_NE(test::refusal([&] {
              model.embed(engine, broken, View<float, 2>(memory.data(), {2, 24}));
            }).find("text 1: "),
            std::string::npos);
  EXPECT_EQ(memory, std::vector<float>(1000, -1.0f));
  EXPECT_EQ(test::refusal([&] { model.reserve(engine, -1); }),
            "models::TextEncoder: reserve() for -1 tokens, expected at least 0");
}

// Rows without end that have no columns: as many rows of nothing, or more than there can be.
TEST(ModelResults, RowsOfNothingAreNothing) {
  const TextEncoder model = tiny();
  Engine engine({.threads = 1});
  const View<const std::int64_t, 2> ids(nullptr, {std::int64_t{1} << 62, 0});
  EXPECT_EQ(model.encode(engine, ids).shape(), (std::array<std::int64_t, 3>{std::int64_t{1} << 62, 0, 24}));
  EXPECT_THROW((void)model.embed(engine, ids), OutOfMemory);
}

}  // namespace headlight::models::model_results_test
