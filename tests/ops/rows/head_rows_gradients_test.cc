// The way back through head_rows().
#include <vector>

#include "headlight/head_rows.h"
#include "ops/rows/head_rows_case.h"
#include "reference/rotary.h"
#include "support/guarded_matrix.h"
#include "support/isas.h"
#include "support/row_yardsticks.h"

namespace headlight::test::head_rows_gradients_test {

using namespace head_rows_case;
using HeadRowsGradientsTest = EachIsa;
HEADLIGHT_ON_EVERY_ISA(HeadRowsGradientsTest);

// What errors of gradients are measured by.
Tensor<double, 3> sizes_of_gradient(const Numbers& in, View<double, 1> weight_sizes, View<double, 1> bias_sizes) {
  const Tensor<double, 3> x = heads_of(in.x.to<double>(), in.c.heads);
  Tensor<double, 3> sizes = turned_sizes(heads_of(in.y_gradient.to<double>(), in.c.heads), in);
  in.with_twin<double>([&](const reference::HeadRows<double>& options) {
    const std::array<std::int64_t, 2> shape = {kRows * in.c.heads, in.c.head_dim};
    const View<const double, 2> from(x.data(), shape);
    const Tensor<double, 3> turned = turned_sizes(heads_of(in.y_gradient.to<double>(), in.c.heads), in);
    const View<const double, 2> by(turned.data(), shape);
    const View<double, 2> to(sizes.data(), shape);
    if (in.c.norm == NormKind::layer) {
      yardsticks::layer_norm_backward(from, by, options.weight, options.epsilon, to, weight_sizes, bias_sizes);
    } else if (in.c.norm == NormKind::rms) {
      yardsticks::rms_norm_backward(from, by, options.weight, options.one_plus_weight, options.epsilon, to,
                                    weight_sizes);
    }
  });
  return sizes;
}

TEST_P(HeadRowsGradientsTest, GradientsAgreeWithTheTwin) {
  Engine engine(options());
  Random random(6);
  for_cases(random, [&](const Case& made) {
    const Numbers in(random, made);
    const auto twin = [&]<class Scalar>(Tensor<Scalar, 3>& x, Tensor<Scalar, 1>& weight, Tensor<Scalar, 1>& bias) {
      in.with_twin<Scalar>([&](const reference::HeadRows<Scalar>& options) {
        reference::head_rows_backward<Scalar>(heads_of(in.x.to<Scalar>(), made.heads),
                                              heads_of(in.y_gradient.to<Scalar>(), made.heads), options, x, weight,
                                              bias);
      });
    };
    Tensor<double, 3> truth({kRows, made.heads, made.head_dim});
    Tensor<double, 1> true_weight({made.head_dim}), true_bias({made.head_dim});
    Tensor<float, 3> plain(truth.shape());
    Tensor<float, 1> plain_weight({made.head_dim}), plain_bias({made.head_dim});
    twin(truth, true_weight, true_bias);
    twin(plain, plain_weight, plain_bias);

    const View<float, 3> x = heads_of(in.x.view(), made.heads), y = heads_of(in.y.view(), made.heads);
    const View<float, 3> dy = heads_of(in.y_gradient.view(), made.heads);
    const GuardedRows of_weight(1, made.head_dim, 0, made.side), of_bias(1, made.head_dim, 0, made.side);
    HeadRowsGradients gradients = {.x = y};
    const auto list = [&](const GuardedRows& row) {
      return std::span<float>(row.view().data, static_cast<std::size_t>(made.head_dim));
    };
    if (made.norm != NormKind::none) gradients.weight = list(of_weight);
    if (made.norm == NormKind::layer) gradients.bias = list(of_bias);
    head_rows_backward(engine, x, dy, gradients, in.options());
    EXPECT_TRUE(in.y.gaps_are_untouched());
    Tensor<double, 1> weight_sizes({made.head_dim}), bias_sizes({made.head_dim});
    const Tensor<double, 3> sizes = sizes_of_gradient(in, weight_sizes, bias_sizes);
    EXPECT_TRUE(at_most_twice_the_plain_error(y, plain.view(), truth.view(), sizes.view()));
    const auto sums_agree = [&](const GuardedRows& sums, const Tensor<float, 1>& of_plain,
                                const Tensor<double, 1>& of_truth, const Tensor<double, 1>& of_sizes) {
      const View<float, 1> found(sums.view().data, {made.head_dim});
      return at_most_twice_the_plain_error(found, of_plain.view(), of_truth.view(), of_sizes.view());
    };
    if (made.norm != NormKind::none) {
      EXPECT_TRUE(sums_agree(of_weight, plain_weight, true_weight, weight_sizes));
    }
    if (made.norm == NormKind::layer) {
      EXPECT_TRUE(sums_agree(of_bias, plain_bias, true_bias, bias_sizes));
    }
    const HeadRowsOptions asked = in.options();
    head_rows_backward(engine, x, dy, {.x = dy}, asked);
    EXPECT_TRUE(same_bits(dy, y)) << "in place, without sums";
  });
}

TEST_P(HeadRowsGradientsTest, GradientsOfEveryTypeAreRoundedOnce) {
  Engine engine(options());
  Random random(7);
  for (const NumberType type : kStoredTypes) {
    for (const std::int64_t head_dim : {6, 64}) {
      SCOPED_TRACE(testing::Message() << name(type) << ", " << head_dim);
      const std::int64_t heads = head_dim == 64 ? 40 : 3;
      constexpr std::int64_t kMany = 40;
      const GuardedMatrix x(type, kMany, heads * head_dim, 1, Against::back, random);
      const GuardedMatrix dy(type, kMany, heads * head_dim, 2, Against::front, random);
      const Tensor<float, 2> angles = random.normal_tensor<2>({kMany, 4});
      const HeadRowsOptions asked = {.norm = NormKind::layer, .rotation = {angles}};
      const auto length = static_cast<std::size_t>(head_dim);
      std::vector<float> weight(length), bias(length), expected_weight(length), expected_bias(length);
      const Tensor<float, 3> x_floats = heads_of(x.to(), heads), dy_floats = heads_of(dy.to(), heads);
      Tensor<float, 2> expected({kMany, heads * head_dim});
      head_rows_backward(engine, x_floats, dy_floats,
                         {.x = heads_of(expected.view(), heads), .weight = expected_weight, .bias = expected_bias},
                         asked);
      head_rows_backward(engine, heads_of(x.view(), heads), heads_of(dy.view(), heads),
                         {.x = heads_of(x.view(), heads), .weight = weight, .bias = bias}, asked);
      EXPECT_TRUE(x.holds(expected)) << "in place of x";
      EXPECT_EQ(weight, expected_weight);
      EXPECT_EQ(bias, expected_bias);
    }
  }
}

}  // namespace headlight::test::head_rows_gradients_test
