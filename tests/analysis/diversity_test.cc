// Subspaces, penalties and importance: against the twins, and where the answer is known.
#include "headlight/analysis/diversity.h"

#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "gtest/gtest.h"
#include "reference/heads.h"
#include "support/head_case.h"
#include "support/isas.h"
#include "support/refusal.h"

namespace headlight::analysis::diversity_test {

using test::Random;

constexpr double kTolerance = 1e-9;

View<const float, 2> head_of(const Tensor<float, 2>& weight, std::int64_t rows, std::int64_t h) {
  return {&weight(h * rows, 0), {rows, weight.shape()[1]}};
}

TEST(PrincipalAngles, AgreeWithTheTwin) {
  Random random(1);
  for (const auto& [p, q, width] : {std::array<std::int64_t, 3>{4, 3, 12}, {3, 4, 12}, {1, 1, 2}, {32, 32, 384}}) {
    Tensor<float, 2> a = random.normal_tensor<2>({p, width}), b = random.normal_tensor<2>({q, width});
    for (std::int64_t d = 0; d < width; ++d) b(0, d) = a(0, d) + b(0, d) / 256;  // one small angle
    const std::vector<double> angles = principal_angles(a, b);
    const Tensor<double, 2> wide_a = test::converted<double>(a), wide_b = test::converted<double>(b);
    const std::vector<double> cosines =
        p < q ? reference::cosines_of_angles(wide_b, wide_a) : reference::cosines_of_angles(wide_a, wide_b);
    ASSERT_EQ(angles.size(), static_cast<std::size_t>(std::min(p, q)));
    for (std::size_t n = 0; n < angles.size(); ++n) EXPECT_NEAR(angles[n], std::acos(cosines[n]), kTolerance);
  }
}

TEST(PrincipalAngles, AreRightWhereTheyAreKnown) {
  // The planes (x, y) and (x, cos 2⁻²⁰ · y + sin 2⁻²⁰ · z): an acos would see no angle at all.
  Tensor<float, 2> a({2, 4}), b({2, 4});
  a(0, 0) = a(1, 1) = b(0, 0) = b(1, 1) = 1;
  b(1, 2) = 0x1p-20f;
  std::vector<double> angles = principal_angles(a, b);
  EXPECT_EQ(angles[0], 0.0);
  EXPECT_NEAR(angles[1], 0x1p-20, 1e-15);
  // At right angles; and rows that depend on others span nothing.
  Tensor<float, 2> c({3, 4});
  c(0, 3) = 2;
  c(1, 3) = -6;
  c(2, 2) = 1e-3f;
  angles = principal_angles(a, c);
  ASSERT_EQ(angles.size(), 2u);
  EXPECT_NEAR(angles[0], std::numbers::pi / 2, 1e-12);
  EXPECT_TRUE(principal_angles(a, Tensor<float, 2>({2, 4})).empty());
}

TEST(PrincipalAngles, DoNotSeeRotationAndScaleWithinTheSpaces) {
  Random random(2);
  const Tensor<float, 2> a = random.normal_tensor<2>({3, 9}), b = random.normal_tensor<2>({3, 9});
  Tensor<float, 2> mixed({3, 9});
  for (std::int64_t d = 0; d < 9; ++d) {
    mixed(0, d) = 4 * a(2, d);
    mixed(1, d) = -0.5f * a(0, d);
    mixed(2, d) = 0.25f * a(1, d);
  }
  const std::vector<double> before = principal_angles(a, b), after = principal_angles(mixed, b);
  for (std::size_t n = 0; n < 3; ++n) EXPECT_NEAR(after[n], before[n], kTolerance);
}

// x Q for an orthogonal Q [E, E].
Tensor<float, 2> rotated(const Tensor<float, 2>& x, const Tensor<double, 2>& q) {
  Tensor<float, 2> result({x.shape()[0], q.shape()[1]});
  for (std::int64_t i = 0; i < x.shape()[0]; ++i) {
    for (std::int64_t d = 0; d < q.shape()[1]; ++d) {
      double sum = 0;
      for (std::int64_t e = 0; e < x.shape()[1]; ++e) sum += static_cast<double>(x(i, e)) * q(e, d);
      result(i, d) = static_cast<float>(sum);
    }
  }
  return result;
}

// Rotating the whole of space turns both; mixing the rows of a space by whatever has an inverse leaves it as it is.
// float32 rounds what was rotated at 2⁻²⁴ of a row's length, and angles follow by as much over the least singular
// value.
TEST(PrincipalAngles, DoNotSeeACommonRotationNorAnotherBasis) {
  Random random(8);
  for (const auto& [p, q, width] : {std::array<std::int64_t, 3>{3, 3, 9}, {1, 4, 6}, {16, 16, 128}}) {
    const Tensor<float, 2> a = random.normal_tensor<2>({p, width}), b = random.normal_tensor<2>({q, width});
    const Tensor<double, 2> turn =
        reference::gram_schmidt(test::converted<double>(random.normal_tensor<2>({width, width})));
    const Tensor<double, 2> basis = reference::gram_schmidt(test::converted<double>(random.normal_tensor<2>({p, p})));
    Tensor<float, 2> mixed({p, width});
    for (std::int64_t i = 0; i < p; ++i) {
      for (std::int64_t d = 0; d < width; ++d) {
        double sum = 0;
        for (std::int64_t j = 0; j < p; ++j) sum += basis(i, j) * static_cast<double>(a(j, d));
        mixed(i, d) = static_cast<float>(-3 * sum);
      }
    }
    const std::vector<double> before = principal_angles(a, b);
    const std::vector<double> turned = principal_angles(rotated(a, turn), rotated(b, turn));
    const std::vector<double> same = principal_angles(mixed, b), other_way = principal_angles(b, a);
    for (std::size_t n = 0; n < before.size(); ++n) {
      EXPECT_NEAR(turned[n], before[n], 64 * 0x1p-24) << n << " of width " << width;
      EXPECT_NEAR(same[n], before[n], 64 * 0x1p-24) << n << " of width " << width;
      EXPECT_NEAR(other_way[n], before[n], kTolerance) << n << " of width " << width;
    }
  }
}

using DiversityTest = test::EachIsa;
HEADLIGHT_ON_EVERY_ISA(DiversityTest);

TEST_P(DiversityTest, OverlapIsTheMeanOfTheSquaredCosines) {
  Engine engine(options(2));
  Random random(3);
  Tensor<float, 2> weight = random.normal_tensor<2>({4 * 6, 40});
  for (std::int64_t i = 0; i < 6; ++i) {
    for (std::int64_t d = 0; d < 40; ++d) weight(6 + i, d) = 3 * weight(5 - i, d);  // head 1 spans what head 0 does
    for (std::int64_t d = 0; d < 40; ++d) weight(18 + i, d) = 0;
  }
  const std::vector<Measure> overlaps = subspace_overlaps(engine, weight, 4);
  ASSERT_EQ(overlaps.size(), 16u);
  for (std::size_t a = 0; a < 3; ++a) {
    for (std::size_t b = 0; b < 3; ++b) {
      double mean = 0;
      for (const double angle : principal_angles(head_of(weight, 6, static_cast<std::int64_t>(a)),
                                                 head_of(weight, 6, static_cast<std::int64_t>(b)))) {
        mean += std::cos(angle) * std::cos(angle) / 6;
      }
      EXPECT_NEAR(overlaps[a * 4 + b].value(), mean, 1e-6) << a << ", " << b;
    }
  }
  EXPECT_NEAR(overlaps[1].value(), 1.0, 1e-6);
  EXPECT_EQ(overlaps[3].why(), Undefined::zero);
  EXPECT_EQ(test::refusal([&] { (void)subspace_overlaps(engine, weight, 5); }),
            "subspace_overlaps: weight has 24 rows, expected a multiple of the 5 heads");
}

TEST(Penalties, AgreeWithTheTwins) {
  Random random(4);
  const Tensor<float, 2> weight = random.normal_tensor<2>({12, 7});
  const Tensor<double, 2> wide = test::converted<double>(weight);
  EXPECT_NEAR(orthogonality_penalty(weight, 3).value(), reference::orthogonality_penalty({wide.data(), {3, 28}}),
              kTolerance);
  const Tensor<float, 3> x = test::converted<float>(test::head_outputs(random, 9, 3, 5));
  EXPECT_NEAR(output_disagreement(x).value(),
              reference::cosine_disagreement(test::heads_as_rows(test::converted<double>(x)).view()), kTolerance);
  const Tensor<float, 3> p = test::converted<float>(test::head_weights(random, 3, 11));
  const Tensor<double, 3> wide_p = test::converted<double>(p);
  EXPECT_NEAR(position_disagreement(p).value(), reference::position_disagreement({wide_p.data(), {3, 121}}, 11),
              kTolerance);
}

TEST(Penalties, GoFromOneEndToTheOther) {
  Tensor<float, 2> apart({4, 4}), same({4, 4});
  for (std::int64_t h = 0; h < 4; ++h) {
    apart(h, h) = static_cast<float>(h + 1);
    same(h, 2) = h % 2 == 0 ? 3.0f : -1.0f;
  }
  EXPECT_NEAR(orthogonality_penalty(apart, 4).value(), 0.0, kTolerance);
  EXPECT_NEAR(orthogonality_penalty(same, 4).value(), 12.0, kTolerance);
  EXPECT_EQ(orthogonality_penalty(Tensor<float, 2>({4, 4}), 2).why(), Undefined::zero);
  EXPECT_NEAR(output_disagreement(View<const float, 3>(apart.data(), {1, 4, 4})).value(), -0.25, kTolerance);
  EXPECT_EQ(output_disagreement(View<const float, 3>(apart.data(), {4, 4, 1})).value(), -0.25);
  EXPECT_EQ(output_disagreement(Tensor<float, 3>({2, 3, 4})).why(), Undefined::zero);
  EXPECT_EQ(output_disagreement(Tensor<float, 3>({0, 3, 4})).why(), Undefined::no_rows);
  EXPECT_EQ(position_disagreement(Tensor<float, 3>({2, 0, 0})).why(), Undefined::no_rows);
}

TEST(Importance, IsTheMeanOverSamplesOfWhatScalingAHeadChanges) {
  Random random(5);
  const Tensor<float, 3> x = test::converted<float>(test::head_outputs(random, 12, 3, 5));
  const Tensor<float, 3> g = random.normal_tensor<3>({12, 3, 5});
  const Tensor<double, 3> wide_x = test::converted<double>(x), wide_g = test::converted<double>(g);
  const std::vector<std::int64_t> offsets = {0, 5, 5, 12};
  HeadImportance importance(3);
  EXPECT_EQ(importance.importance(0).why(), Undefined::no_rows);
  importance.add(x, g, offsets);
  EXPECT_EQ(importance.samples(), 3);
  for (std::int64_t h = 0; h < 3; ++h) {
    EXPECT_NEAR(importance.importance(h).value(),
                reference::importance(test::head_of_outputs(wide_x, h), test::head_of_outputs(wide_g, h), offsets),
                kTolerance);
  }
  HeadImportance whole(3);
  whole.add(x, g);
  EXPECT_EQ(whole.samples(), 1);
  const std::vector<std::int64_t> wrong = {0, 7, 3, 12};
  EXPECT_NE(test::refusal([&] { importance.add(x, g, wrong); }), "");
  EXPECT_NE(test::refusal([&] { importance.add(x, Tensor<float, 3>({12, 3, 4})); }), "");
  EXPECT_NE(test::refusal([&] { (void)importance.importance(3); }), "");
}

}  // namespace headlight::analysis::diversity_test
