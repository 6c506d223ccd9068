// Random matrix products for the tests, with everything that a product can be asked for, and their float64 truth.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/gemm.h"
#include "reference/gemm.h"
#include "support/quick.h"
#include "support/random.h"

namespace headlight::test {

// Rows further apart than they are long, to see that only what belongs to the matrix is used: the gaps hold NaN.
class Matrix {
 public:
  Matrix() = default;
  Matrix(Random& random, std::int64_t rows, std::int64_t columns, std::int64_t gap, std::int64_t batch = 1)
      : storage_(static_cast<std::size_t>(std::max<std::int64_t>(batch * rows * (columns + gap), 1)), std::nanf("")),
        shape_{batch, rows, columns},
        stride_(columns + gap) {
    for (std::int64_t row = 0; row < batch * rows; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) {
        storage_[static_cast<std::size_t>(row * stride_ + column)] = random.uniform();
      }
    }
  }

  [[nodiscard]] View<float, 3> views() { return {storage_.data(), shape_, {shape_[1] * stride_, stride_, 1}}; }
  [[nodiscard]] View<float, 2> view(std::int64_t item = 0) {
    return {storage_.data() + item * shape_[1] * stride_, {shape_[1], shape_[2]}, {stride_, 1}};
  }
  // The elements and the gaps between them.
  [[nodiscard]] const std::vector<float>& memory() const { return storage_; }

 private:
  std::vector<float> storage_;
  View<float, 3>::Shape shape_{};
  std::int64_t stride_ = 0;
};

struct GemmCase {
  std::int64_t m = 0, n = 0, k = 0;
  Transpose transpose_a = Transpose::no;
  Transpose transpose_b = Transpose::no;
  float alpha = 1;
  float beta = 0;
  bool bias = false;
  bool residual = false;
  Activation activation = Activation::none;
  std::int64_t gap = 0;  // between rows of every operand

  [[nodiscard]] std::string text() const {
    return std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) +
           (transpose_a == Transpose::yes ? " transpose_a" : "") +
           (transpose_b == Transpose::yes ? " transpose_b" : "") + " alpha " + std::to_string(alpha) + " beta " +
           std::to_string(beta) + (bias ? " bias" : "") + (residual ? " residual" : "") + " activation " +
           std::to_string(static_cast<int>(activation)) + " gap " + std::to_string(gap);
  }

  [[nodiscard]] static GemmCase random(Random& random, const std::vector<std::int64_t>& sizes) {
    const auto size = [&] { return sizes[static_cast<std::size_t>(random.integer(0, std::ssize(sizes) - 1))]; };
    GemmCase made;
    made.m = size();
    made.n = size();
    made.k = size();
    if (random.once_in(2)) made.transpose_a = Transpose::yes;
    if (random.once_in(2)) made.transpose_b = Transpose::yes;
    if (random.once_in(2)) made.alpha = random.uniform();
    if (random.once_in(2)) made.beta = random.uniform();
    made.bias = random.once_in(2);
    made.residual = random.once_in(3);
    made.activation = static_cast<Activation>(random.integer(0, static_cast<int>(kLastActivation)));
    made.gap = random.once_in(2) ? random.integer(1, 5) : 0;
    return made;
  }
};

struct GemmOperands {
  Matrix a, b, c, residual;
  Tensor<float, 1> bias;
  GemmOptions options;

  GemmOperands(Random& random, const GemmCase& made)
      : a(made.transpose_a == Transpose::yes ? Matrix(random, made.k, made.m, made.gap)
                                             : Matrix(random, made.m, made.k, made.gap)),
        b(made.transpose_b == Transpose::yes ? Matrix(random, made.n, made.k, made.gap)
                                             : Matrix(random, made.k, made.n, made.gap)),
        c(random, made.m, made.n, made.gap) {
    options.transpose_a = made.transpose_a;
    options.transpose_b = made.transpose_b;
    options.alpha = made.alpha;
    options.beta = made.beta;
    options.activation = made.activation;
    if (made.bias) {
      bias = random.uniform_tensor<1>({made.n});
      options.bias = {bias.data(), static_cast<std::size_t>(made.n)};
    }
    if (made.residual) {
      residual = Matrix(random, made.m, made.n, made.gap);
      options.residual = residual.view();
    }
  }
};

// The float64 product, and what its float32 twin may be off by: each of the K steps of a sum and of the few operations
// behind it rounds once, relative to the sizes of what is added, |α||A||B| + |βC| + |bias|; the activations are nowhere
// steeper than 1.13 and err by less than 4u of their value and 4u absolute.
struct GemmTruth {
  Tensor<double, 2> value;
  Tensor<double, 2> allowed;

  explicit GemmTruth(GemmOperands& operands)
      : GemmTruth(operands, doubles(operands.a.view()), doubles(operands.b.view()),
                  operands.a.view().extent(operands.options.transpose_a == Transpose::yes ? 0 : 1)) {}

  // Of other numbers than those of a and b, stored as they are, and sums that are rounded so often.
  GemmTruth(GemmOperands& operands, Tensor<double, 2> a, Tensor<double, 2> b, std::int64_t roundings) {
    const View<float, 2> c = operands.c.view();
    value = doubles(c);
    allowed = doubles(c);
    for (double& element : allowed) element = std::abs(element);
    Tensor<double, 2> residual = operands.options.residual ? doubles(operands.residual.view()) : Tensor<double, 2>();
    Tensor<double, 1> bias({static_cast<std::int64_t>(operands.options.bias.size())});
    std::copy(operands.options.bias.begin(), operands.options.bias.end(), bias.begin());

    reference::GemmOptions<double> options;
    options.transpose_a = operands.options.transpose_a;
    options.transpose_b = operands.options.transpose_b;
    options.alpha = operands.options.alpha;
    options.beta = operands.options.beta;
    options.activation = operands.options.activation;
    if (!operands.options.bias.empty()) options.bias = bias.view();
    if (operands.options.residual) options.residual = residual.view();
    reference::gemm<double>(a, b, value, options);

    for (double& element : a) element = std::abs(element);
    for (double& element : b) element = std::abs(element);
    for (double& element : bias) element = std::abs(element);
    options.alpha = std::abs(options.alpha);
    options.beta = std::abs(options.beta);
    options.activation = Activation::none;
    options.residual = {};
    reference::gemm<double>(a, b, allowed, options);
    const double unit = 0x1p-24;
    for (std::int64_t n = 0; n < allowed.size(); ++n) {
      double& element = allowed.data()[n];
      element = 1.13 * static_cast<double>(roundings + 8) * unit * element + 8 * unit * (1 + std::abs(value.data()[n]));
    }
    for (std::int64_t n = 0; n < residual.size(); ++n) allowed.data()[n] += 8 * unit * std::abs(residual.data()[n]);
  }

 private:
  static Tensor<double, 2> doubles(View<const float, 2> view) {
    Tensor<double, 2> made(view.shape);
    for (std::int64_t i = 0; i < view.extent(0); ++i) {
      for (std::int64_t j = 0; j < view.extent(1); ++j) made(i, j) = static_cast<double>(view(i, j));
    }
    return made;
  }
};

// Around every vector width, panel width and tile height.
inline const std::vector<std::int64_t> kGemmSizes = {0,  1,  2,  3,  4,  5,  6,  7,  8,  11, 12, 13, 15,
                                                     16, 17, 24, 25, 31, 32, 33, 47, 64, 65, 97, 129};

[[nodiscard]] inline testing::AssertionResult agrees(View<const float, 2> c, const GemmTruth& truth) {
  for (std::int64_t i = 0; i < c.extent(0); ++i) {
    for (std::int64_t j = 0; j < c.extent(1); ++j) {
      const double error = std::abs(static_cast<double>(c(i, j)) - truth.value(i, j));
      if (!(error <= truth.allowed(i, j))) {
        return testing::AssertionFailure() << "c(" << i << ", " << j << ") = " << c(i, j) << ", expected "
                                           << truth.value(i, j) << " within " << truth.allowed(i, j);
      }
    }
  }
  return testing::AssertionSuccess();
}

// Nothing but C's elements may have changed in its memory: the gaps still hold NaN.
[[nodiscard]] inline testing::AssertionResult gaps_are_untouched(Matrix& c) {
  const std::vector<float>& memory = c.memory();
  const View<float, 2> view = c.view();
  for (std::int64_t i = 0; i < view.extent(0); ++i) {
    for (std::int64_t j = view.extent(1); j < view.stride(0); ++j) {
      if (!std::isnan(memory[static_cast<std::size_t>(i * view.stride(0) + j)])) {
        return testing::AssertionFailure() << "written behind row " << i << " at column " << j;
      }
    }
  }
  return testing::AssertionSuccess();
}

// Calls check(random, made) over ragged sizes, and over what fills a tile in part, until something has failed.
template <class Check>
void for_ragged_cases(Check check) {
  Random random(1);
  for (int repeat = 0; repeat < count(600, 100); ++repeat) {
    check(random, GemmCase::random(random, kGemmSizes));
    if (testing::Test::HasFailure()) return;
  }
}
template <class Check>
void for_cases_of_every_tile(Check check) {
  Random random(2);
  for (std::int64_t m = 1; m <= 20; ++m) {
    for (std::int64_t n = 1; n <= count(70, 20); ++n) {
      GemmCase made = GemmCase::random(random, {5, 6});
      made.m = m;
      made.n = n;
      check(random, made);
      if (testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace headlight::test
