// Backward passes of the row-wise operations against their twins.
#include "gtest/gtest.h"
#include "headlight/activation.h"
#include "headlight/gemm.h"
#include "headlight/loss.h"
#include "headlight/normalization.h"
#include "reference/activation.h"
#include "reference/embedding.h"
#include "reference/loss.h"
#include "reference/normalization.h"
#include "support/guarded_rows.h"
#include "support/isas.h"
#include "support/row_yardsticks.h"

namespace headlight::test::row_gradients_test {

using RowGradientsTest = EachIsa;
HEADLIGHT_ON_EVERY_ISA(RowGradientsTest);

// Two guarded inputs and an output of one shape.
struct Rows {
  Rows(Random& random, std::int64_t rows, std::int64_t columns)
      : side(kBothSides[static_cast<std::size_t>(random.integer(0, 1))]),
        gap(random.integer(0, 5)),
        first(rows, columns, gap, side),
        second(rows, columns, gap, side),
        out(rows, columns, gap, side) {
    first.fill(random);
    second.fill(random);
  }
  Against side;
  std::int64_t gap;
  GuardedRows first;
  GuardedRows second;
  GuardedRows out;
};

// The twin in float64 and in plain float32: f(scalar tag, first, second, out).
template <class Function>
testing::AssertionResult agrees(const Rows& rows, Function twin) {
  Tensor<double, 2> truth(rows.out.view().shape);
  Tensor<float, 2> plain(rows.out.view().shape);
  twin(rows.first.to<double>(), rows.second.to<double>(), truth);
  twin(rows.first.to<float>(), rows.second.to<float>(), plain);
  if (!rows.out.gaps_are_untouched()) return testing::AssertionFailure() << "wrote between the rows";
  return at_most_twice_the_plain_error(rows.out.view(), plain.view(), truth.view());
}

TEST_P(RowGradientsTest, ActivationsAgreeWithTheTwin) {
  Engine engine(options());
  Random random(1);
  for (const Activation activation :
       {Activation::none, Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::silu}) {
    for (const std::int64_t columns : kRowLengths) {
      SCOPED_TRACE(testing::Message() << "activation " << static_cast<int>(activation) << ", " << columns);
      Rows rows(random, 3, columns);
      activate_backward(engine, activation, rows.first.const_view(), rows.second.const_view(), rows.out.view());
      for (std::int64_t n = 0; n < 3; ++n) {
        for (std::int64_t e = 0; e < columns; ++e) {
          const double by = reference::activation_derivative(activation, static_cast<double>(rows.first.view()(n, e)));
          const auto gradient = static_cast<double>(rows.second.view()(n, e));
          EXPECT_NEAR(rows.out.view()(n, e), by * gradient, activation_gradient_error(gradient));
        }
      }
      EXPECT_TRUE(rows.out.gaps_are_untouched());
      const Tensor<float, 2> x = rows.first.to<float>();
      activate_backward(engine, activation, rows.first.const_view(), rows.second.const_view(), rows.first.view());
      EXPECT_TRUE(same_bits(rows.first.view(), rows.out.view())) << "in place of x";
      activate_backward(engine, activation, x.view(), rows.second.const_view(), rows.second.view());
      EXPECT_TRUE(same_bits(rows.second.view(), rows.out.view())) << "in place of the gradient";
    }
  }
}

TEST_P(RowGradientsTest, SoftmaxAgreesWithTheTwin) {
  Engine engine(options());
  Random random(2);
  for (const std::int64_t columns : kRowLengths) {
    SCOPED_TRACE(columns);
    Rows rows(random, 3, columns);
    softmax(engine, rows.first.const_view(), rows.first.view());
    softmax_backward(engine, rows.first.const_view(), rows.second.const_view(), rows.out.view());
    // A single weight of 1 has the gradient 0, up to rounding: measured by the gradient that came in.
    Tensor<double, 2> truth(rows.out.view().shape);
    reference::softmax_backward<double>(rows.first.to<double>(), rows.second.to<double>(), truth);
    EXPECT_TRUE(within(rows.out.view(), truth.view(), 8 * kUnitRoundoff, rows.second.view()));
    EXPECT_TRUE(rows.out.gaps_are_untouched());
    softmax_backward(engine, rows.first.const_view(), rows.second.const_view(), rows.second.view());
    EXPECT_TRUE(same_bits(rows.second.view(), rows.out.view())) << "in place";
  }
}

TEST_P(RowGradientsTest, LayerNormAgreesWithTheTwin) {
  Engine engine(options());
  Random random(3);
  for (const std::int64_t columns : kRowLengths) {
    if (columns < 3) continue;  // one and two numbers are normalised to nothing but a sign
    for (int choice = 0; choice < 8; ++choice) {
      SCOPED_TRACE(testing::Message() << columns << " columns, choice " << choice);
      const bool with_weight = (choice & 1) != 0, with_sums = (choice & 2) != 0, with_residual = (choice & 4) != 0;
      Rows rows(random, 37, columns);
      GuardedRows weight(1, columns, 0, rows.side), weight_sums(1, columns, 0, rows.side),
          bias_sums(1, columns, 0, rows.side), residual(37, columns, rows.gap, rows.side);
      weight.fill(random);
      weight_sums.fill(random);
      bias_sums.fill(random);
      residual.fill(random);
      const auto length = static_cast<std::size_t>(columns);

      const auto twin = [&]<class Scalar>(Tensor<Scalar, 2>& x, Tensor<Scalar, 2>& of_weight,
                                          Tensor<Scalar, 2>& of_bias) {
        const auto vector = [&](const Tensor<Scalar, 2>& t) { return View<const Scalar, 1>(t.data(), {columns}); };
        const auto sums = [&](Tensor<Scalar, 2>& t) {
          return with_sums ? View<Scalar, 1>(t.data(), {columns}) : View<Scalar, 1>();
        };
        const Tensor<Scalar, 2> by = weight.to<Scalar>(), added = residual.to<Scalar>();
        reference::layer_norm_backward<Scalar>(rows.first.to<Scalar>(), rows.second.to<Scalar>(),
                                               with_weight ? vector(by) : View<const Scalar, 1>(),
                                               static_cast<Scalar>(1e-5f), x, sums(of_weight), sums(of_bias));
        for (std::int64_t n = 0; with_residual && n < x.size(); ++n) x.data()[n] += added.data()[n];
      };
      Tensor<double, 2> x64({37, columns}), weight64 = weight_sums.to<double>(), bias64 = bias_sums.to<double>();
      Tensor<float, 2> x32({37, columns}), weight32 = weight_sums.to<float>(), bias32 = bias_sums.to<float>();
      twin(x64, weight64, bias64);
      twin(x32, weight32, bias32);

      LayerNormGradients gradients{.x = rows.out.view()};
      if (with_residual) gradients.residual = residual.const_view();
      if (with_sums) {
        gradients.weight = {weight_sums.view().data, length};
        gradients.bias = {bias_sums.view().data, length};
      }
      LayerNormOptions norm;
      if (with_weight) norm.weight = {weight.view().data, length};
      layer_norm_backward(engine, rows.first.const_view(), rows.second.const_view(), gradients, norm);
      EXPECT_TRUE(at_most_twice_the_plain_error(rows.out.view(), x32.view(), x64.view()));
      EXPECT_TRUE(at_most_twice_the_plain_error(weight_sums.view(), weight32.view(), weight64.view()));
      EXPECT_TRUE(at_most_twice_the_plain_error(bias_sums.view(), bias32.view(), bias64.view()));
      EXPECT_TRUE(rows.out.gaps_are_untouched());
      gradients = {.x = rows.second.view(), .residual = gradients.residual};
      layer_norm_backward(engine, rows.first.const_view(), rows.second.const_view(), gradients, norm);
      EXPECT_TRUE(same_bits(rows.second.view(), rows.out.view())) << "in place";
    }
  }
}

TEST_P(RowGradientsTest, BiasAgreesWithTheTwin) {
  Engine engine(options());
  Random random(4);
  for (const std::int64_t columns : kRowLengths) {
    for (const std::int64_t count : {1, 16, 17, 200}) {
      SCOPED_TRACE(testing::Message() << count << " rows of " << columns);
      Rows rows(random, count, columns);
      GuardedRows sums(1, columns, 0, rows.side);
      sums.fill(random);
      Tensor<double, 2> truth = sums.to<double>();
      Tensor<float, 2> plain = sums.to<float>();
      for (std::int64_t n = 0; n < count; ++n) {
        for (std::int64_t e = 0; e < columns; ++e) {
          truth(0, e) += static_cast<double>(rows.first.view()(n, e));
          plain(0, e) += rows.first.view()(n, e);
        }
      }
      bias_backward(engine, rows.first.const_view(), {sums.view().data, static_cast<std::size_t>(columns)});
      // Sums of both signs may cancel: measured by the norm of what was added.
      EXPECT_TRUE(within(sums.view(), truth.view(), 1e-6 * std::sqrt(static_cast<double>(count)) + 1e-6,
                         View<const float, 2>(rows.first.view().data, {1, columns})));
      if (columns >= 16) {
        EXPECT_TRUE(at_most_twice_the_plain_error(sums.view(), plain.view(), truth.view()));
      }
    }
  }
}

TEST_P(RowGradientsTest, EmbeddingsAgreeWithTheTwin) {
  Engine engine(options(3));
  Random random(5);
  for (const std::int64_t columns : kRowLengths) {
    SCOPED_TRACE(columns);
    constexpr std::int64_t kCount = 23;
    GuardedRows gradient(kCount, columns, random.integer(0, 5), Against::back);
    gradient.fill(random);
    std::vector<std::int64_t> words, positions;
    for (std::int64_t n = 0; n < kCount; ++n) {
      words.push_back(random.integer(0, 6));
      positions.push_back(n % 8);
    }
    GuardedRows word_table(7, columns, 3, Against::back), position_table(8, columns, 0, Against::front);
    word_table.fill(random);
    position_table.fill(random);
    Tensor<float, 2> word_twin = word_table.to<float>(), position_twin = position_table.to<float>();
    reference::embed_backward<float>(gradient.const_view(), words, word_twin);
    reference::embed_backward<float>(gradient.const_view(), positions, position_twin);
    const std::array<EmbeddingGradient, 2> tables = {EmbeddingGradient{word_table.view(), words},
                                                     EmbeddingGradient{position_table.view(), positions}};
    embed_backward(engine, gradient.const_view(), tables);
    // The order is the twin's own.
    EXPECT_TRUE(same_bits(word_table.view(), word_twin.view()));
    EXPECT_TRUE(same_bits(position_table.view(), position_twin.view()));
    EXPECT_TRUE(word_table.gaps_are_untouched());
  }
}

TEST_P(RowGradientsTest, PoolingAgreesWithTheTwin) {
  Engine engine(options());
  Random random(6);
  const std::vector<std::int64_t> offsets = {0, 5, 5, 6, 20};
  for (const std::int64_t columns : kRowLengths) {
    if (columns < 3) continue;  // of a normalised number or two the gradient is what a cancellation left
    for (const bool l2_normalize : {false, true}) {
      SCOPED_TRACE(testing::Message() << columns << " columns, l2_normalize " << l2_normalize);
      Rows rows(random, 20, columns);
      GuardedRows gradient(4, columns, rows.gap, rows.side);
      gradient.fill(random);
      EXPECT_NO_THROW(mean_pool_backward(engine, rows.first.const_view(), offsets, gradient.const_view(),
                                         rows.out.view(), l2_normalize));
      EXPECT_TRUE(
          agrees(rows, [&]<class Scalar>(const Tensor<Scalar, 2>& x, const Tensor<Scalar, 2>&, Tensor<Scalar, 2>& out) {
            reference::mean_pool_backward<Scalar>(x, offsets, gradient.to<Scalar>(), out, l2_normalize);
          }));
    }
  }
}

TEST_P(RowGradientsTest, CrossEntropyAgreesWithTheTwin) {
  Engine engine(options());
  Random random(7);
  for (const std::int64_t columns : kRowLengths) {
    if (columns == 0) continue;
    SCOPED_TRACE(columns);
    Rows rows(random, 9, columns);
    rows.first.fill(random, 3.0f);
    std::vector<std::int64_t> labels;
    for (std::int64_t n = 0; n < 9; ++n) labels.push_back(n % 4 == 1 ? -100 : random.integer(0, columns - 1));
    const CrossEntropy found =
        cross_entropy(engine, rows.first.const_view(), labels, {.logits_gradient = rows.out.view()});
    EXPECT_EQ(found.rows, 7);
    Tensor<double, 2> truth({9, columns});
    Tensor<float, 2> plain({9, columns});
    const double loss = reference::cross_entropy<double>(rows.first.to<double>(), labels, -100, truth);
    (void)reference::cross_entropy<float>(rows.first.to<float>(), labels, -100, plain);
    EXPECT_NEAR(found.loss, loss, 1e-6 * std::max(loss, 1.0));
    if (columns > 1) {
      EXPECT_TRUE(at_most_twice_the_plain_error(rows.out.view(), plain.view(), truth.view()));
    }
    EXPECT_TRUE(rows.out.gaps_are_untouched());
    EXPECT_EQ(cross_entropy(engine, rows.first.const_view(), labels).loss, found.loss) << "without the gradient";
    (void)cross_entropy(engine, rows.first.const_view(), labels, {.logits_gradient = rows.first.view()});
    EXPECT_TRUE(same_bits(rows.first.view(), rows.out.view())) << "in place";
  }
}

}  // namespace headlight::test::row_gradients_test
