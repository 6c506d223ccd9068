#include "headlight/head_rows.h"

#include <cmath>
#include <iterator>

#include "headlight/normalization.h"
#include "ops/rows/head_rows_case.h"
#include "reference/rotary.h"
#include "support/guarded_matrix.h"
#include "support/isas.h"
#include "support/quick.h"
#include "support/row_yardsticks.h"

namespace headlight::test::head_rows_test {

using namespace head_rows_case;
using HeadRowsTest = EachIsa;
HEADLIGHT_ON_EVERY_ISA(HeadRowsTest);

// What errors of head_rows() are measured by.
Tensor<double, 3> sizes_of_call(const Numbers& in) {
  Tensor<double, 3> sizes = heads_of(in.x.to<double>(), in.c.heads);
  in.with_twin<double>([&](reference::HeadRows<double> options) {
    const View<double, 2> rows(sizes.data(), {kRows * in.c.heads, in.c.head_dim});
    if (in.c.norm == NormKind::layer) {
      yardsticks::layer_norm(rows, options.weight, options.bias, options.epsilon, rows);
    } else {
      options.cosines_and_sines = {};
      const Tensor<double, 3> x = heads_of(in.x.to<double>(), in.c.heads);
      reference::head_rows<double>(x, options, sizes);
    }
  });
  return turned_sizes(sizes, in);
}

TEST_P(HeadRowsTest, AgreeWithTheTwinInEveryShapeAndOption) {
  Engine engine(options());
  Random random(1);
  for_cases(random, [&](const Case& made) {
    const Numbers in(random, made);
    Tensor<double, 3> truth({kRows, made.heads, made.head_dim});
    Tensor<float, 3> plain(truth.shape());
    const auto twin = [&]<class Scalar>(Tensor<Scalar, 3>& out) {
      in.with_twin<Scalar>([&](const reference::HeadRows<Scalar>& options) {
        reference::head_rows<Scalar>(heads_of(in.x.to<Scalar>(), made.heads), options, out);
      });
    };
    twin(truth);
    twin(plain);
    const View<float, 3> x = heads_of(in.x.view(), made.heads), y = heads_of(in.y.view(), made.heads);
    head_rows(engine, x, y, in.options());
    EXPECT_TRUE(at_most_twice_the_plain_error(y, plain.view(), truth.view(), sizes_of_call(in).view()));
    EXPECT_TRUE(in.y.gaps_are_untouched());
    head_rows(engine, x, x, in.options());
    EXPECT_TRUE(same_bits(x, y)) << "in place";
  });
}

// Which is what it says of itself: the same arithmetic on rows of D numbers.
TEST_P(HeadRowsTest, NormaliseWithTheBitsOfTheNormsOfRows) {
  Engine engine(options());
  Random random(2);
  for (const std::int64_t head_dim : {1, 7, 64, 130}) {
    const Numbers in(random,
                     {.heads = 3, .head_dim = head_dim, .norm = NormKind::rms, .weight = true, .one_plus = true});
    const Tensor<float, 2> x = in.x.to<float>();
    Tensor<float, 2> expected(x.shape());
    const View<const float, 2> rows(x.data(), {kRows * 3, head_dim});
    const View<float, 2> to(expected.data(), {kRows * 3, head_dim});
    const View<float, 3> y = heads_of(in.y.view(), 3);
    HeadRowsOptions asked = in.options();
    rms_norm(engine, rows, to, {.weight = asked.weight, .one_plus_weight = true, .epsilon = asked.epsilon});
    head_rows(engine, heads_of(in.x.view(), 3), y, asked);
    EXPECT_TRUE(same_bits(in.y.view(), expected.view())) << "rms, " << head_dim;
    asked.norm = NormKind::layer;
    asked.one_plus_weight = false;
    asked.bias = {in.bias.view().data, static_cast<std::size_t>(head_dim)};
    layer_norm(engine, rows, to, {.weight = asked.weight, .bias = asked.bias, .epsilon = asked.epsilon});
    head_rows(engine, heads_of(in.x.view(), 3), y, asked);
    EXPECT_TRUE(same_bits(in.y.view(), expected.view())) << "layer, " << head_dim;
  }
}

TEST_P(HeadRowsTest, RotateThereAndBackAsTheTwin) {
  Engine engine(options());
  Random random(3);
  for_cases(random, [&](const Case& made) {
    if (made.norm != NormKind::none || made.dims == 0) return;
    const Numbers in(random, made);
    const Rotation rotation = in.options().rotation;
    const View<float, 3> x = heads_of(in.x.view(), made.heads), y = heads_of(in.y.view(), made.heads);
    for (const bool inverse : {false, true}) {
      Tensor<double, 3> truth(x.shape);
      reference::rotate<double>(heads_of(in.x.to<double>(), made.heads).view(), in.angles.to<double>(), made.pairing,
                                inverse, truth.view());
      rotate(engine, rotation, x, y, inverse);
      // Two products and a sum, of numbers and angles that are normal here.
      for_each_row(y, truth.view(), [&](auto at, std::int64_t, std::int64_t) {
        for (std::int64_t d = 0; d < made.head_dim; ++d) {
          EXPECT_NEAR(y(at[0], at[1], d), truth(at[0], at[1], d), d < made.dims ? 3 * kUnitRoundoff * 32 : 0);
        }
      });
      EXPECT_TRUE(in.y.gaps_are_untouched());
    }
    rotate(engine, rotation, x, x, true);
    EXPECT_TRUE(same_bits(x, y)) << "in place";
  });
}

TEST_P(HeadRowsTest, RoundOnceInEveryType) {
  Engine engine(options());
  Random random(4);
  for (const NumberType of_x : kStoredTypes) {
    for (const NumberType of_y : kStoredTypes) {
      for (const std::int64_t head_dim : {6, 64}) {
        SCOPED_TRACE(testing::Message() << name(of_x) << " to " << name(of_y) << ", " << head_dim);
        const std::int64_t heads = head_dim == 64 ? 40 : 3;  // rows longer than a buffer, too
        const Numbers in(random, {.heads = 1, .head_dim = head_dim, .dims = 4, .norm = NormKind::rms, .weight = true});
        const GuardedMatrix x(of_x, kRows, heads * head_dim, 1, Against::back, random);
        const GuardedMatrix y(of_y, kRows, heads * head_dim, 2, Against::front, random);
        const Tensor<float, 3> floats = heads_of(x.to(), heads);
        Tensor<float, 2> expected({kRows, heads * head_dim});
        head_rows(engine, floats, heads_of(expected.view(), heads), in.options());
        head_rows(engine, heads_of(x.view(), heads), heads_of(y.view(), heads), in.options());
        EXPECT_TRUE(y.holds(expected));
        head_rows(engine, heads_of(x.view(), heads), heads_of(x.view(), heads), in.options());
        EXPECT_TRUE(x.holds(expected)) << "in place";
      }
    }
  }
}

// Subnormal ones and NaN, too, with every feature and without.
TEST_P(HeadRowsTest, RoundWhatIsNotNormal) {
  Random random(6);
  for (const Instructions& instructions : available_instructions()) {
    if (instructions.isa != GetParam()) continue;
    Engine engine(instructions.options(1));
    for (const std::int64_t dims : {0, 64}) {
      Numbers in(random, {.heads = 2, .head_dim = 64, .dims = dims});
      const View<float, 2> x = in.x.view(), angles = in.angles.view();
      for (std::int64_t n = 0; n < angles.extent(0) * dims; ++n) {
        angles(n / dims, n % dims) = n % dims < 32 ? 1.0f : 0.0f;  // which turn nothing
      }
      const float rare[] = {0x1.8p-130f,   -0x1.01p-127f,    0x1p-149f,   -0.0f,
                            std::nanf(""), __builtin_inff(), -0x1.ffp127f};
      for (std::size_t d = 0; d < std::size(rare); ++d) x(1, 64 + static_cast<std::int64_t>(d) * 7) = rare[d];
      const GuardedMatrix y(NumberType::bfloat16, kRows, 128, 3, Against::back, random);
      Tensor<float, 2> expected({kRows, 128});
      head_rows(engine, heads_of(x, 2), heads_of(expected.view(), 2), in.options());
      head_rows(engine, heads_of(x, 2), heads_of(y.view(), 2), in.options());
      EXPECT_TRUE(y.holds(expected)) << name(instructions) << ", " << dims;
    }
  }
}

TEST_P(HeadRowsTest, KeepNaNInItsHead) {
  Engine engine(options());
  for (const NormKind norm : {NormKind::layer, NormKind::rms}) {
    Tensor<float, 3> x({2, 3, 20});
    Tensor<float, 2> angles({2, 20});
    for (float& element : x) element = 2;
    for (float& angle : angles) angle = 0.5f;
    x(0, 1, 19) = std::nanf("");
    head_rows(engine, x, x, {.norm = norm, .rotation = {angles}});
    for (std::int64_t n = 0; n < 2; ++n) {
      for (std::int64_t h = 0; h < 3; ++h) {
        for (std::int64_t d = 0; d < 20; ++d) EXPECT_EQ(std::isnan(x(n, h, d)), n == 0 && h == 1);
      }
    }
  }
}

TEST_P(HeadRowsTest, GiveTheSameBitsOnAnyNumberOfThreadsAndAlone) {
  Random random(5);
  const Tensor<float, 3> x = random.normal_tensor<3>({900, 5, 34});
  const Tensor<float, 2> angles = random.normal_tensor<2>({900, 30});
  for (const RotaryPairing pairing : {RotaryPairing::halves, RotaryPairing::interleaved}) {
    HeadRowsOptions asked = {.norm = NormKind::rms, .rotation = {angles, pairing}};
    Tensor<float, 3> once(x.shape());
    Engine one(options(1));
    head_rows(one, x, once, asked);
    for (const int threads : more_threads()) {
      Engine engine(options(threads));
      Tensor<float, 3> y(x.shape());
      head_rows(engine, x, y, asked);
      EXPECT_TRUE(same_bits(y, once)) << threads << " threads";
    }
    Tensor<float, 3> alone({1, 5, 34});
    asked.rotation.cosines_and_sines = {&angles(500, 0), {1, 30}};
    head_rows(one, View<const float, 3>(&x(500, 0, 0), {1, 5, 34}), alone, asked);
    EXPECT_TRUE(same_bits(alone.view(), View<float, 3>(&once(500, 0, 0), {1, 5, 34})));
  }
}

TEST(HeadRowsArguments, AreNamedWhenTheyAreWrong) {
  Engine engine({.threads = 1});
  Tensor<float, 3> x({4, 2, 6}), y({4, 2, 6});
  Tensor<float, 2> angles({4, 6});
  const std::vector<float> five(5), six(6);
  const auto refused = [&](const HeadRowsOptions& options) {
    return refusal([&] { head_rows(engine, x, y, options); });
  };
  EXPECT_EQ(refused({.rotation = {angles}}), "");
  EXPECT_EQ(refused({.norm = NormKind::rms, .weight = five}),
            "head_rows: weight has shape [5], expected [6] ([D], or empty)");
  EXPECT_EQ(refused({.norm = NormKind::layer, .bias = five}),
            "head_rows: bias has shape [5], expected [6] ([D], or empty)");
  EXPECT_EQ(refused({.weight = six}), "head_rows: weight is given, expected none without a norm");
  EXPECT_EQ(refused({.norm = NormKind::rms, .bias = six}),
            "head_rows: bias is given, expected none but with NormKind::layer");
  EXPECT_EQ(refused({.norm = NormKind::layer, .one_plus_weight = true}),
            "head_rows: one_plus_weight is true, expected false but with NormKind::rms");
  EXPECT_EQ(refused({.norm = static_cast<NormKind>(3)}), "head_rows: norm is 3, expected one of the enum");
  EXPECT_EQ(refused({.norm = NormKind::rms, .epsilon = -1}),
            "head_rows: epsilon is -1.000000, expected a finite number ≥ 0");
  EXPECT_EQ(refused({.rotation = {View<const float, 2>(angles.data(), {3, 6})}}),
            "head_rows: cosines_and_sines has shape [3, 6], expected [4, any] ([N, dims])");
  EXPECT_EQ(refused({.rotation = {View<const float, 2>(angles.data(), {4, 5})}}),
            "head_rows: cosines_and_sines has 5 columns, expected an even number up to 6");
  EXPECT_EQ(refused({.rotation = {angles, static_cast<RotaryPairing>(2)}}),
            "head_rows: pairing is 2, expected one of the enum");
  EXPECT_EQ(refused({.rotation = {View<const float, 2>(y.data(), {4, 6})}}),
            "head_rows: y overlaps cosines_and_sines in memory");
  EXPECT_EQ(refusal([&] {
              head_rows(engine, x, View<float, 3>(y.data(), {4, 2, 5}), {});
            }),
            "head_rows: y has shape [4, 2, 5], expected [4, 2, 6] (the shape of x)");
  EXPECT_EQ(refusal([&] {
              rotate(engine, {angles}, View<const float, 3>(x.data(), {2, 2, 6}, {24, 12, 1}),
                     View<float, 3>(y.data(), {2, 2, 6}));
            }),
            "rotate: x's heads lie 12 numbers apart, expected 6, one behind the other");
  EXPECT_EQ(
      refusal([&] {
        rotate(engine, {angles}, View<const float, 3>(x.data(), {4, 1, 6}), View<float, 3>(x.data() + 3, {4, 1, 6}));
      }),
      "rotate: y overlaps x in memory");

  const auto refused_back = [&](const HeadRowsGradients& gradients, const HeadRowsOptions& options) {
    return refusal([&] { head_rows_backward(engine, x, y, gradients, options); });
  };
  std::vector<float> sums(6);
  EXPECT_EQ(refused_back({.weight = sums}, {}),
            "head_rows_backward: weight's gradient is given, expected none without a norm");
  EXPECT_EQ(refused_back({.bias = sums}, {.norm = NormKind::rms}),
            "head_rows_backward: bias's gradient is given, expected none but with NormKind::layer");
  EXPECT_EQ(refused_back({.x = View<float, 3>(x.data(), {4, 2, 5})}, {.norm = NormKind::rms}),
            "head_rows_backward: x's gradient has shape [4, 2, 5], expected [4, 2, 6] (the shape of y_gradient)");
  EXPECT_EQ(refused_back({.x = x}, {.rotation = {View<const float, 2>(x.data(), {4, 6})}}),
            "head_rows_backward: x's gradient overlaps cosines_and_sines in memory");
  EXPECT_EQ(refusal([&] { head_rows_backward(engine, {}, y, {.x = y}, {.norm = NormKind::rms}); }),
            "head_rows_backward: x is not given (a view without memory or shape)");
  EXPECT_EQ(refusal([&] { head_rows_backward(engine, {}, y, {.x = y}, {.rotation = {angles}}); }), "");
}

}  // namespace headlight::test::head_rows_test
