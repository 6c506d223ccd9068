
#include "headlight/normalization.h"
#include "reference/normalization.h"
#include "support/guarded_rows.h"
#include "support/isas.h"
#include "support/quick.h"

namespace headlight::test::layer_norm_test {

using LayerNormTest = EachIsa;
HEADLIGHT_ON_EVERY_ISA(LayerNormTest);

struct LayerNormCase {
  std::int64_t columns = 0;
  bool residual = false;
  bool weight = false;
  bool bias = false;
  float offset = 0;  // added to every element: a mean far from 0
  Against side = Against::back;
};

void check(Engine& engine, Random& random, const LayerNormCase& made) {
  SCOPED_TRACE(testing::Message() << made.columns << " columns, residual " << made.residual << ", weight "
                                  << made.weight << ", bias " << made.bias << ", offset " << made.offset);
  constexpr std::int64_t kRows = 3;
  constexpr float kEpsilon = 1e-5f;
  const std::int64_t gap = random.integer(0, 5);
  GuardedRows x(kRows, made.columns, gap, made.side);
  x.fill(random);
  for (std::int64_t n = 0; n < kRows; ++n) {
    for (std::int64_t e = 0; e < made.columns; ++e) x.view()(n, e) += made.offset;
  }
  GuardedRows residual(kRows, made.columns, gap, made.side);
  residual.fill(random);
  GuardedRows weight(1, made.columns, 0, made.side);
  weight.fill(random);
  GuardedRows bias(1, made.columns, 0, made.side);
  bias.fill(random);
  const GuardedRows y(kRows, made.columns, gap, made.side);

  const auto twin = [&]<class Scalar>(Tensor<Scalar, 2>& out) {
    const Tensor<Scalar, 2> x_in = x.to<Scalar>();
    const Tensor<Scalar, 2> residual_in = residual.to<Scalar>();
    const Tensor<Scalar, 2> weight_in = weight.to<Scalar>();
    const Tensor<Scalar, 2> bias_in = bias.to<Scalar>();
    const auto vector = [&](bool given, const Tensor<Scalar, 2>& from) {
      return given ? View<const Scalar, 1>(from.data(), {made.columns}) : View<const Scalar, 1>();
    };
    reference::layer_norm<Scalar>(x_in, made.residual ? residual_in.view() : View<const Scalar, 2>(),
                                  vector(made.weight, weight_in), vector(made.bias, bias_in),
                                  static_cast<Scalar>(kEpsilon), out);
  };
  Tensor<double, 2> truth(x.view().shape);
  Tensor<float, 2> plain(x.view().shape);
  twin(truth);
  twin(plain);

  const auto length = static_cast<std::size_t>(made.columns);
  LayerNormOptions options;
  options.epsilon = kEpsilon;
  if (made.weight) options.weight = {weight.view().data, length};
  if (made.bias) options.bias = {bias.view().data, length};
  if (made.residual) options.residual = residual.const_view();
  layer_norm(engine, x.const_view(), y.view(), options);
  EXPECT_TRUE(at_most_twice_the_plain_error(y.view(), plain.view(), truth.view()));
  EXPECT_TRUE(y.gaps_are_untouched());

  // In place of either input: the same bits.
  if (made.residual) {
    const GuardedRows kept(kRows, made.columns, gap, made.side);
    for (std::int64_t n = 0; n < kRows; ++n) {
      for (std::int64_t e = 0; e < made.columns; ++e) kept.view()(n, e) = residual.view()(n, e);
    }
    options.residual = kept.const_view();
    layer_norm(engine, x.const_view(), kept.view(), options);
    EXPECT_TRUE(same_bits(kept.view(), y.view()));
    options.residual = residual.const_view();
  }
  layer_norm(engine, x.const_view(), x.view(), options);
  EXPECT_TRUE(same_bits(x.view(), y.view()));
}

TEST_P(LayerNormTest, AgreesWithTheTwinForEveryOptionOnRaggedRows) {
  Engine engine(options());
  Random random(1);
  for (const std::int64_t columns : kRowLengths) {
    for (int choice = 0; choice < 16; ++choice) {
      check(engine, random,
            {.columns = columns,
             .residual = (choice & 1) != 0,
             .weight = (choice & 2) != 0,
             .bias = (choice & 4) != 0,
             .offset = (choice & 8) != 0 ? 50.0f : 0.0f,
             .side = choice % 3 == 0 ? Against::front : Against::back});
    }
  }
}

// The variance 0 gives the bias, and NaN stays in its row.
TEST_P(LayerNormTest, SurvivesConstantRowsAndKeepsNaNInItsRow) {
  Engine engine(options());
  for (const std::int64_t columns : kRowLengths) {
    if (columns == 0) continue;
    Tensor<float, 2> x({3, columns});
    for (float& element : x) element = 0.25f;
    x(1, columns - 1) = std::nanf("");
    layer_norm(engine, x.view(), x.view());
    for (std::int64_t e = 0; e < columns; ++e) {
      EXPECT_EQ(x(0, e), 0.0f);
      EXPECT_TRUE(std::isnan(x(1, e)));
      EXPECT_EQ(x(2, e), 0.0f);
    }
  }
}

TEST_P(LayerNormTest, GivesTheSameBitsOnAnyNumberOfThreadsAndAlone) {
  Random random(2);
  const Tensor<float, 2> x = random.normal_tensor<2>({700, 387}, 3.0f);
  Tensor<float, 2> once({700, 387});
  Engine one(options(1));
  layer_norm(one, x.view(), once.view());
  for (const int threads : more_threads()) {
    Engine engine(options(threads));
    Tensor<float, 2> y({700, 387});
    layer_norm(engine, x.view(), y.view());
    EXPECT_TRUE(same_bits(y.view(), once.view())) << threads << " threads";
  }
  Tensor<float, 2> alone({1, 387});
  layer_norm(one, {x.data() + 500 * 387, {1, 387}}, alone.view());
  EXPECT_TRUE(same_bits(alone.view(), View<float, 2>(once.data() + 500 * 387, {1, 387})));
}

// As PyTorch's.
TEST_P(LayerNormTest, WithoutAnEpsilonARowOfOneNumberIsNaN) {
  Engine engine(options());
  Tensor<float, 2> x({2, 20}), y({2, 20});
  for (std::int64_t e = 0; e < 20; ++e) x(0, e) = 3.0f, x(1, e) = static_cast<float>(e);
  layer_norm(engine, x.view(), y.view(), {.epsilon = 0.0f});
  for (std::int64_t e = 0; e < 20; ++e) {
    EXPECT_TRUE(std::isnan(y(0, e)));
    EXPECT_TRUE(std::isfinite(y(1, e)));
  }
}

TEST(LayerNormArguments, AreNamedWhenTheyAreWrong) {
  Engine engine;
  Tensor<float, 2> x({4, 6});
  const std::vector<float> five(5);
  EXPECT_EQ(refusal([&] { layer_norm(engine, x.view(), x.view(), {.weight = five}); }),
            "layer_norm: weight has shape [5], expected [6] ([E], or empty)");
  EXPECT_EQ(refusal([&] { layer_norm(engine, x.view(), x.view(), {.bias = five}); }),
            "layer_norm: bias has shape [5], expected [6] ([E], or empty)");
  const std::span<const float> none(five.data(), 0);
  EXPECT_EQ(refusal([&] { layer_norm(engine, x.view(), x.view(), {.weight = none, .bias = none}); }), "");
  EXPECT_EQ(refusal([&] {
              layer_norm(engine, x.view(), x.view(), {.residual = View<const float, 2>(x.data(), {4, 5})});
            }),
            "layer_norm: residual has shape [4, 5], expected [4, 6] (the shape of x)");
  EXPECT_EQ(refusal([&] { layer_norm(engine, x.view(), x.view(), {.epsilon = -1.0f}); }),
            "layer_norm: epsilon is -1.000000, expected a finite number ≥ 0");
  EXPECT_EQ(refusal([&] {
              layer_norm(engine, View<const float, 2>(x.data(), {2, 6}), View<float, 2>(x.data() + 3, {2, 6}));
            }),
            "layer_norm: y overlaps x in memory");
}

}  // namespace headlight::test::layer_norm_test
