// A case of attention_backward() whose operands and gradients are stored in types of their own.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "headlight/attention_backward.h"
#include "support/attention_operands.h"
#include "support/backward_problem.h"
#include "support/stored.h"
#include "support/typed_operands.h"

namespace headlight::test {

// What of a call has a type beside the four operands that the case has types for.
struct BackwardTypes {
  NumberType out_gradient = NumberType::float32;
  std::array<NumberType, 3> gradients{};  // of query, key, value

  [[nodiscard]] static BackwardTypes all(NumberType type) { return {type, {type, type, type}}; }
  [[nodiscard]] static BackwardTypes random(std::uint64_t seed) {
    Random numbers(seed + 0x16B175);
    const auto type = [&] { return kStoredTypes[static_cast<std::size_t>(numbers.integer(0, 2))]; };
    return {type(), {type(), type(), type()}};
  }
};

// Operands of bfloat16 but for `out`, in whose place float32 shows what is summed; even dims.
[[nodiscard]] inline AttentionCase of_bfloat16(AttentionCase c) {
  c.head_dim += c.head_dim % 2;
  c.value_dim += c.value_dim % 2;
  c.types.fill(NumberType::bfloat16);
  c.types[3] = NumberType::float32;
  return c;
}

// The operands, each rounded to its type, and `out` and log_sum_exp by float32's attention() over those.
struct TypedBackward {
  TypedBackward(Engine& engine, const AttentionCase& c, const BackwardTypes& types, bool accumulate)
      : problem(c), types_(types), accumulates_(accumulate) {
    problem.in.query = rounded_to(c.types[0], problem.in.query);
    problem.in.key = rounded_to(c.types[1], problem.in.key);
    problem.in.value = rounded_to(c.types[2], problem.in.value);
    problem.out_gradient = rounded_to(types.out_gradient, problem.out_gradient);
    problem.forward(engine);
    problem.out = rounded_to(c.types[3], problem.out);
  }

  // What the gradients hold before the call.
  [[nodiscard]] GradientTensors<float> before() const {
    GradientTensors<float> gradients(problem.in);
    gradients.fill(1e30f);
    if (!accumulates_) return gradients;
    Random random(problem.c.seed + 0xACC);
    for (Tensor<float, 4>* tensor : {&gradients.query, &gradients.key, &gradients.value, &gradients.bias}) {
      for (float& number : *tensor) number = random.normal();
    }
    for (float& number : gradients.sinks) number = random.normal();
    return rounded(std::move(gradients));
  }

  // By float32's attention_backward() over the widened operands.
  [[nodiscard]] GradientTensors<float> of_floats(Engine& engine) {
    GradientTensors<float> gradients = before();
    auto asked = gradients.asked<AttentionGradients>();
    asked.accumulate = accumulates_;
    problem.backward(engine, asked);
    return gradients;
  }

  // By the operands as they are stored. A log_sum_exp_gradient without memory is none.
  void backward(Engine& engine, const TypedAttentionGradients& gradients,
                const View<const float, 3>& log_sum_exp_gradient = {}) {
    const AttentionCase& c = problem.c;
    Stored query(c.types[0], problem.in.query), key(c.types[1], problem.in.key), value(c.types[2], problem.in.value);
    Stored out(c.types[3], problem.out), out_gradient(types_.out_gradient, problem.out_gradient);
    attend_backward(engine,
                    {query.view(), key.view(), value.view(), out.view(), problem.log_sum_exp, out_gradient.view(),
                     log_sum_exp_gradient},
                    gradients, problem.in.options);
  }
  // All of them, widened.
  [[nodiscard]] GradientTensors<float> of_types(Engine& engine, const View<const float, 3>& log_sum_exp_gradient = {}) {
    GradientTensors<float> gradients = before();
    Stored query(types_.gradients[0], gradients.query), key(types_.gradients[1], gradients.key);
    Stored value(types_.gradients[2], gradients.value);
    TypedAttentionGradients asked{query.view(), key.view(), value.view()};
    if (gradients.bias.size() != 0) asked.bias = gradients.bias;
    if (gradients.sinks.size() != 0) asked.sinks = gradients.sinks;
    asked.accumulate = accumulates_;
    backward(engine, asked, log_sum_exp_gradient);
    gradients.query = query.floats();
    gradients.key = key.floats();
    gradients.value = value.floats();
    return gradients;
  }

  // Whether the engine multiplies pairs of bfloat16 in this call.
  [[nodiscard]] bool multiplies_pairs(const Engine& engine) const {
    return test::multiplies_pairs(engine, problem.c) && types_.out_gradient == NumberType::bfloat16 &&
           problem.c.value_dim % 2 == 0;
  }

  [[nodiscard]] GradientTensors<float> rounded(GradientTensors<float> gradients) const {
    gradients.query = rounded_to(types_.gradients[0], gradients.query);
    gradients.key = rounded_to(types_.gradients[1], gradients.key);
    gradients.value = rounded_to(types_.gradients[2], gradients.value);
    return gradients;
  }

  BackwardProblem problem;

 private:
  BackwardTypes types_;
  bool accumulates_;
};

// expect(name, gradient, truth, allowed error, yardstick) for each gradient that is summed in float32: twice the error
// of the plain float32 computation, and, where pairs of bfloat16 were multiplied, a rounding to bfloat16 of each
// weight, or score gradient, of which the yardsticks hold the sizes. Gradients of bias and sinks have none of that.
// `given`: what the forward pass left in log_sum_exp, a factor of every weight. A log_sum_exp_gradient without memory
// is none.
template <class Expect>
void for_each_error_of_roundings(const BackwardProblem& problem, const GradientTensors<float>& ours, bool of_pairs,
                                 double given, const Expect& expect,
                                 const Tensor<float, 3>& log_sum_exp_gradient = {}) {
  const auto plain = plain_gradients<float>(problem.in, problem.out_gradient, log_sum_exp_gradient);
  const auto truth = plain_gradients<double>(problem.in, problem.out_gradient, log_sum_exp_gradient);
  const auto sizes = gradient_yardsticks(problem.in, problem.out_gradient, log_sum_exp_gradient);
  const double rounding = of_pairs ? 0x1p-8 : 0;
  const auto each = [&](const char* name, const auto& a, const auto& p, const auto& t, const auto& y, double more) {
    const double of_plain = worst_row_error(p.view(), t.view(), y.view()).error;
    expect(name, a.view(), t.view(), (2 * of_plain + 8 * kUnitRoundoff + given) * (1 + more) + more, y.view());
  };
  each("query", ours.query, plain.query, truth.query, sizes.query, rounding);
  each("key", ours.key, plain.key, truth.key, sizes.key, rounding);
  each("value", ours.value, plain.value, truth.value, sizes.value, rounding);
  each("bias", ours.bias, plain.bias, truth.bias, sizes.bias, 0);
  each("sinks", ours.sinks, plain.sinks, truth.sinks, sizes.sinks, 0);
}

// The same of a call.
template <class Expect>
void for_each_error_of_roundings(Engine& engine, TypedBackward& call, double given, const Expect& expect,
                                 const Tensor<float, 3>& log_sum_exp_gradient = {}) {
  const GradientTensors<float> ours =
      call.of_types(engine, log_sum_exp_gradient.size() == 0 ? View<const float, 3>() : log_sum_exp_gradient.view());
  for_each_error_of_roundings(call.problem, ours, call.multiplies_pairs(engine), given, expect, log_sum_exp_gradient);
}

inline void expect_same_gradients(const GradientTensors<float>& a, const GradientTensors<float>& b) {
  EXPECT_TRUE(same_bits(a.query, b.query)) << "query";
  EXPECT_TRUE(same_bits(a.key, b.key)) << "key";
  EXPECT_TRUE(same_bits(a.value, b.value)) << "value";
  EXPECT_TRUE(same_bits(a.bias, b.bias)) << "bias";
  EXPECT_TRUE(same_bits(a.sinks, b.sinks)) << "sinks";
}

}  // namespace headlight::test
