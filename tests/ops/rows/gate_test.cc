#include "headlight/gate.h"

#include "headlight/activation.h"
#include "reference/activation.h"
#include "support/guarded_matrix.h"
#include "support/guarded_rows.h"
#include "support/isas.h"
#include "support/quick.h"
#include "support/row_yardsticks.h"

namespace headlight::test::gate_test {

using GateTest = EachIsa;
HEADLIGHT_ON_EVERY_ISA(GateTest);

constexpr std::array<Activation, 5> kActivations = {Activation::none, Activation::relu, Activation::gelu,
                                                    Activation::gelu_tanh, Activation::silu};

// a and b, the halves of the rows of one product.
struct Halves {
  Halves(Random& random, std::int64_t rows, std::int64_t columns, Against side)
      : both(rows, 2 * columns, random.integer(0, 3), side), shape{rows, columns}, strides(both.view().strides) {
    both.fill(random, 2.0f);
  }
  [[nodiscard]] View<float, 2> a() const { return {both.view().data, shape, strides}; }
  [[nodiscard]] View<float, 2> b() const { return {both.view().data + shape[1], shape, strides}; }

  GuardedRows both;
  View<float, 2>::Shape shape, strides;
};

void copy(const View<float, 2>& from, const View<float, 2>& to) {
  for (std::int64_t n = 0; n < from.extent(0); ++n) {
    for (std::int64_t e = 0; e < from.extent(1); ++e) to(n, e) = from(n, e);
  }
}
Tensor<float, 2> copied(const View<float, 2>& from) {
  Tensor<float, 2> to(from.shape);
  copy(from, to);
  return to;
}

TEST_P(GateTest, AgreesWithTheTwinOnRaggedRows) {
  Engine engine(options());
  Random random(1);
  for (const Activation activation : kActivations) {
    for (std::int64_t columns : kRowLengths) {
      if (columns == 1000) columns = 2500;  // several parts
      for (const Against side : kBothSides) {
        SCOPED_TRACE(testing::Message() << "activation " << static_cast<int>(activation) << ", " << columns);
        const Halves in(random, 3, columns, side);
        const GuardedRows y(3, columns, random.integer(0, 5), side);
        gate(engine, activation, in.a(), in.b(), y.view());
        for (std::int64_t n = 0; n < 3; ++n) {
          for (std::int64_t e = 0; e < columns; ++e) {
            const double activated = reference::activate(activation, static_cast<double>(in.a()(n, e)));
            const double by = static_cast<double>(in.b()(n, e)), truth = activated * by;
            const double error = activation_error(activation, activated) * std::abs(by);
            EXPECT_NEAR(y.view()(n, e), truth, error + kUnitRoundoff * std::abs(truth)) << in.a()(n, e);
          }
        }
        EXPECT_TRUE(y.gaps_are_untouched());
        const Tensor<float, 2> b = copied(in.b());
        gate(engine, activation, in.a(), in.b(), in.b());
        EXPECT_TRUE(same_bits(in.b(), y.view())) << "in place of b";
        gate(engine, activation, in.a(), b.view(), in.a());
        EXPECT_TRUE(same_bits(in.a(), y.view())) << "in place of a";
      }
    }
  }
}

TEST_P(GateTest, LetsNaNPass) {
  Engine engine(options());
  for (const Activation activation : kActivations) {
    Tensor<float, 2> a({2, 77}), b({2, 77});
    for (std::int64_t e = 0; e < 77; ++e) {
      a(0, e) = b(1, e) = std::nanf("");
      a(1, e) = b(0, e) = 1;
    }
    gate(engine, activation, a.view(), b.view(), a.view());
    for (const float element : a) EXPECT_TRUE(std::isnan(element)) << static_cast<int>(activation);
  }
}

TEST_P(GateTest, RoundsOnceInEveryType) {
  Engine engine(options());
  Random random(2);
  for (const NumberType of_a : kStoredTypes) {
    for (const NumberType of_y : kStoredTypes) {
      for (const std::int64_t columns : {1, 31, 384, 2500}) {
        SCOPED_TRACE(testing::Message() << name(of_a) << " to " << name(of_y) << ", " << columns);
        const GuardedMatrix a(of_a, 5, columns, 1, Against::back, random),
            b(of_a, 5, columns, 2, Against::back, random);
        const GuardedMatrix y(of_y, 5, columns, 3, Against::front, random);
        const Tensor<float, 2> a_floats = a.to(), b_floats = b.to();
        Tensor<float, 2> expected(a_floats.shape());
        gate(engine, Activation::silu, a_floats, b_floats, expected);
        gate(engine, Activation::silu, a.const_view(), b.const_view(), y.view());
        EXPECT_TRUE(y.holds(expected));
        gate(engine, Activation::silu, a.const_view(), b.const_view(), a.view());
        EXPECT_TRUE(a.holds(expected)) << "in place";
      }
    }
  }
}

TEST_P(GateTest, GivesTheSameBitsOnAnyNumberOfThreads) {
  Random random(3);
  const Tensor<float, 2> a = random.normal_tensor<2>({600, 401}), b = random.normal_tensor<2>({600, 401});
  Tensor<float, 2> once(a.shape());
  Engine one(options(1));
  gate(one, Activation::silu, a.view(), b.view(), once.view());
  for (const int threads : more_threads()) {
    Engine engine(options(threads));
    Tensor<float, 2> y(a.shape());
    gate(engine, Activation::silu, a.view(), b.view(), y.view());
    EXPECT_TRUE(same_bits(y.view(), once.view())) << threads << " threads";
  }
}

TEST_P(GateTest, GradientsAgreeWithTheTwin) {
  Engine engine(options());
  Random random(4);
  for (const Activation activation : kActivations) {
    for (std::int64_t columns : kRowLengths) {
      if (columns == 1000) columns = 2500;
      for (const Against side : kBothSides) {
        SCOPED_TRACE(testing::Message() << "activation " << static_cast<int>(activation) << ", " << columns);
        const Halves in(random, 3, columns, side), out(random, 3, columns, side);
        GuardedRows dy(3, columns, random.integer(0, 5), side);
        dy.fill(random);
        gate_backward(engine, activation, in.a(), in.b(), dy.const_view(), out.a(), out.b());
        for (std::int64_t n = 0; n < 3; ++n) {
          for (std::int64_t e = 0; e < columns; ++e) {
            const auto a = static_cast<double>(in.a()(n, e)), b = static_cast<double>(in.b()(n, e));
            const auto g = static_cast<double>(dy.view()(n, e));
            const double activated = reference::activate(activation, a);
            EXPECT_NEAR(out.a()(n, e), g * b * reference::activation_derivative(activation, a),
                        activation_gradient_error(g) * std::abs(b) * 1.5);
            EXPECT_NEAR(
                out.b()(n, e), g * activated,
                activation_error(activation, activated) * std::abs(g) + kUnitRoundoff * std::abs(g * activated));
          }
        }
        EXPECT_TRUE(out.both.gaps_are_untouched());
        const Tensor<float, 2> gradient = dy.to<float>();
        const Halves swapped(random, 3, columns, side);
        copy(in.a(), swapped.a());
        copy(in.b(), swapped.b());
        gate_backward(engine, activation, swapped.a(), swapped.b(), gradient, swapped.b(), swapped.a());
        EXPECT_TRUE(same_bits(swapped.b(), out.a())) << "in place of the other";
        EXPECT_TRUE(same_bits(swapped.a(), out.b())) << "in place of the other";
        gate_backward(engine, activation, in.a(), in.b(), gradient, in.a(), in.b());
        EXPECT_TRUE(same_bits(in.both.view(), out.both.view())) << "in place";
      }
    }
  }
}

TEST_P(GateTest, GradientsOfEveryTypeAreRoundedOnce) {
  Engine engine(options());
  Random random(5);
  for (const NumberType of_a : kStoredTypes) {
    for (const NumberType of_dy : kStoredTypes) {
      for (const std::int64_t columns : {1, 31, 384, 2500}) {
        SCOPED_TRACE(testing::Message() << name(of_a) << ", " << name(of_dy) << ", " << columns);
        const GuardedMatrix a(of_a, 5, columns, 1, Against::back, random),
            b(of_a, 5, columns, 2, Against::back, random);
        const GuardedMatrix dy(of_dy, 5, columns, 0, Against::back, random);
        const GuardedMatrix da(of_dy, 5, columns, 3, Against::front, random);
        const Tensor<float, 2> a_floats = a.to(), b_floats = b.to(), dy_floats = dy.to();
        Tensor<float, 2> of_a_expected(a_floats.shape()), of_b_expected(a_floats.shape());
        gate_backward(engine, Activation::gelu, a_floats, b_floats, dy_floats, of_a_expected, of_b_expected);
        gate_backward(engine, Activation::gelu, a.const_view(), b.const_view(), dy.const_view(), da.view(), dy.view());
        EXPECT_TRUE(da.holds(of_a_expected));
        EXPECT_TRUE(dy.holds(of_b_expected)) << "in place of y_gradient";
        GuardedMatrix again(of_dy, 5, columns, 0, Against::back, random);
        for (std::int64_t n = 0; n < 5; ++n) {
          for (std::int64_t e = 0; e < columns; ++e) again.set(n, e, dy_floats(n, e));
        }
        gate_backward(engine, Activation::gelu, a.const_view(), b.const_view(), again.const_view(), a.view(), b.view());
        EXPECT_TRUE(a.holds(of_a_expected)) << "in place of a";
        EXPECT_TRUE(b.holds(of_b_expected)) << "in place of b";
      }
    }
  }
}

TEST(GateArguments, AreNamedWhenTheyAreWrong) {
  Engine engine;
  Tensor<float, 2> a({4, 6}), y({4, 5});
  EXPECT_EQ(refusal([&] { gate(engine, Activation::relu, a.view(), y.view(), a.view()); }),
            "gate: b has shape [4, 5], expected [4, 6] (the shape of a)");
  EXPECT_EQ(refusal([&] { gate(engine, Activation::relu, a.view(), a.view(), y.view()); }),
            "gate: y has shape [4, 5], expected [4, 6] (the shape of a)");
  EXPECT_EQ(refusal([&] { gate(engine, static_cast<Activation>(9), a.view(), a.view(), a.view()); }),
            "gate: activation is 9, expected one of the enum");
  const View<float, 2> one(a.data(), {1, 6}), later(a.data() + 3, {1, 6}), last(a.data() + 12, {1, 6});
  EXPECT_EQ(refusal([&] { gate(engine, Activation::relu, one, last, later); }), "gate: y overlaps a in memory");
  EXPECT_EQ(refusal([&] { gate(engine, Activation::relu, last, one, later); }), "gate: y overlaps b in memory");
  Tensor<float, 2> dy({4, 6}), da({4, 6});
  EXPECT_EQ(refusal([&] { gate_backward(engine, Activation::relu, a, a, y, da, dy); }),
            "gate_backward: y_gradient has shape [4, 5], expected [4, 6] (the shape of a)");
  EXPECT_EQ(refusal([&] { gate_backward(engine, Activation::relu, a, a, dy, dy, da); }),
            "gate_backward: a_gradient overlaps y_gradient in memory");
  EXPECT_EQ(refusal([&] { gate_backward(engine, Activation::relu, a, a, dy, da, da); }),
            "gate_backward: a_gradient overlaps b_gradient in memory");
}

}  // namespace headlight::test::gate_test
