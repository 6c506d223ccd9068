// The operations on rows of transformer blocks, as rows_operations.h has the others.
#pragma once

#include "headlight/gate.h"
#include "headlight/head_rows.h"
#include "reference/rotary.h"
#include "sweep/rows_operations.h"
#include "sweep/rows_typed.h"

namespace headlight::sweep {

struct RmsNorm : AnyRows {
  static constexpr float kEpsilon = 1e-5f;
  static RmsNormOptions options(const RowsCase& c, const RowsInput& in) {
    return {.weight = row_of(in.weight, c.weight), .one_plus_weight = c.one_plus, .epsilon = kEpsilon};
  }
  static void call(Engine& engine, const RowsCase& c, const RowsInput& in, RowsOutput& out) {
    RmsNormOptions asked = options(c, in);
    asked.added = rows_if(in.other, c.residual);
    rms_norm(engine, in.x.const_view(), out.y, asked);
  }
  template <class Scalar>
  static void twin(const RowsCase& c, const RowsNumbers<Scalar>& in, RowsResults<Scalar>& out) {
    reference::rms_norm<Scalar>(in.x, in.weight_if(c.weight), c.one_plus, static_cast<Scalar>(kEpsilon),
                                in.other_if(c.residual), out.y);
  }
  // |n w| + |added|
  static void sizes(const RowsCase& c, const RowsNumbers<double>& in, Sizes& to) {
    reference::rms_norm<double>(in.x, in.weight_if(c.weight), c.one_plus, static_cast<double>(kEpsilon), {}, to.y);
    for (std::int64_t n = 0; n < to.y.size(); ++n) {
      // One plus a weight may cancel.
      const double lost = c.one_plus && c.weight ? 1 : 0;
      to.y.data()[n] = std::abs(to.y.data()[n]) + lost + (c.residual ? std::abs(in.other.data()[n]) : 0);
    }
  }
};
inline void call_typed(RmsNorm, Engine& engine, const RowsCase& c, const TypedRowsInput& in,
                       const TypedRowsOutput& out) {
  RmsNormOptions asked = RmsNorm::options(c, in.given);
  asked.added = rows_if(in.other, c.residual);
  rms_norm(engine, in.x.const_view(), out.y, asked);
}

struct RmsNormBackward : AnyRows {
  template <class Output, class Other>
  static RmsNormGradients gradients(const RowsCase& c, Output& out, const Other& other) {
    RmsNormGradients made{.x = out.y, .residual = rows_if(other, c.residual)};
    if (c.bias) made.weight = out.of_weight;
    return made;
  }
  static void call(Engine& engine, const RowsCase& c, const RowsInput& in, RowsOutput& out) {
    rms_norm_backward(engine, in.x.const_view(), in.other.const_view(), gradients(c, out, in.other),
                      RmsNorm::options(c, in));
  }
  template <class Scalar>
  static void twin(const RowsCase& c, const RowsNumbers<Scalar>& in, RowsResults<Scalar>& out) {
    reference::rms_norm_backward<Scalar>(in.x, in.other, in.weight_if(c.weight), c.one_plus,
                                         static_cast<Scalar>(RmsNorm::kEpsilon), out.y,
                                         c.bias ? out.weight_sums() : View<Scalar, 1>());
    for (std::int64_t n = 0; c.residual && n < out.y.size(); ++n) out.y.data()[n] += in.other.data()[n];
  }
  static void sizes(const RowsCase& c, const RowsNumbers<double>& in, Sizes& to) {
    take_sizes(in.bias, to.of_weight);
    take_sizes(in.bias, to.of_bias);
    test::yardsticks::rms_norm_backward(in.x, in.other, in.weight_if(c.weight), c.one_plus,
                                        static_cast<double>(RmsNorm::kEpsilon), to.y,
                                        c.bias ? to.weight_sums() : View<double, 1>());
    for (std::int64_t n = 0; c.residual && n < to.y.size(); ++n) to.y.data()[n] += std::abs(in.other.data()[n]);
  }
};
inline void call_typed(RmsNormBackward, Engine& engine, const RowsCase& c, const TypedRowsInput& in,
                       const TypedRowsOutput& out) {
  rms_norm_backward(engine, in.x.const_view(), in.other.const_view(), RmsNormBackward::gradients(c, out, in.other),
                    RmsNorm::options(c, in.given));
}

struct Gate : AnyRows {
  static constexpr bool kSizesAreErrors = true;
  static void call(Engine& engine, const RowsCase& c, const RowsInput& in, RowsOutput& out) {
    gate(engine, c.activation, in.x.const_view(), in.other.const_view(), out.y);
  }
  template <class Scalar>
  static void twin(const RowsCase& c, const RowsNumbers<Scalar>& in, RowsResults<Scalar>& out) {
    for (std::int64_t n = 0; n < in.x.size(); ++n) {
      out.y.data()[n] = reference::activate(c.activation, in.x.data()[n]) * in.other.data()[n];
    }
  }
  static void sizes(const RowsCase& c, const RowsNumbers<double>& in, Sizes& to) {
    for (std::int64_t n = 0; n < in.x.size(); ++n) {
      const double activated = reference::activate(c.activation, in.x.data()[n]);
      const double error = test::activation_error(c.activation, activated) + test::kUnitRoundoff * std::abs(activated);
      to.y.data()[n] = error * std::abs(in.other.data()[n]);
    }
  }
};
inline void call_typed(Gate, Engine& engine, const RowsCase& c, const TypedRowsInput& in, const TypedRowsOutput& out) {
  gate(engine, c.activation, in.x.const_view(), in.other.const_view(), out.y);
}

// Of b, which is also the gradient that came in; both gradients one behind the other.
struct GateBackward : AnyRows {
  static constexpr bool kMayLieOnX = false;
  static constexpr bool kSizesAreErrors = true;
  static std::int64_t rows(const RowsCase& c) { return 2 * c.rows; }
  static void call(Engine& engine, const RowsCase& c, const RowsInput& in, RowsOutput& out) {
    const View<float, 2>& y = out.y;
    const std::array<std::int64_t, 2> shape = {c.rows, c.columns};
    gate_backward(engine, c.activation, in.x.const_view(), in.other.const_view(), in.other.const_view(),
                  View<float, 2>(y.data, shape, y.strides),
                  View<float, 2>(y.data + c.rows * y.stride(0), shape, y.strides));
  }
  template <class Scalar>
  static void twin(const RowsCase& c, const RowsNumbers<Scalar>& in, RowsResults<Scalar>& out) {
    for (std::int64_t n = 0; n < in.x.size(); ++n) {
      const Scalar x = in.x.data()[n], other = in.other.data()[n];
      out.y.data()[n] = other * other * reference::activation_derivative(c.activation, x);
      out.y.data()[in.x.size() + n] = other * reference::activate(c.activation, x);
    }
  }
  static void sizes(const RowsCase& c, const RowsNumbers<double>& in, Sizes& to) {
    for (std::int64_t n = 0; n < in.x.size(); ++n) {
      const double other = std::abs(in.other.data()[n]);
      const double activated = reference::activate(c.activation, in.x.data()[n]);
      to.y.data()[n] = 1.5 * test::activation_gradient_error(other * other);
      to.y.data()[in.x.size() + n] =
          other * (test::activation_error(c.activation, activated) + test::kUnitRoundoff * std::abs(activated));
    }
  }
};

// Weights of a head are the first of those of a row.
struct HeadRows : AnyRows {
  static constexpr float kEpsilon = 1e-5f;
  template <class AnyView>
  static auto heads_of(const RowsCase& c, const AnyView& rows) {
    const std::int64_t head_dim = c.columns / c.heads;
    auto made = AnyTypedView<3, decltype(rows.data)>();
    made.type = rows.type;
    made.data = rows.data;
    made.shape = {c.rows, c.heads, head_dim};
    made.strides = {rows.stride(0), head_dim, 1};
    return made;
  }
  static auto heads_of(const RowsCase& c, const View<const float, 2>& rows) { return heads_of(c, TypedView<2>(rows)); }
  static auto heads_of(const RowsCase& c, const View<float, 2>& rows) { return heads_of(c, MutableTypedView<2>(rows)); }
  static HeadRowsOptions options(const RowsCase& c, const RowsInput& in) {
    const auto head_dim = static_cast<std::size_t>(c.columns / c.heads);
    HeadRowsOptions made = {.norm = c.norm, .epsilon = kEpsilon, .rotation = {.pairing = c.pairing}};
    made.one_plus_weight = c.norm == NormKind::rms && c.one_plus;
    if (c.norm != NormKind::none && c.weight) made.weight = row_of(in.weight, true).first(head_dim);
    if (c.norm == NormKind::layer && c.bias) made.bias = row_of(in.bias, true).first(head_dim);
    if (c.dims > 0) made.rotation.cosines_and_sines = in.angles.const_view();
    return made;
  }
  template <class Scalar>
  static reference::HeadRows<Scalar> of_twin(const RowsCase& c, const RowsNumbers<Scalar>& in) {
    const std::int64_t head_dim = c.columns / c.heads;
    reference::HeadRows<Scalar> made = {.norm = c.norm, .epsilon = static_cast<Scalar>(kEpsilon), .pairing = c.pairing};
    made.one_plus_weight = c.norm == NormKind::rms && c.one_plus;
    if (c.norm != NormKind::none && c.weight) made.weight = {in.weight.data(), {head_dim}};
    if (c.norm == NormKind::layer && c.bias) made.bias = {in.bias.data(), {head_dim}};
    if (c.dims > 0) made.cosines_and_sines = in.angles.view();
    return made;
  }
  template <class Scalar>
  static Tensor<Scalar, 3> copied(const RowsCase& c, const Tensor<Scalar, 2>& rows) {
    Tensor<Scalar, 3> to({c.rows, c.heads, c.columns / c.heads});
    std::copy(rows.begin(), rows.end(), to.begin());
    return to;
  }
  static void call(Engine& engine, const RowsCase& c, const RowsInput& in, RowsOutput& out) {
    head_rows(engine, heads_of(c, in.x.const_view()), heads_of(c, out.y), options(c, in));
  }
  template <class Scalar>
  static void twin(const RowsCase& c, const RowsNumbers<Scalar>& in, RowsResults<Scalar>& out) {
    Tensor<Scalar, 3> y({c.rows, c.heads, c.columns / c.heads});
    reference::head_rows<Scalar>(copied(c, in.x), of_twin(c, in), y);
    std::copy(y.begin(), y.end(), out.y.begin());
  }
  // What is turned, by the sums of |cos| and |sin|.
  static void turn_sizes(const RowsCase& c, const RowsNumbers<double>& in, Tensor<double, 2>& rows) {
    Tensor<double, 3> sizes = copied(c, rows);
    for (double& each : sizes) each = std::abs(each);
    for (std::int64_t n = 0; n < c.rows; ++n) {
      for (std::int64_t h = 0; h < c.heads; ++h) {
        for (std::int64_t i = 0; i < c.dims / 2; ++i) {
          const bool halves = c.pairing == RotaryPairing::halves;
          double& a = sizes(n, h, halves ? i : 2 * i);
          double& b = sizes(n, h, halves ? c.dims / 2 + i : 2 * i + 1);
          const double cosine = std::abs(in.angles(n, halves ? i : 2 * i));
          const double sine = std::abs(in.angles(n, halves ? c.dims / 2 + i : 2 * i + 1));
          const double turned = a * cosine + b * sine;
          b = a * sine + b * cosine;
          a = turned;
        }
      }
    }
    std::copy(sizes.begin(), sizes.end(), rows.begin());
  }
  static void sizes(const RowsCase& c, const RowsNumbers<double>& in, Sizes& to) {
    reference::HeadRows<double> norm = of_twin(c, in);
    const std::array<std::int64_t, 2> shape = {c.rows * c.heads, c.columns / c.heads};
    if (c.norm == NormKind::layer) {
      test::yardsticks::layer_norm(View<const double, 2>(in.x.data(), shape), norm.weight, norm.bias, norm.epsilon,
                                   View<double, 2>(to.y.data(), shape));
    } else {
      norm.cosines_and_sines = {};
      Tensor<double, 3> y({c.rows, c.heads, shape[1]});
      reference::head_rows<double>(copied(c, in.x), norm, y);
      std::copy(y.begin(), y.end(), to.y.begin());
      for (double& each : to.y) each = std::abs(each) + (norm.one_plus_weight && norm.weight ? 1 : 0);
    }
    turn_sizes(c, in, to.y);
  }
};
inline void call_typed(HeadRows, Engine& engine, const RowsCase& c, const TypedRowsInput& in,
                       const TypedRowsOutput& out) {
  head_rows(engine, HeadRows::heads_of(c, in.x.const_view()), HeadRows::heads_of(c, out.y),
            HeadRows::options(c, in.given));
}

struct HeadRowsBackward : AnyRows {
  template <class Output>
  static HeadRowsGradients gradients(const RowsCase& c, const Output& out) {
    const auto head_dim = static_cast<std::size_t>(c.columns / c.heads);
    HeadRowsGradients made{.x = HeadRows::heads_of(c, out.y)};
    if (c.norm != NormKind::none) made.weight = out.of_weight.first(head_dim);
    if (c.norm == NormKind::layer) made.bias = out.of_bias.first(head_dim);
    return made;
  }
  static void call(Engine& engine, const RowsCase& c, const RowsInput& in, RowsOutput& out) {
    head_rows_backward(engine, HeadRows::heads_of(c, in.x.const_view()), HeadRows::heads_of(c, in.other.const_view()),
                       gradients(c, out), HeadRows::options(c, in));
  }
  template <class Scalar>
  static void twin(const RowsCase& c, const RowsNumbers<Scalar>& in, RowsResults<Scalar>& out) {
    const std::int64_t head_dim = c.columns / c.heads;
    Tensor<Scalar, 3> x({c.rows, c.heads, head_dim});
    reference::head_rows_backward<Scalar>(
        HeadRows::copied(c, in.x), HeadRows::copied(c, in.other), HeadRows::of_twin(c, in), x,
        c.norm == NormKind::none ? View<Scalar, 1>() : View<Scalar, 1>(out.of_weight.data(), {head_dim}),
        c.norm == NormKind::layer ? View<Scalar, 1>(out.of_bias.data(), {head_dim}) : View<Scalar, 1>());
    std::copy(x.begin(), x.end(), out.y.begin());
  }
  static void sizes(const RowsCase& c, const RowsNumbers<double>& in, Sizes& to) {
    const reference::HeadRows<double> norm = HeadRows::of_twin(c, in);
    const std::array<std::int64_t, 2> shape = {c.rows * c.heads, c.columns / c.heads};
    Tensor<double, 2> turned({c.rows, c.columns});
    std::copy(in.other.begin(), in.other.end(), turned.begin());
    HeadRows::turn_sizes(c, in, turned);
    take_sizes(in.bias, to.of_weight);
    take_sizes(in.bias, to.of_bias);
    const View<const double, 2> x(in.x.data(), shape), by(turned.data(), shape);
    const View<double, 2> y(to.y.data(), shape);
    const View<double, 1> weight(to.of_weight.data(), {shape[1]}), bias(to.of_bias.data(), {shape[1]});
    if (c.norm == NormKind::rms) {
      test::yardsticks::rms_norm_backward(x, by, norm.weight, norm.one_plus_weight, norm.epsilon, y, weight);
    } else if (c.norm == NormKind::layer) {
      test::yardsticks::layer_norm_backward(x, by, norm.weight, norm.epsilon, y, weight, bias);
    } else {
      std::copy(turned.begin(), turned.end(), to.y.begin());
    }
  }
};
inline void call_typed(HeadRowsBackward, Engine& engine, const RowsCase& c, const TypedRowsInput& in,
                       const TypedRowsOutput& out) {
  head_rows_backward(engine, HeadRows::heads_of(c, in.x.const_view()), HeadRows::heads_of(c, in.other.const_view()),
                     HeadRowsBackward::gradients(c, out), HeadRows::options(c, in.given));
}

}  // namespace headlight::sweep
