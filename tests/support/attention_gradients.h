// What a call of attention_backward() gives, and what its errors are measured by.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "headlight/attention_backward.h"
#include "reference/attention.h"
#include "reference/attention_backward.h"
#include "support/attention_case.h"
#include "support/compare.h"
#include "support/golden.h"

namespace headlight::test {

template <class Scalar>
struct GradientTensors {
  explicit GradientTensors(const AttentionInputs& in)
      : query(in.query.shape()),
        key(in.key.shape()),
        value(in.value.shape()),
        bias(in.bias.shape()),
        sinks({static_cast<std::int64_t>(in.sinks.size())}) {}
  Tensor<Scalar, 4> query;
  Tensor<Scalar, 4> key;
  Tensor<Scalar, 4> value;
  Tensor<Scalar, 4> bias;
  Tensor<Scalar, 1> sinks;

  // So that what is left unwritten shows, even where the truth is 0.
  void fill(Scalar number) {
    for (Tensor<Scalar, 4>* tensor : {&query, &key, &value, &bias}) std::fill(tensor->begin(), tensor->end(), number);
    std::fill(sinks.begin(), sinks.end(), number);
  }

  // What attention_backward() or its twin is asked for: a bias and sinks where there are some.
  template <class Gradients>
  [[nodiscard]] Gradients asked() {
    Gradients gradients{query, key, value};
    if (bias.size() != 0) gradients.bias = bias;
    if (sinks.size() != 0) gradients.sinks = sinks;
    return gradients;
  }
};

[[nodiscard]] inline Tensor<float, 4> out_gradient_of(const AttentionCase& c) {
  Random random(c.seed + 0x5EED);
  return random.normal_tensor<4>({c.batch, c.query_length, c.query_heads, c.value_dim});
}

// Where the sum depends on log_sum_exp too.
[[nodiscard]] inline Tensor<float, 3> log_sum_exp_gradient_of(const AttentionCase& c) {
  Random random(c.seed + 0x15E);
  return random.normal_tensor<3>({c.batch, c.query_heads, c.query_length});
}

// What PyTorch computed for the next case of attention_backward_cases.txt.
[[nodiscard]] inline GradientTensors<double> golden_gradients(GoldenNumbers& golden, const AttentionInputs& in) {
  GradientTensors<double> truth(in);
  for (Tensor<double, 4>* tensor : {&truth.query, &truth.key, &truth.value, &truth.bias}) {
    if (tensor->size() != 0) *tensor = golden.next<4>(tensor->shape());
  }
  if (truth.sinks.size() != 0) truth.sinks = golden.next<1>(truth.sinks.shape());
  return truth;
}

// By the twin, from the inputs in its own precision. A log_sum_exp_gradient without memory is none.
template <class Scalar>
GradientTensors<Scalar> plain_gradients(const AttentionInputs& in, const Tensor<float, 4>& out_gradient,
                                        const Tensor<float, 3>& log_sum_exp_gradient = {}) {
  GradientTensors<Scalar> plain(in);
  const auto by_log_sum_exp = converted<Scalar>(log_sum_exp_gradient);
  reference::attention_backward<Scalar>(converted<Scalar>(in.query), converted<Scalar>(in.key),
                                        converted<Scalar>(in.value), converted<Scalar>(out_gradient),
                                        plain.template asked<reference::AttentionGradients<Scalar>>(), in.options,
                                        by_log_sum_exp.size() == 0 ? View<const Scalar, 3>() : by_log_sum_exp.view());
  return plain;
}

// Gradients are sums that cancel: dP − δ is 0 for a row that sees one key, whatever the size of both. So errors are
// measured by what was added up: dV by Σ_i P Z |dO|, dQ by scale · Σ_j P (|dP| + |δ|) |K|, dK and d(bias) likewise,
// d(sinks) by Σ_i P_sink |δ|, with |dP| for Σ_d |dO_d V_d|. A gradient by log_sum_exp adds its size to |δ|.
[[nodiscard]] GradientTensors<double> gradient_yardsticks(const AttentionInputs& in,
                                                          const Tensor<float, 4>& out_gradient,
                                                          const Tensor<float, 3>& log_sum_exp_gradient = {});

// All gradients within the promise.
inline void expect_close_gradients(const GradientTensors<float>& actual, const GradientTensors<float>& plain,
                                   const GradientTensors<double>& truth, const GradientTensors<double>& yardsticks) {
  const auto close = [](const auto& a, const auto& p, const auto& t, const auto& y) {
    return at_most_twice_the_plain_error(a.view(), p.view(), t.view(), y.view());
  };
  EXPECT_TRUE(close(actual.query, plain.query, truth.query, yardsticks.query)) << "query";
  EXPECT_TRUE(close(actual.key, plain.key, truth.key, yardsticks.key)) << "key";
  EXPECT_TRUE(close(actual.value, plain.value, truth.value, yardsticks.value)) << "value";
  EXPECT_TRUE(close(actual.bias, plain.bias, truth.bias, yardsticks.bias)) << "bias";
  EXPECT_TRUE(close(actual.sinks, plain.sinks, truth.sinks, yardsticks.sinks)) << "sinks";
}

}  // namespace headlight::test
