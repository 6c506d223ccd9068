// The row-wise operations, each as the sweep sees it:
//   call()   the engine's; y may lie where x does if kMayLieOn says so
//   twin()   in either precision
//   sizes()  what errors are measured by, or, with kSizesAreErrors, what each element may be off by
#pragma once

#include <array>

#include "headlight/dropout.h"
#include "headlight/gemm.h"
#include "headlight/loss.h"
#include "headlight/normalization.h"
#include "reference/activation.h"
#include "reference/dropout.h"
#include "reference/embedding.h"
#include "reference/loss.h"
#include "reference/normalization.h"
#include "support/row_yardsticks.h"
#include "sweep/rows_case.h"

namespace headlight::sweep {

inline std::span<const float> row_of(const test::GuardedRows& row, bool is_given) {
  const View<float, 2> view = row.view();
  return is_given ? std::span<const float>(view.data, static_cast<std::size_t>(view.extent(1)))
                  : std::span<const float>();
}
inline View<const float, 2> rows_if(const test::GuardedRows& rows, bool is_given) {
  return is_given ? rows.const_view() : View<const float, 2>();
}
inline void take_sizes(const Tensor<double, 2>& from, Tensor<double, 2>& sizes) {
  for (std::int64_t n = 0; n < from.size(); ++n) sizes.data()[n] = std::abs(from.data()[n]);
}

using Sizes = RowsResults<double>;

struct AnyRows {
  static constexpr bool kMayLieOnX = true;
  static constexpr bool kSizesAreErrors = false;
  static constexpr bool kWritesTable = false;  // y begins as the table, and has its type
  static std::int64_t rows(const RowsCase& c) { return c.rows; }
};

struct Softmax : AnyRows {
  static void call(Engine& engine, const RowsCase&, const RowsInput& in, RowsOutput& out) {
    softmax(engine, in.x.const_view(), out.y);
  }
  template <class Scalar>
  static void twin(const RowsCase&, const RowsNumbers<Scalar>& in, RowsResults<Scalar>& out) {
    reference::softmax<Scalar>(in.x, out.y);
  }
  static void sizes(const RowsCase& c, const RowsNumbers<double>& in, Sizes& to) { twin<double>(c, in, to); }
};

// Of any y, which need not be a softmax.
struct SoftmaxBackward : AnyRows {
  static void call(Engine& engine, const RowsCase&, const RowsInput& in, RowsOutput& out) {
    softmax_backward(engine, in.x.const_view(), in.other.const_view(), out.y);
  }
  template <class Scalar>
  static void twin(const RowsCase&, const RowsNumbers<Scalar>& in, RowsResults<Scalar>& out) {
    reference::softmax_backward<Scalar>(in.x, in.other, out.y);
  }
  static void sizes(const RowsCase& c, const RowsNumbers<double>& in, Sizes& to) {
    for (std::int64_t n = 0; n < c.rows; ++n) {
      double sum = 0;
      for (std::int64_t e = 0; e < c.columns; ++e) sum += std::abs(in.x(n, e) * in.other(n, e));
      for (std::int64_t e = 0; e < c.columns; ++e) to.y(n, e) = std::abs(in.x(n, e)) * (std::abs(in.other(n, e)) + sum);
    }
  }
};

struct LayerNorm : AnyRows {
  static constexpr float kEpsilon = 1e-5f;
  static LayerNormOptions options(const RowsCase& c, const RowsInput& in) {
    return {.weight = row_of(in.weight, c.weight), .bias = row_of(in.bias, c.bias), .epsilon = kEpsilon};
  }
  static void call(Engine& engine, const RowsCase& c, const RowsInput& in, RowsOutput& out) {
    LayerNormOptions asked = options(c, in);
    asked.residual = rows_if(in.other, c.residual);
    layer_norm(engine, in.x.const_view(), out.y, asked);
  }
  template <class Scalar>
  static void twin(const RowsCase& c, const RowsNumbers<Scalar>& in, RowsResults<Scalar>& out) {
    reference::layer_norm<Scalar>(in.x, in.other_if(c.residual), in.weight_if(c.weight), in.bias_if(c.bias),
                                  static_cast<Scalar>(kEpsilon), out.y);
  }
  static void sizes(const RowsCase& c, const RowsNumbers<double>& in, Sizes& to) {
    // x + residual is rounded, too: to what a float holds of their sizes.
    Tensor<double, 2> sum(in.x.shape());
    for (std::int64_t n = 0; n < sum.size(); ++n) {
      sum.data()[n] = in.x.data()[n] + (c.residual ? in.other.data()[n] : 0);
    }
    test::yardsticks::layer_norm(sum, in.weight_if(c.weight), in.bias_if(c.bias), static_cast<double>(kEpsilon), to.y);
  }
};

struct LayerNormBackward : AnyRows {
  static void call(Engine& engine, const RowsCase& c, const RowsInput& in, RowsOutput& out) {
    LayerNormGradients gradients{.x = out.y};
    // What is added is the gradient that came in: it is read before its place is written.
    gradients.residual = rows_if(in.other, c.residual);
    if (c.bias) {
      gradients.weight = out.of_weight;
      gradients.bias = out.of_bias;
    }
    layer_norm_backward(engine, in.x.const_view(), in.other.const_view(), gradients,
                        {.weight = row_of(in.weight, c.weight), .epsilon = LayerNorm::kEpsilon});
  }
  template <class Scalar>
  static void twin(const RowsCase& c, const RowsNumbers<Scalar>& in, RowsResults<Scalar>& out) {
    reference::layer_norm_backward<Scalar>(
        in.x, in.other, in.weight_if(c.weight), static_cast<Scalar>(LayerNorm::kEpsilon), out.y,
        c.bias ? out.weight_sums() : View<Scalar, 1>(), c.bias ? out.bias_sums() : View<Scalar, 1>());
    for (std::int64_t n = 0; c.residual && n < out.y.size(); ++n) out.y.data()[n] += in.other.data()[n];
  }
  static void sizes(const RowsCase& c, const RowsNumbers<double>& in, Sizes& to) {
    take_sizes(in.bias, to.of_weight);
    take_sizes(in.bias, to.of_bias);
    test::yardsticks::layer_norm_backward(
        in.x, in.other, in.weight_if(c.weight), static_cast<double>(LayerNorm::kEpsilon), to.y,
        c.bias ? to.weight_sums() : View<double, 1>(), c.bias ? to.bias_sums() : View<double, 1>());
    for (std::int64_t n = 0; c.residual && n < to.y.size(); ++n) to.y.data()[n] += std::abs(in.other.data()[n]);
  }
};

struct Activate : AnyRows {
  static constexpr bool kSizesAreErrors = true;
  static void call(Engine& engine, const RowsCase& c, const RowsInput& in, RowsOutput& out) {
    activate(engine, c.activation, in.x.const_view(), out.y);
  }
  template <class Scalar>
  static void twin(const RowsCase& c, const RowsNumbers<Scalar>& in, RowsResults<Scalar>& out) {
    for (std::int64_t n = 0; n < in.x.size(); ++n) {
      out.y.data()[n] = reference::activate(c.activation, in.x.data()[n]);
    }
  }
  static void sizes(const RowsCase& c, const RowsNumbers<double>& in, Sizes& to) {
    twin<double>(c, in, to);
    for (double& each : to.y) each = test::activation_error(c.activation, each);
  }
};

struct ActivateBackward : AnyRows {
  static constexpr bool kSizesAreErrors = true;
  static void call(Engine& engine, const RowsCase& c, const RowsInput& in, RowsOutput& out) {
    activate_backward(engine, c.activation, in.x.const_view(), in.other.const_view(), out.y);
  }
  template <class Scalar>
  static void twin(const RowsCase& c, const RowsNumbers<Scalar>& in, RowsResults<Scalar>& out) {
    for (std::int64_t n = 0; n < in.x.size(); ++n) {
      out.y.data()[n] = in.other.data()[n] * reference::activation_derivative(c.activation, in.x.data()[n]);
    }
  }
  static void sizes(const RowsCase&, const RowsNumbers<double>& in, Sizes& to) {
    for (std::int64_t n = 0; n < in.x.size(); ++n) {
      to.y.data()[n] = test::activation_gradient_error(in.other.data()[n]);
    }
  }
};

struct DropoutRows : AnyRows {
  static Dropout options(const RowsCase& c) {
    return {c.probability, 0x9E3779B97F4A7C15u * (c.seed + 1), static_cast<std::uint32_t>(c.seed) + 7};
  }
  static void call(Engine& engine, const RowsCase& c, const RowsInput& in, RowsOutput& out) {
    dropout(engine, in.x.const_view(), out.y, options(c), rows_if(in.other, c.residual));
  }
  template <class Scalar>
  static void twin(const RowsCase& c, const RowsNumbers<Scalar>& in, RowsResults<Scalar>& out) {
    reference::dropout<Scalar>(in.x, out.y, options(c), in.other_if(c.residual));
  }
  static void sizes(const RowsCase& c, const RowsNumbers<double>& in, Sizes& to) {
    reference::dropout<double>(in.x, to.y, options(c));
    for (std::int64_t n = 0; n < to.y.size(); ++n) {
      to.y.data()[n] = std::abs(to.y.data()[n]) + (c.residual ? std::abs(in.other.data()[n]) : 0);
    }
  }
};

// Of the same table several times, by ids that differ.
struct Embed : AnyRows {
  static constexpr bool kMayLieOnX = false;
  static std::vector<std::int64_t> ids(const RowsCase& c, const RowsInput& in, std::int64_t table) {
    std::vector<std::int64_t> made = in.ids;
    for (std::int64_t& id : made) id = (id + table) % c.groups;
    return made;
  }
  static void call(Engine& engine, const RowsCase& c, const RowsInput& in, RowsOutput& out) {
    std::vector<std::vector<std::int64_t>> all;
    std::vector<Embedding> tables;
    for (std::int64_t t = 0; t < c.tables; ++t) all.push_back(ids(c, in, t));
    for (const auto& each : all) tables.push_back({in.table.const_view(), each});
    embed(engine, tables, out.y);
  }
  template <class Scalar>
  static void sum(const RowsCase& c, const RowsInput& in, const Tensor<Scalar, 2>& table, Tensor<Scalar, 2>& out) {
    std::vector<std::vector<std::int64_t>> all;
    std::vector<reference::Embedding<Scalar>> tables;
    for (std::int64_t t = 0; t < c.tables; ++t) all.push_back(ids(c, in, t));
    for (const auto& each : all) tables.push_back({table.view(), each});
    reference::embed<Scalar>(tables, out.view());
  }
  template <class Scalar>
  static void twin(const RowsCase& c, const RowsNumbers<Scalar>& in, RowsResults<Scalar>& out) {
    sum(c, in.given, in.table, out.y);
  }
  static void sizes(const RowsCase& c, const RowsNumbers<double>& in, Sizes& to) {
    Tensor<double, 2> table(in.table.shape());
    take_sizes(in.table, table);
    sum(c, in.given, table, to.y);
  }
};

struct EmbedBackward : AnyRows {
  static constexpr bool kMayLieOnX = false;
  static constexpr bool kWritesTable = true;
  static std::int64_t rows(const RowsCase& c) { return c.groups; }
  static void call(Engine& engine, const RowsCase&, const RowsInput& in, RowsOutput& out) {
    for (std::int64_t n = 0; n < out.y.extent(0); ++n) {
      for (std::int64_t e = 0; e < out.y.extent(1); ++e) out.y(n, e) = in.table.view()(n, e);
    }
    embed_backward(engine, in.x.const_view(), std::array{EmbeddingGradient{out.y, in.ids}});
  }
  template <class Scalar>
  static void twin(const RowsCase&, const RowsNumbers<Scalar>& in, RowsResults<Scalar>& out) {
    std::copy(in.table.begin(), in.table.end(), out.y.begin());
    reference::embed_backward<Scalar>(in.x, in.given.ids, out.y);
  }
  static void sizes(const RowsCase&, const RowsNumbers<double>& in, Sizes& to) {
    Tensor<double, 2> x(in.x.shape());
    take_sizes(in.x, x);
    take_sizes(in.table, to.y);
    reference::embed_backward<double>(x, in.given.ids, to.y);
  }
};

struct MeanPool : AnyRows {
  static constexpr bool kMayLieOnX = false;
  static std::int64_t rows(const RowsCase& c) { return c.groups; }
  static void call(Engine& engine, const RowsCase& c, const RowsInput& in, RowsOutput& out) {
    mean_pool(engine, in.x.const_view(), in.offsets, out.y, c.normalize);
  }
  template <class Scalar>
  static void twin(const RowsCase& c, const RowsNumbers<Scalar>& in, RowsResults<Scalar>& out) {
    reference::mean_pool<Scalar>(in.x, in.given.offsets, out.y, c.normalize);
  }
  static void sizes(const RowsCase& c, const RowsNumbers<double>& in, Sizes& to) {
    test::yardsticks::mean_pool(in.x, in.given.offsets, to.y, c.normalize);
  }
};

// The gradient of the pooled rows is the table.
struct MeanPoolBackward : AnyRows {
  static constexpr bool kMayLieOnX = false;
  static void call(Engine& engine, const RowsCase& c, const RowsInput& in, RowsOutput& out) {
    mean_pool_backward(engine, in.x.const_view(), in.offsets, in.table.const_view(), out.y, c.normalize);
  }
  template <class Scalar>
  static void twin(const RowsCase& c, const RowsNumbers<Scalar>& in, RowsResults<Scalar>& out) {
    reference::mean_pool_backward<Scalar>(in.x, in.given.offsets, in.table, out.y, c.normalize);
  }
  static void sizes(const RowsCase& c, const RowsNumbers<double>& in, Sizes& to) {
    test::yardsticks::mean_pool_backward(in.x, in.given.offsets, in.table, to.y, c.normalize);
  }
};

struct BiasBackward : AnyRows {
  static constexpr bool kMayLieOnX = false;
  static std::int64_t rows(const RowsCase&) { return 0; }
  static void call(Engine& engine, const RowsCase&, const RowsInput& in, RowsOutput& out) {
    bias_backward(engine, in.x.const_view(), out.of_bias);
  }
  template <class Scalar>
  static void twin(const RowsCase& c, const RowsNumbers<Scalar>& in, RowsResults<Scalar>& out) {
    for (std::int64_t n = 0; n < c.rows; ++n) {
      for (std::int64_t e = 0; e < c.columns; ++e) out.of_bias(0, e) += in.x(n, e);
    }
  }
  static void sizes(const RowsCase& c, const RowsNumbers<double>& in, Sizes& to) {
    take_sizes(in.bias, to.of_bias);
    for (std::int64_t n = 0; n < c.rows; ++n) {
      for (std::int64_t e = 0; e < c.columns; ++e) to.of_bias(0, e) += std::abs(in.x(n, e));
    }
  }
};

struct CrossEntropyRows : AnyRows {
  static void call(Engine& engine, const RowsCase&, const RowsInput& in, RowsOutput& out) {
    out.loss = cross_entropy(engine, in.x.const_view(), in.labels, {.logits_gradient = out.y}).loss;
  }
  template <class Scalar>
  static void twin(const RowsCase&, const RowsNumbers<Scalar>& in, RowsResults<Scalar>& out) {
    out.loss = static_cast<double>(reference::cross_entropy<Scalar>(in.x, in.given.labels, -100, out.y));
  }
  // (softmax + [label]) / rows that count. The loss is a logarithm of a sum and a difference of logits.
  static void sizes(const RowsCase& c, const RowsNumbers<double>& in, Sizes& to) {
    twin<double>(c, in, to);
    const auto& labels = in.given.labels;
    const auto counted = static_cast<double>(c.rows - std::count(labels.begin(), labels.end(), -100));
    for (std::int64_t n = 0; n < c.rows; ++n) {
      const std::int64_t label = labels[static_cast<std::size_t>(n)];
      if (label >= 0) to.y(n, label) += 2 / counted;
    }
    to.loss = 1;
    for (const double each : in.x) to.loss = std::max(to.loss, std::abs(each));
  }
};

}  // namespace headlight::sweep
