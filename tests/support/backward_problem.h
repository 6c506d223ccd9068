// A case of attention_backward(), and what its gradients are held against.
#pragma once

#include "headlight/attention_backward.h"
#include "support/attention_case.h"
#include "support/attention_gradients.h"

namespace headlight::test {

// A case, its forward results, and calls of its backward pass.
struct BackwardProblem {
  explicit BackwardProblem(const AttentionCase& c_)
      : c(c_),
        in(c),
        out_gradient(out_gradient_of(c)),
        out(out_gradient.shape()),
        log_sum_exp({c.batch, c.query_heads, c.query_length}) {}

  void forward(Engine& engine) {
    AttentionOptions options = in.options;
    options.log_sum_exp = log_sum_exp;
    attention(engine, in.query, in.key, in.value, out, options);
  }
  void backward(Engine& engine, const AttentionGradients& gradients) {
    attention_backward(engine, in.query, in.key, in.value, out, log_sum_exp, out_gradient, gradients, in.options);
  }
  // Whatever is not written stands out.
  GradientTensors<float> both(Engine& engine) {
    forward(engine);
    GradientTensors<float> gradients(in);
    gradients.fill(1e30f);
    backward(engine, gradients.asked<AttentionGradients>());
    return gradients;
  }

  AttentionCase c;
  AttentionInputs in;
  Tensor<float, 4> out_gradient;
  Tensor<float, 4> out;
  Tensor<float, 3> log_sum_exp;
};

// By the twin in both precisions, and by what was added up.
class GradientPromise {
 public:
  GradientPromise(const AttentionInputs& in, const Tensor<float, 4>& out_gradient,
                  const Tensor<float, 3>& log_sum_exp_gradient = {})
      : plain_(plain_gradients<float>(in, out_gradient, log_sum_exp_gradient)),
        truth_(plain_gradients<double>(in, out_gradient, log_sum_exp_gradient)),
        yardsticks_(gradient_yardsticks(in, out_gradient, log_sum_exp_gradient)) {}
  explicit GradientPromise(const BackwardProblem& problem) : GradientPromise(problem.in, problem.out_gradient) {}

  void expect_kept_by(const GradientTensors<float>& actual) const {
    expect_close_gradients(actual, plain_, truth_, yardsticks_);
  }

 private:
  GradientTensors<float> plain_;
  GradientTensors<double> truth_;
  GradientTensors<double> yardsticks_;
};

}  // namespace headlight::test
