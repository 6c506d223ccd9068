// Row-wise operations on memory of 16 bits a number: the bits of float32 over what it holds, rounded once, which agree
// with the twins in float64.
#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <vector>

#include "headlight/activation.h"
#include "headlight/dropout.h"
#include "headlight/gemm.h"
#include "headlight/normalization.h"
#include "reference/activation.h"
#include "reference/dropout.h"
#include "reference/embedding.h"
#include "reference/normalization.h"
#include "support/compare.h"
#include "support/guarded_matrix.h"
#include "support/guarded_rows.h"
#include "support/isas.h"
#include "support/row_yardsticks.h"

namespace headlight::test::typed_rows_test {

using TypedRows = EachIsa;
HEADLIGHT_ON_EVERY_ISA(TypedRows);

constexpr std::int64_t kRows = 3;
constexpr std::array kActivations = {Activation::none, Activation::relu, Activation::gelu, Activation::gelu_tanh,
                                     Activation::silu};

// f(type of an input, of another, of the output): each two of them in every combination of two types.
template <class Function>
void for_types(const Function& f) {
  for (std::size_t x = 0; x < 3; ++x) {
    for (std::size_t other = 0; other < 3; ++other) {
      const std::array types = {kStoredTypes[x], kStoredTypes[other], kStoredTypes[(x + other) % 3]};
      SCOPED_TRACE(testing::Message() << name(types[0]) << " and " << name(types[1]) << " to " << name(types[2]));
      f(types[0], types[1], types[2]);
    }
  }
}

template <int Rank>
Tensor<float, Rank> copy_of(const Tensor<float, Rank>& from) {
  Tensor<float, Rank> to(from.shape());
  std::copy(from.begin(), from.end(), to.begin());
  return to;
}

// Two inputs and an output of one shape.
struct Matrices {
  Matrices(Random& random, std::int64_t columns, NumberType of_x, NumberType of_other, NumberType of_y,
           std::int64_t rows = kRows)
      : side(kBothSides[static_cast<std::size_t>(random.integer(0, 1))]),
        gap(random.integer(0, 5)),
        x(of_x, rows, columns, gap, side, random),
        other(of_other, rows, columns, gap, side, random),
        y(of_y, rows, columns, gap, side, random) {}
  Against side;
  std::int64_t gap;
  GuardedMatrix x, other, y;
};

// Whether float32's result is near the twin's: twin(inputs, output) in float64 and in plain float32.
template <class Twin>
testing::AssertionResult agrees(const Matrices& m, const Tensor<float, 2>& result, Twin twin) {
  Tensor<double, 2> truth(result.shape());
  Tensor<float, 2> plain(result.shape());
  twin(m.x.to<double>(), m.other.to<double>(), truth);
  twin(m.x.to<float>(), m.other.to<float>(), plain);
  return at_most_twice_the_plain_error(result.view(), plain.view(), truth.view());
}

TEST_P(TypedRows, Softmax) {
  Engine engine(options());
  Random random(1);
  for_types([&](NumberType of_x, NumberType of_other, NumberType of_y) {
    for (const std::int64_t columns : kRowLengths) {
      SCOPED_TRACE(columns);
      Matrices m(random, columns, of_x, of_other, of_y);
      const Tensor<float, 2> x = m.x.to(), gradient = m.other.to();
      Tensor<float, 2> expected(x.shape());
      softmax(engine, x, expected);
      softmax(engine, m.x.const_view(), m.y.view());
      EXPECT_TRUE(m.y.holds(expected));
      EXPECT_TRUE(agrees(m, expected, []<class T>(const Tensor<T, 2>& in, const Tensor<T, 2>&, Tensor<T, 2>& out) {
        reference::softmax<T>(in, out);
      }));

      softmax_backward(engine, x, gradient, expected);
      softmax_backward(engine, m.x.const_view(), m.other.const_view(), m.y.view());
      EXPECT_TRUE(m.y.holds(expected));
      softmax_backward(engine, m.x.const_view(), m.other.const_view(), m.other.view());
      EXPECT_TRUE(m.other.holds(expected)) << "in place of the gradient";
      softmax(engine, x, expected);
      softmax(engine, m.x.const_view(), m.x.view());
      EXPECT_TRUE(m.x.holds(expected)) << "in place";
    }
  });
}

TEST_P(TypedRows, SoftmaxGradientsAgreeWithTheTwin) {
  Engine engine(options());
  Random random(2);
  for (const NumberType type : kStoredTypes) {
    for (const std::int64_t columns : kRowLengths) {
      SCOPED_TRACE(testing::Message() << name(type) << ", " << columns);
      Matrices m(random, columns, type, type, NumberType::float32);
      softmax(engine, m.x.const_view(), m.x.view());
      softmax_backward(engine, m.x.const_view(), m.other.const_view(), m.y.view());
      EXPECT_TRUE(agrees(m, m.y.to(), []<class T>(const Tensor<T, 2>& y, const Tensor<T, 2>& dy, Tensor<T, 2>& dx) {
        reference::softmax_backward<T>(y, dy, dx);
      }));
    }
  }
}

TEST_P(TypedRows, Activations) {
  Engine engine(options());
  Random random(3);
  for_types([&](NumberType of_x, NumberType of_other, NumberType of_y) {
    for (const std::int64_t columns : kRowLengths) {
      const Activation activation = kActivations[static_cast<std::size_t>(random.integer(0, kActivations.size() - 1))];
      SCOPED_TRACE(testing::Message() << "activation " << static_cast<int>(activation) << ", " << columns);
      Matrices m(random, columns, of_x, of_other, of_y);
      const Tensor<float, 2> x = m.x.to(), gradient = m.other.to();
      Tensor<float, 2> expected(x.shape());
      activate(engine, activation, x, expected);
      activate(engine, activation, m.x.const_view(), m.y.view());
      EXPECT_TRUE(m.y.holds(expected));
      for (std::int64_t n = 0; n < x.size(); ++n) {
        const double truth = reference::activate<double>(activation, static_cast<double>(x.data()[n]));
        EXPECT_NEAR(static_cast<double>(expected.data()[n]), truth, activation_error(activation, truth));
      }
      activate_backward(engine, activation, x, gradient, expected);
      activate_backward(engine, activation, m.x.const_view(), m.other.const_view(), m.y.view());
      EXPECT_TRUE(m.y.holds(expected));
      for (std::int64_t n = 0; n < x.size(); ++n) {
        const auto dy = static_cast<double>(gradient.data()[n]);
        const double by = reference::activation_derivative(activation, static_cast<double>(x.data()[n]));
        EXPECT_NEAR(static_cast<double>(expected.data()[n]), by * dy, activation_gradient_error(dy));
      }
      activate_backward(engine, activation, m.x.const_view(), m.other.const_view(), m.x.view());
      EXPECT_TRUE(m.x.holds(expected)) << "in place of x";
    }
  });
}

TEST_P(TypedRows, LayerNorm) {
  Engine engine(options());
  Random random(4);
  for_types([&](NumberType of_x, NumberType of_residual, NumberType of_y) {
    for (const std::int64_t columns : kRowLengths) {
      Matrices m(random, columns, of_x, of_residual, of_y);
      const auto weight = random.normal_tensor<1>({columns}), bias = random.normal_tensor<1>({columns});
      const Tensor<float, 2> x = m.x.to(), residual = m.other.to();
      const bool adds = random.once_in(2), weighs = random.once_in(2), shifts = random.once_in(2);
      SCOPED_TRACE(testing::Message() << columns << ", residual " << adds << ", weight " << weighs << ", bias "
                                      << shifts);
      LayerNormOptions plain;
      LayerNormOptions typed;
      if (weighs) typed.weight = plain.weight = {weight.data(), static_cast<std::size_t>(columns)};
      if (shifts) typed.bias = plain.bias = {bias.data(), static_cast<std::size_t>(columns)};
      if (adds) plain.residual = residual;
      if (adds) typed.residual = m.other.const_view();
      Tensor<float, 2> expected(x.shape());
      layer_norm(engine, x, expected, plain);
      layer_norm(engine, m.x.const_view(), m.y.view(), typed);
      EXPECT_TRUE(m.y.holds(expected));
      EXPECT_TRUE(
          agrees(m, expected, [&]<class T>(const Tensor<T, 2>& in, const Tensor<T, 2>& and_this, Tensor<T, 2>& out) {
            Tensor<T, 1> w(weight.shape()), b(bias.shape());
            std::copy(weight.begin(), weight.end(), w.begin());
            std::copy(bias.begin(), bias.end(), b.begin());
            reference::layer_norm<T>(in, adds ? and_this.view() : View<const T, 2>(),
                                     weighs ? View<const T, 1>(w.view()) : View<const T, 1>(),
                                     shifts ? View<const T, 1>(b.view()) : View<const T, 1>(), T(1e-5f), out);
          }));
      if (adds) {
        layer_norm(engine, m.x.const_view(), m.other.view(), typed);
        EXPECT_TRUE(m.other.holds(expected)) << "in place of the residual";
      } else {
        layer_norm(engine, m.x.const_view(), m.x.view(), typed);
        EXPECT_TRUE(m.x.holds(expected)) << "in place";
      }
    }
  });
}

// Gradients of weight and bias over more rows than a run of them has.
TEST_P(TypedRows, LayerNormGradients) {
  Engine engine(options());
  Random random(5);
  for_types([&](NumberType of_x, NumberType of_gradient, NumberType of_y) {
    for (const std::int64_t columns : kRowLengths) {
      SCOPED_TRACE(columns);
      Matrices m(random, columns, of_x, of_gradient, of_y, columns < 100 ? 37 : 3);
      const GuardedMatrix residual(of_gradient, m.x.view().extent(0), columns, m.gap, m.side, random);
      const auto weight = random.normal_tensor<1>({columns});
      const std::span<const float> weights(weight.data(), static_cast<std::size_t>(columns));
      const Tensor<float, 2> x = m.x.to(), gradient = m.other.to(), added = residual.to();
      const bool adds = random.once_in(2), sums = random.once_in(2);
      Tensor<float, 2> expected(x.shape());
      auto dw = random.normal_tensor<1>({columns}), db = random.normal_tensor<1>({columns});
      Tensor<float, 1> typed_dw = copy_of(dw), typed_db = copy_of(db);
      const auto span_of = [&](Tensor<float, 1>& of) {
        return sums ? std::span<float>(of.data(), static_cast<std::size_t>(columns)) : std::span<float>();
      };
      layer_norm_backward(engine, x, gradient,
                          {.x = expected,
                           .residual = adds ? TypedView<2>(added) : TypedView<2>(),
                           .weight = span_of(dw),
                           .bias = span_of(db)},
                          {.weight = weights});
      layer_norm_backward(engine, m.x.const_view(), m.other.const_view(),
                          {.x = m.y.view(),
                           .residual = adds ? residual.const_view() : TypedView<2>(),
                           .weight = span_of(typed_dw),
                           .bias = span_of(typed_db)},
                          {.weight = weights});
      EXPECT_TRUE(m.y.holds(expected));
      EXPECT_TRUE(same_bits(typed_dw, dw));
      EXPECT_TRUE(same_bits(typed_db, db));
      if (!sums) continue;
      // Those alone.
      layer_norm_backward(engine, x, gradient, {.weight = span_of(dw)});
      layer_norm_backward(engine, m.x.const_view(), m.other.const_view(), {.weight = span_of(typed_dw)});
      EXPECT_TRUE(same_bits(typed_dw, dw));
    }
  });
}

TEST_P(TypedRows, LayerNormGradientsAgreeWithTheTwin) {
  Engine engine(options());
  Random random(6);
  for (const NumberType type : kStoredTypes) {
    for (const std::int64_t columns : kRowLengths) {
      if (columns == 0) continue;
      SCOPED_TRACE(testing::Message() << name(type) << ", " << columns);
      Matrices m(random, columns, type, type, NumberType::float32);
      layer_norm_backward(engine, m.x.const_view(), m.other.const_view(), {.x = m.y.view()});
      Tensor<double, 2> truth({kRows, columns}), sizes({kRows, columns});
      Tensor<float, 2> plain({kRows, columns});
      const auto twin = []<class T>(const Tensor<T, 2>& x, const Tensor<T, 2>& dy, Tensor<T, 2>& dx) {
        reference::layer_norm_backward<T>(x, dy, {}, T(1e-5f), dx, {}, {});
      };
      twin(m.x.to<double>(), m.other.to<double>(), truth);
      twin(m.x.to<float>(), m.other.to<float>(), plain);
      const Tensor<double, 2> x = m.x.to<double>(), dy = m.other.to<double>();
      yardsticks::layer_norm_backward(x, dy, {}, static_cast<double>(1e-5f), sizes, {}, {});
      EXPECT_TRUE(at_most_twice_the_plain_error(m.y.to().view(), plain.view(), truth.view(), sizes.view()));
    }
  }
}

TEST_P(TypedRows, DropoutAndResiduals) {
  Engine engine(options());
  Random random(7);
  for_types([&](NumberType of_x, NumberType of_residual, NumberType of_y) {
    for (const std::int64_t columns : kRowLengths) {
      const Dropout drop = {.probability = random.once_in(2) ? 0.0f : 0.3f, .seed = 5, .stream = 7};
      SCOPED_TRACE(testing::Message() << columns << ", p = " << drop.probability);
      // More rows than a buffer, where rows are short.
      Matrices m(random, columns, of_x, of_residual, of_y, columns < 33 ? 150 : 7);
      const Tensor<float, 2> x = m.x.to(), residual = m.other.to();
      Tensor<float, 2> expected(x.shape());
      Tensor<double, 2> truth(x.shape());
      dropout(engine, x, expected, drop, residual);
      dropout(engine, m.x.const_view(), m.y.view(), drop, m.other.const_view());
      EXPECT_TRUE(m.y.holds(expected));
      const Tensor<double, 2> in = m.x.to<double>(), added = m.other.to<double>();
      reference::dropout<double>(in, truth, drop, added);
      for (std::int64_t n = 0; n < truth.size(); ++n) {  // a product and a sum, rounded
        const double size = std::abs(truth.data()[n] - added.data()[n]) + std::abs(truth.data()[n]);
        ASSERT_NEAR(static_cast<double>(expected.data()[n]), truth.data()[n], 2 * kUnitRoundoff * size);
      }
      dropout(engine, x, expected, drop);
      dropout(engine, m.x.const_view(), m.x.view(), drop);
      EXPECT_TRUE(m.x.holds(expected)) << "in place";
    }
  });
}

TEST_P(TypedRows, EmbeddingsFromTablesOfAnyTypes) {
  Engine engine(options());
  Random random(8);
  constexpr std::int64_t kTokens = 140;  // more than a buffer
  for_types([&](NumberType first, NumberType second, NumberType of_out) {
    for (const std::int64_t columns : kRowLengths) {
      SCOPED_TRACE(columns);
      const std::array types = {first, second, first, second};
      const auto count = static_cast<std::size_t>(random.integer(1, 4));
      const Against side = kBothSides[count % 2];
      std::vector<std::unique_ptr<GuardedMatrix>> memory;
      std::vector<Tensor<float, 2>> floats;
      std::vector<Tensor<double, 2>> doubles;
      std::vector<std::vector<std::int64_t>> ids(count);
      for (std::size_t t = 0; t < count; ++t) {
        const std::int64_t rows = random.integer(1, 9);
        memory.push_back(std::make_unique<GuardedMatrix>(types[t], rows, columns, random.integer(0, 3), side, random));
        floats.push_back(memory[t]->to());
        doubles.push_back(memory[t]->to<double>());
        for (std::int64_t n = 0; n < kTokens; ++n) ids[t].push_back(n == 0 ? rows - 1 : random.integer(0, rows - 1));
      }
      std::vector<Embedding> typed;
      std::vector<Embedding> plain;
      std::vector<reference::Embedding<double>> twins;
      for (std::size_t t = 0; t < count; ++t) {
        typed.push_back({memory[t]->const_view(), ids[t]});
        plain.push_back({floats[t], ids[t]});
        twins.push_back({std::as_const(doubles[t]).view(), ids[t]});
      }
      const GuardedMatrix out(of_out, kTokens, columns, random.integer(0, 3), side, random);
      Tensor<float, 2> expected({kTokens, columns});
      Tensor<double, 2> truth({kTokens, columns});
      embed(engine, plain, expected);
      embed(engine, typed, out.view());
      EXPECT_TRUE(out.holds(expected));
      reference::embed<double>(twins, truth.view());
      for (std::int64_t n = 0; n < truth.size(); ++n) {  // of numbers below 8
        ASSERT_NEAR(static_cast<double>(expected.data()[n]), truth.data()[n], 3 * kUnitRoundoff * 4 * 8);
      }
    }
  });
}

TEST_P(TypedRows, GradientsOfTablesAndBiases) {
  Engine engine(options());
  Random random(9);
  constexpr std::int64_t kTokens = 70;
  for (const NumberType type : kStoredTypes) {
    for (const std::int64_t columns : kRowLengths) {
      SCOPED_TRACE(testing::Message() << name(type) << ", " << columns);
      const GuardedMatrix gradient(type, kTokens, columns, random.integer(0, 5), Against::back, random);
      const Tensor<float, 2> floats = gradient.to();
      auto expected = random.normal_tensor<2>({5, columns});
      Tensor<float, 2> found = copy_of(expected);
      std::vector<std::int64_t> ids;
      for (std::int64_t n = 0; n < kTokens; ++n) ids.push_back(random.integer(0, 4));
      embed_backward(engine, floats, std::array{EmbeddingGradient{expected, ids}});
      embed_backward(engine, gradient.const_view(), std::array{EmbeddingGradient{found, ids}});
      EXPECT_TRUE(same_bits(found, expected));

      auto sums = random.normal_tensor<1>({columns});
      Tensor<float, 1> typed_sums = copy_of(sums);
      const auto length = static_cast<std::size_t>(columns);
      bias_backward(engine, floats, std::span(sums.data(), length));
      bias_backward(engine, gradient.const_view(), std::span(typed_sums.data(), length));
      EXPECT_TRUE(same_bits(typed_sums, sums));
    }
  }
}

// What IEEE 754 says of numbers at the edges: rounded to nearest even, subnormal ones kept, infinite ones where a
// number is beyond the largest, NaN as NaN.
TEST_P(TypedRows, KeepNumbersAtTheEdges) {
  Engine engine(options());
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  const std::vector<float> edges = {
      0.0f,       -0.0f,        1.0f + 0x1p-8f, 1.0f + 0x1.8p-7f, 1.0f + 0x1p-11f, 1.0f + 0x1.8p-10f, 65504.0f,
      65519.0f,   65520.0f,     -65520.0f,      0x1p-24f,         0x1p-25f,        0x1.8p-25f,        0x1p-14f,
      0x1p-133f,  0x1p-134f,    0x1.8p-134f,    0x1p-126f,        0x1.fffffep127f, 0x1.fep127f,       kInfinite,
      -kInfinite, std::nanf("")};
  Random random(10);
  const auto columns = static_cast<std::int64_t>(edges.size());
  for_types([&](NumberType of_x, NumberType, NumberType of_y) {
    Matrices m(random, columns, of_x, of_x, of_y);
    for (std::int64_t n = 0; n < kRows; ++n) {
      for (std::int64_t e = 0; e < columns; ++e) m.x.set(n, e, edges[static_cast<std::size_t>((e + n) % columns)]);
    }
    activate(engine, Activation::none, m.x.const_view(), m.y.view());
    EXPECT_TRUE(m.y.holds(m.x.to()));
  });
}

}  // namespace headlight::test::typed_rows_test
