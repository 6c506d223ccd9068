// What MinibatchCka and HeadCovariance refuse, and the memory that they borrow.
#include <array>
#include <cstdint>

#include "gtest/gtest.h"
#include "headlight/analysis/similarity.h"
#include "runtime/parallel.h"
#include "support/refusal.h"

namespace headlight::analysis::similarity_arguments_test {

TEST(SimilarityArguments, AreNamedWhenTheyAreWrong) {
  Engine engine;
  MinibatchCka cka(2);
  const Tensor<float, 2> five({5, 3}), six({6, 3});
  EXPECT_EQ(test::refusal([&] { cka.add(engine, std::array{five.view()}); }),
            "MinibatchCka: there are 1 outputs, expected 2");
  EXPECT_EQ(test::refusal([&] {
              cka.add(engine, std::array{five.view(), six.view()});
            }),
            "MinibatchCka: outputs have 5 and 6 rows, expected one number");
  EXPECT_EQ(test::refusal([&] { (void)cka.cka(0, 2); }), "MinibatchCka: head is 2, expected 0 to 1");
  HeadCovariance covariance(2, 3);
  EXPECT_NE(test::refusal([&] { covariance.add(engine, five); }).find("expected [any, 6]"), std::string::npos)
      << test::refusal([&] { covariance.add(engine, five); });
  EXPECT_EQ(test::refusal([&] { (void)covariance.cka(-1, 0); }), "HeadCovariance: head is -1, expected 0 to 1");
  EXPECT_NE(test::refusal([] { HeadCovariance(1, 0); }), "");
}

TEST(SimilarityArguments, AreNamedWhenTheyAreTooLarge) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  EXPECT_EQ(test::refusal([] { HeadCovariance(4, kHuge); }),
            "HeadCovariance: head_dim is 4611686018427387904, expected 1 to 1048575");
  EXPECT_EQ(test::refusal([] { HeadCovariance(INT64_MAX, 2); }),
            "HeadCovariance: heads is 9223372036854775807, expected 1 to 1048575");
  EXPECT_EQ(test::refusal([] { HeadCovariance(1 << 16, 1 << 16); }),
            "HeadCovariance: heads · head_dim is 4294967296, expected 1 to 1048575");
  EXPECT_EQ(test::refusal([] { MinibatchCka{std::int64_t{1} << 32}; }),
            "MinibatchCka: heads is 4294967296, expected 1 to 1048575");
}

// Inside a task no other thread comes to help: there is no need for its memory.
TEST(SimilarityMemory, InsideATaskIsThatOfOneThread) {
  Engine one({.threads = 1}), four({.threads = 4});
  const Tensor<float, 2> outputs({60, 240});
  HeadCovariance alone(5, 48), inside(5, 48);
  alone.add(one, outputs);
  runtime::parallel_for(four, 2, 2, [&](std::int64_t task, int) {
    if (task == 0) inside.add(four, outputs);
  });
  EXPECT_EQ(inside.rows(), 60);
  EXPECT_EQ(four.scratch_bytes(), one.scratch_bytes());
}

}  // namespace headlight::analysis::similarity_arguments_test
