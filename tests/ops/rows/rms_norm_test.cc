#include "headlight/normalization.h"
#include "reference/normalization.h"
#include "support/guarded_matrix.h"
#include "support/guarded_rows.h"
#include "support/isas.h"
#include "support/quick.h"
#include "support/row_yardsticks.h"

namespace headlight::test::rms_norm_test {

using RmsNormTest = EachIsa;
HEADLIGHT_ON_EVERY_ISA(RmsNormTest);

constexpr float kEpsilon = 1e-5f;

template <class Scalar>
View<const Scalar, 1> vector_if(bool is_given, const Tensor<Scalar, 2>& row) {
  return is_given ? View<const Scalar, 1>(row.data(), {row.shape()[1]}) : View<const Scalar, 1>();
}
std::span<const float> list_if(bool is_given, const GuardedRows& row) {
  return is_given ? std::span<const float>(row.view().data, static_cast<std::size_t>(row.view().extent(1)))
                  : std::span<const float>();
}

// Bits of a choice: a weight, one plus it, something added.
void check(Engine& engine, Random& random, std::int64_t columns, int choice) {
  SCOPED_TRACE(testing::Message() << columns << " columns, choice " << choice);
  const bool has_weight = (choice & 1) != 0, one_plus = (choice & 2) != 0, has_added = (choice & 4) != 0;
  const Against side = choice % 3 == 0 ? Against::front : Against::back;
  constexpr std::int64_t kRows = 3;
  const std::int64_t gap = random.integer(0, 5);
  GuardedRows x(kRows, columns, gap, side), added(kRows, columns, gap, side), weight(1, columns, 0, side);
  x.fill(random);
  added.fill(random);
  weight.fill(random);
  const GuardedRows y(kRows, columns, gap, side);

  Tensor<double, 2> truth(x.view().shape);
  Tensor<float, 2> plain(x.view().shape);
  const auto twin = [&]<class Scalar>(Tensor<Scalar, 2>& out) {
    const Tensor<Scalar, 2> x_in = x.to<Scalar>(), added_in = added.to<Scalar>(), weight_in = weight.to<Scalar>();
    reference::rms_norm<Scalar>(x_in, vector_if(has_weight, weight_in), one_plus, static_cast<Scalar>(kEpsilon),
                                has_added ? added_in.view() : View<const Scalar, 2>(), out);
  };
  twin(truth);
  twin(plain);

  RmsNormOptions options = {.weight = list_if(has_weight, weight), .one_plus_weight = one_plus, .epsilon = kEpsilon};
  if (has_added) options.added = added.const_view();
  rms_norm(engine, x.const_view(), y.view(), options);
  EXPECT_TRUE(at_most_twice_the_plain_error(y.view(), plain.view(), truth.view()));
  EXPECT_TRUE(y.gaps_are_untouched());

  if (has_added) {
    rms_norm(engine, x.const_view(), added.view(), options);
    EXPECT_TRUE(same_bits(added.view(), y.view())) << "in place of what is added";
    return;
  }
  rms_norm(engine, x.const_view(), x.view(), options);
  EXPECT_TRUE(same_bits(x.view(), y.view())) << "in place";
}

TEST_P(RmsNormTest, AgreesWithTheTwinForEveryOptionOnRaggedRows) {
  Engine engine(options());
  Random random(1);
  for (const std::int64_t columns : kRowLengths) {
    for (int choice = 0; choice < 8; ++choice) check(engine, random, columns, choice);
  }
}

// Of 16 bits: the bits of the same call over the widened tensors, rounded once.
TEST_P(RmsNormTest, RoundsOnceInEveryType) {
  Engine engine(options());
  Random random(2);
  for (const NumberType of_x : kStoredTypes) {
    for (const NumberType of_y : kStoredTypes) {
      for (const std::int64_t columns : kRowLengths) {
        SCOPED_TRACE(testing::Message() << name(of_x) << " to " << name(of_y) << ", " << columns);
        const GuardedMatrix x(of_x, 3, columns, 1, Against::back, random),
            y(of_y, 3, columns, 2, Against::back, random);
        const GuardedMatrix added(of_y, 3, columns, 3, Against::front, random);
        const Tensor<float, 2> x_floats = x.to(), added_floats = added.to();
        Tensor<float, 2> expected(x_floats.shape());
        rms_norm(engine, x_floats, expected, {.added = added_floats});
        rms_norm(engine, x.const_view(), y.view(), {.added = added.const_view()});
        EXPECT_TRUE(y.holds(expected));
        rms_norm(engine, x.const_view(), added.view(), {.added = added.const_view()});
        EXPECT_TRUE(added.holds(expected)) << "in place of what is added";
      }
    }
  }
}

TEST_P(RmsNormTest, SurvivesRowsOfZerosAndKeepsNaNInItsRow) {
  Engine engine(options());
  for (const std::int64_t columns : kRowLengths) {
    if (columns == 0) continue;
    Tensor<float, 2> x({3, columns});
    x(1, columns - 1) = std::nanf("");
    rms_norm(engine, x.view(), x.view());
    for (std::int64_t e = 0; e < columns; ++e) {
      EXPECT_EQ(x(0, e), 0.0f);
      EXPECT_TRUE(std::isnan(x(1, e)));
      EXPECT_EQ(x(2, e), 0.0f);
    }
  }
}

TEST_P(RmsNormTest, GivesTheSameBitsOnAnyNumberOfThreadsAndAlone) {
  Random random(3);
  const Tensor<float, 2> x = random.normal_tensor<2>({900, 387}, 3.0f);
  Tensor<float, 2> once(x.shape());
  Engine one(options(1));
  rms_norm(one, x.view(), once.view());
  for (const int threads : more_threads()) {
    Engine engine(options(threads));
    Tensor<float, 2> y(x.shape());
    rms_norm(engine, x.view(), y.view());
    EXPECT_TRUE(same_bits(y.view(), once.view())) << threads << " threads";
  }
  Tensor<float, 2> alone({1, 387});
  rms_norm(one, View<const float, 2>(x.data() + 500 * 387, {1, 387}), alone.view());
  EXPECT_TRUE(same_bits(alone.view(), View<float, 2>(once.data() + 500 * 387, {1, 387})));
}

// Bits of a choice: a weight, one plus it, its sums, a residual.
void check_backward(Engine& engine, Random& random, std::int64_t columns, int choice) {
  SCOPED_TRACE(testing::Message() << columns << " columns, choice " << choice);
  const bool has_weight = (choice & 1) != 0, one_plus = (choice & 2) != 0;
  const bool has_sums = (choice & 4) != 0, has_residual = (choice & 8) != 0;
  const Against side = choice % 3 == 0 ? Against::front : Against::back;
  constexpr std::int64_t kRows = 37;
  const std::int64_t gap = random.integer(0, 5);
  GuardedRows x(kRows, columns, gap, side), dy(kRows, columns, gap, side), residual(kRows, columns, gap, side);
  GuardedRows weight(1, columns, 0, side), sums(1, columns, 0, side);
  for (GuardedRows* each : {&x, &dy, &residual, &weight, &sums}) each->fill(random);
  const GuardedRows out(kRows, columns, gap, side);

  const auto twin = [&]<class Scalar>(Tensor<Scalar, 2>& to, Tensor<Scalar, 2>& of_weight) {
    const Tensor<Scalar, 2> by = weight.to<Scalar>(), added = residual.to<Scalar>();
    reference::rms_norm_backward<Scalar>(x.to<Scalar>(), dy.to<Scalar>(), vector_if(has_weight, by), one_plus,
                                         static_cast<Scalar>(kEpsilon), to,
                                         has_sums ? View<Scalar, 1>(of_weight.data(), {columns}) : View<Scalar, 1>());
    for (std::int64_t n = 0; has_residual && n < to.size(); ++n) to.data()[n] += added.data()[n];
  };
  Tensor<double, 2> truth({kRows, columns}), true_sums = sums.to<double>();
  Tensor<float, 2> plain({kRows, columns}), plain_sums = sums.to<float>();
  twin(truth, true_sums);
  twin(plain, plain_sums);

  const RmsNormOptions options = {
      .weight = list_if(has_weight, weight), .one_plus_weight = one_plus, .epsilon = kEpsilon};
  RmsNormGradients gradients{.x = out.view()};
  if (has_residual) gradients.residual = residual.const_view();
  if (has_sums) gradients.weight = {sums.view().data, static_cast<std::size_t>(columns)};
  rms_norm_backward(engine, x.const_view(), dy.const_view(), gradients, options);
  Tensor<double, 2> sizes({kRows, columns});
  const Tensor<double, 2> by = weight.to<double>(), added = residual.to<double>();
  yardsticks::rms_norm_backward(x.to<double>(), dy.to<double>(), vector_if(has_weight, by), one_plus, kEpsilon, sizes,
                                {});
  for (std::int64_t n = 0; has_residual && n < sizes.size(); ++n) sizes.data()[n] += std::abs(added.data()[n]);
  EXPECT_TRUE(at_most_twice_the_plain_error(out.view(), plain.view(), truth.view(), sizes.view()));
  EXPECT_TRUE(at_most_twice_the_plain_error(sums.view(), plain_sums.view(), true_sums.view()));
  EXPECT_TRUE(out.gaps_are_untouched());
  gradients = {.x = dy.view(), .residual = gradients.residual};
  rms_norm_backward(engine, x.const_view(), dy.const_view(), gradients, options);
  EXPECT_TRUE(same_bits(dy.view(), out.view())) << "in place";
}

TEST_P(RmsNormTest, GradientsAgreeWithTheTwin) {
  Engine engine(options());
  Random random(4);
  for (const std::int64_t columns : kRowLengths) {
    for (int choice = 0; choice < 16; ++choice) check_backward(engine, random, columns, choice);
  }
}

TEST_P(RmsNormTest, GradientsOfEveryTypeAreRoundedOnce) {
  Engine engine(options());
  Random random(5);
  for (const NumberType type : kStoredTypes) {
    for (const std::int64_t columns : kRowLengths) {
      SCOPED_TRACE(testing::Message() << name(type) << ", " << columns);
      const GuardedMatrix x(type, 20, columns, 1, Against::back, random),
          dy(type, 20, columns, 2, Against::back, random);
      const Tensor<float, 2> x_floats = x.to(), dy_floats = dy.to();
      Tensor<float, 2> expected(x_floats.shape());
      std::vector<float> sums(static_cast<std::size_t>(columns)), expected_sums(sums);
      rms_norm_backward(engine, x_floats, dy_floats, {.x = expected, .weight = expected_sums});
      rms_norm_backward(engine, x.const_view(), dy.const_view(), {.x = x.view(), .weight = sums});
      EXPECT_TRUE(x.holds(expected)) << "in place of x";
      EXPECT_EQ(sums, expected_sums);
    }
  }
}

// As PyTorch's.
TEST_P(RmsNormTest, WithoutAnEpsilonARowOfZerosIsNaN) {
  Engine engine(options());
  Tensor<float, 2> x({2, 20}), y({2, 20});
  for (std::int64_t e = 0; e < 20; ++e) x(0, e) = 0.0f, x(1, e) = static_cast<float>(e);
  rms_norm(engine, x.view(), y.view(), {.epsilon = 0.0f});
  for (std::int64_t e = 0; e < 20; ++e) {
    EXPECT_TRUE(std::isnan(y(0, e)));
    EXPECT_TRUE(std::isfinite(y(1, e)));
  }
}

TEST(RmsNormArguments, AreNamedWhenTheyAreWrong) {
  Engine engine;
  Tensor<float, 2> x({4, 6});
  const std::vector<float> five(5);
  EXPECT_EQ(refusal([&] { rms_norm(engine, x.view(), x.view(), {.weight = five}); }),
            "rms_norm: weight has shape [5], expected [6] ([E], or empty)");
  EXPECT_EQ(refusal([&] {
              rms_norm(engine, x.view(), x.view(), {.added = View<const float, 2>(x.data(), {4, 5})});
            }),
            "rms_norm: added has shape [4, 5], expected [4, 6] (the shape of x)");
  EXPECT_EQ(refusal([&] { rms_norm(engine, x.view(), x.view(), {.epsilon = -1.0f}); }),
            "rms_norm: epsilon is -1.000000, expected a finite number ≥ 0");
  EXPECT_EQ(refusal([&] {
              rms_norm(engine, x.view(), View<float, 2>(x.data() + 1, {4, 5}));
            }),
            "rms_norm: y has shape [4, 5], expected [4, 6] (the shape of x)");
  EXPECT_EQ(refusal([&] {
              rms_norm(engine, View<const float, 2>(x.data(), {2, 6}), View<float, 2>(x.data() + 3, {2, 6}));
            }),
            "rms_norm: y overlaps x in memory");
  EXPECT_EQ(refusal([&] {
              rms_norm_backward(engine, x.view(), View<const float, 2>(x.data(), {4, 5}), {});
            }),
            "rms_norm_backward: y_gradient has shape [4, 5], expected [4, 6] (the shape of x)");
  std::vector<float> sums(5);
  EXPECT_EQ(refusal([&] { rms_norm_backward(engine, x.view(), x.view(), {.weight = sums}); }),
            "rms_norm_backward: weight's gradient has shape [5], expected [6] ([E], or empty)");
}

}  // namespace headlight::test::rms_norm_test
