// The float64 twins of backward passes against central differences.
#include "reference/activation.h"
#include "reference/embedding.h"
#include "reference/linear.h"
#include "reference/loss.h"
#include "reference/normalization.h"
#include "support/gradient_check.h"
#include "support/random.h"

namespace headlight::test::gradients_test {

Tensor<double, 2> numbers(Random& random, std::int64_t rows, std::int64_t columns, float scale = 1.0f) {
  return converted<double>(random.normal_tensor<2>({rows, columns}, scale));
}

TEST(GradientTwins, Activations) {
  Random random(1);
  for (const Activation activation :
       {Activation::none, Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::silu}) {
    Tensor<double, 2> x = numbers(random, 20, 20, 2.0f);
    const Tensor<double, 2> weights = numbers(random, 20, 20);
    Tensor<double, 2> gradient(x.shape());
    for (std::int64_t n = 0; n < x.size(); ++n) {
      gradient.data()[n] = weights.data()[n] * reference::activation_derivative(activation, x.data()[n]);
    }
    const auto loss = [&] {
      Tensor<double, 2> y(x.shape());
      for (std::int64_t n = 0; n < x.size(); ++n) y.data()[n] = reference::activate(activation, x.data()[n]);
      return weighted_sum(y, weights);
    };
    EXPECT_TRUE(gradient_agrees(x, gradient, loss)) << static_cast<int>(activation);
  }
}

TEST(GradientTwins, Softmax) {
  Random random(2);
  Tensor<double, 2> x = numbers(random, 5, 9);
  const Tensor<double, 2> weights = numbers(random, 5, 9);
  Tensor<double, 2> y(x.shape());
  Tensor<double, 2> gradient(x.shape());
  const auto loss = [&] {
    reference::softmax<double>(x, y);
    return weighted_sum(y, weights);
  };
  (void)loss();
  reference::softmax_backward<double>(y, weights, gradient);
  EXPECT_TRUE(gradient_agrees(x, gradient, loss));
}

TEST(GradientTwins, LayerNorm) {
  Random random(3);
  Tensor<double, 2> x = numbers(random, 6, 11);
  Tensor<double, 2> weight = numbers(random, 1, 11);
  Tensor<double, 2> bias = numbers(random, 1, 11);
  const Tensor<double, 2> weights = numbers(random, 6, 11);
  Tensor<double, 2> x_gradient({6, 11}), weight_gradient({1, 11}), bias_gradient({1, 11});
  const auto row = [](auto& tensor) { return View<double, 1>(tensor.data(), {11}); };
  reference::layer_norm_backward<double>(x, weights, row(weight), 1e-5, x_gradient, row(weight_gradient),
                                         row(bias_gradient));
  const auto loss = [&] {
    Tensor<double, 2> y(x.shape());
    reference::layer_norm<double>(x, {}, row(weight), row(bias), 1e-5, y);
    return weighted_sum(y, weights);
  };
  EXPECT_TRUE(gradient_agrees(x, x_gradient, loss));
  EXPECT_TRUE(gradient_agrees(weight, weight_gradient, loss));
  EXPECT_TRUE(gradient_agrees(bias, bias_gradient, loss));
}

TEST(GradientTwins, Linear) {
  Random random(4);
  Tensor<double, 2> x = numbers(random, 4, 6);
  Tensor<double, 2> weight = numbers(random, 5, 6);
  Tensor<double, 2> bias = numbers(random, 1, 5);
  const Tensor<double, 2> weights = numbers(random, 4, 5);
  Tensor<double, 2> x_gradient({4, 6}), weight_gradient({5, 6}), bias_gradient({1, 5});
  reference::linear_backward<double>(x, weight, weights, x_gradient, weight_gradient,
                                     View<double, 1>(bias_gradient.data(), {5}));
  const auto loss = [&] {
    Tensor<double, 2> y({4, 5});
    reference::linear<double>(x, weight, View<double, 1>(bias.data(), {5}), y);
    return weighted_sum(y, weights);
  };
  EXPECT_TRUE(gradient_agrees(x, x_gradient, loss));
  EXPECT_TRUE(gradient_agrees(weight, weight_gradient, loss));
  EXPECT_TRUE(gradient_agrees(bias, bias_gradient, loss));
}

TEST(GradientTwins, EmbeddingAndPooling) {
  Random random(5);
  Tensor<double, 2> table = numbers(random, 7, 5);
  const std::vector<std::int64_t> ids = {3, 0, 3, 6, 3, 2, 0};
  const std::vector<std::int64_t> offsets = {0, 3, 3, 4, 7};
  const Tensor<double, 2> weights = numbers(random, 4, 5);
  for (const bool l2_normalize : {false, true}) {
    Tensor<double, 2> x({7, 5}), x_gradient({7, 5}), table_gradient({7, 5}), out({4, 5});
    const std::vector<reference::Embedding<double>> tables = {{table.view(), ids}};
    const auto loss = [&] {
      reference::embed<double>(tables, x);
      reference::mean_pool<double>(x, offsets, out, l2_normalize);
      return weighted_sum(out, weights);
    };
    (void)loss();
    reference::mean_pool_backward<double>(x, offsets, weights, x_gradient, l2_normalize);
    reference::embed_backward<double>(x_gradient, ids, table_gradient);
    EXPECT_TRUE(gradient_agrees(table, table_gradient, loss)) << "l2_normalize " << l2_normalize;
  }
}

TEST(GradientTwins, CrossEntropy) {
  Random random(6);
  Tensor<double, 2> x = numbers(random, 6, 8, 3.0f);
  const std::vector<std::int64_t> labels = {2, -100, 0, 7, 7, -100};
  Tensor<double, 2> gradient(x.shape());
  const auto loss = [&] { return reference::cross_entropy<double>(x, labels, -100); };
  (void)reference::cross_entropy<double>(x, labels, -100, gradient);
  EXPECT_TRUE(gradient_agrees(x, gradient, loss));
}

}  // namespace headlight::test::gradients_test
