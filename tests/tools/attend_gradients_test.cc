// headlight attend: gradients, by each method.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "baseline/attention_unfused.h"
#include "headlight/attention.h"
#include "headlight/attention_backward.h"
#include "headlight/models/npy.h"
#include "reference/attention_backward.h"
#include "support/compare.h"
#include "support/stored.h"
#include "tools/attend_case.h"
#include "tools/expect_npy.h"
#include "tools/program.h"

namespace headlight::test::attend_test {

// The gradients of the program, by each method, against the library's. `bias_shape` is that of the file of --bias,
// whose gradient has it too.
void expect_gradients(const AttendCase& c, const std::vector<std::string>& more, const AttentionOptions& options,
                      const std::optional<std::vector<std::int64_t>>& bias_shape = std::nullopt) {
  Random random(11);
  Tensor<float, 4> out({c.query.shape()[0], c.query.shape()[1], kQueryHeads, kValueDim});
  const auto out_gradient = random.normal_tensor<4>(out.shape());
  c.write("do.npy", out_gradient);
  Tensor<float, 3> log_sum_exp({c.query.shape()[0], kQueryHeads, c.query.shape()[1]});
  for (const std::string method : {"fused", "unfused", "reference"}) {
    SCOPED_TRACE(method);
    std::vector<std::string> all = c.arguments(more);
    all.insert(all.end(), {"--method", method, "--grad-out", c.folder / "do.npy", "--grad-query", c.folder / "dq.npy",
                           "--grad-key", c.folder / "dk.npy", "--grad-value", c.folder / "dv.npy"});
    if (bias_shape) all.insert(all.end(), {"--grad-bias", c.folder / "db.npy"});
    const Finished finished = run_program(all);
    ASSERT_EQ(finished.code, 0) << finished.error;
    EXPECT_EQ(finished.error, "");

    Tensor<float, 4> query(c.query.shape()), key(c.key.shape()), value(c.value.shape()), bias;
    AttentionGradients gradients{query, key, value};
    if (bias_shape) bias = Tensor<float, 4>(options.bias.shape);
    if (bias_shape) gradients.bias = bias;
    Engine engine;
    AttentionOptions forward = options;
    forward.log_sum_exp = log_sum_exp;
    attention(engine, c.query, c.key, c.value, out, forward);
    if (method == "unfused") {
      baseline::attention_unfused_backward(engine, c.query, c.key, c.value, out_gradient, gradients, options);
    } else if (method == "fused") {
      attention_backward(engine, c.query, c.key, c.value, out, log_sum_exp, out_gradient, gradients, options);
    } else {
      Tensor<double, 4> wide_query(query.shape()), wide_key(key.shape()), wide_value(value.shape()),
          wide_bias(bias.shape());
      reference::AttentionGradients<double> wide{wide_query, wide_key, wide_value};
      if (bias_shape) wide.bias = wide_bias;
      reference::attention_backward<double>(converted<double>(c.query), converted<double>(c.key),
                                            converted<double>(c.value), converted<double>(out_gradient), wide, options);
      query = converted<float>(wide_query);
      key = converted<float>(wide_key);
      value = converted<float>(wide_value);
      bias = converted<float>(wide_bias);
    }
    expect_npy(c.folder / "dq.npy", query);
    expect_npy(c.folder / "dk.npy", key);
    expect_npy(c.folder / "dv.npy", value);
    if (bias_shape) expect_npy(c.folder / "db.npy", bias, *bias_shape);
    EXPECT_EQ(finished.out, line_of(c, "o.npy", out) + line_of(c, "dq.npy", query) + line_of(c, "dk.npy", key) +
                                line_of(c, "dv.npy", value) + (bias_shape ? line_of(c, "db.npy", *bias_shape) : ""));
  }
}

TEST(Attend, GradientsOfScoreSteps) {
  AttendCase c;
  const std::vector<float> slopes{0.5f, 0.25f, 0.125f, 0.0625f}, sinks{1.0f, -0.5f, 0.25f, 0.0f};
  c.write<float>("slopes.npy", {kQueryHeads}, slopes);
  c.write<float>("sinks.npy", {kQueryHeads}, sinks);
  const std::vector<std::string> modifiers{"--softcap",           "1.5", "--alibi", c.folder / "slopes.npy", "--sinks",
                                           c.folder / "sinks.npy"};
  const AttentionOptions options{.softcap = 1.5f, .alibi = slopes, .sinks = sinks};
  expect_gradients(c, modifiers, options);

  Engine engine;
  const auto out_gradient = c.random.normal_tensor<4>({kBatch, kQueryLength, kQueryHeads, kValueDim});
  c.write("go.npy", out_gradient);
  Tensor<float, 4> out(out_gradient.shape());
  Tensor<float, 3> log_sum_exp({kBatch, kQueryHeads, kQueryLength});
  Tensor<float, 1> of_sinks({kQueryHeads});
  AttentionOptions forward = options;
  forward.log_sum_exp = log_sum_exp;
  attention(engine, c.query, c.key, c.value, out, forward);
  for (const std::string method : {"fused", "unfused", "reference"}) {
    SCOPED_TRACE(method);
    std::vector<std::string> all = c.arguments(modifiers);
    all.insert(all.end(), {"--grad-out", c.folder / "go.npy", "--grad-sinks", c.folder / "ds.npy", "--method", method});
    const Finished finished = run_program(all);
    ASSERT_EQ(finished.code, 0) << finished.error;
    if (method == "fused") {
      attention_backward(engine, c.query, c.key, c.value, out, log_sum_exp, out_gradient, {.sinks = of_sinks}, options);
    } else if (method == "unfused") {
      baseline::attention_unfused_backward(engine, c.query, c.key, c.value, out_gradient, {.sinks = of_sinks}, options);
    } else {
      Tensor<double, 1> wide({kQueryHeads});
      reference::attention_backward<double>(converted<double>(c.query), converted<double>(c.key),
                                            converted<double>(c.value), converted<double>(out_gradient),
                                            {.sinks = wide}, options);
      of_sinks = converted<float>(wide);
    }
    expect_npy(c.folder / "ds.npy", of_sinks);
  }
}

TEST(Attend, Gradients) {
  AttendCase c;
  expect_gradients(c, {"--causal", "bottom-right", "--dropout", "0.25", "--seed", "18446744073709551615"},
                   {.causal = Causal::bottom_right, .dropout = {0.25f, ~std::uint64_t{0}}});
  const Tensor<float, 4> bias = c.random.normal_tensor<4>({1, kQueryHeads, 1, kKeyLength});
  c.write("b.npy", {kQueryHeads, 1, kKeyLength}, std::vector<float>(bias.begin(), bias.end()));
  expect_gradients(c, {"--bias", c.folder / "b.npy"}, {.bias = bias}, {{kQueryHeads, 1, kKeyLength}});
  c.write("b.npy", {1, kQueryHeads, 1, kKeyLength}, std::vector<float>(bias.begin(), bias.end()));
  expect_gradients(c, {"--bias", c.folder / "b.npy"}, {.bias = bias}, {{1, kQueryHeads, 1, kKeyLength}});
  Tensor<float, 4> number({1, 1, 1, 1});
  number(0, 0, 0, 0) = 0.5f;
  c.write<float>("b.npy", {}, {0.5f});  // no axes
  expect_gradients(c, {"--bias", c.folder / "b.npy"}, {.bias = number}, {{}});
}

// In 16 bits: fused as attention_backward() over operands of those types, the others by their own arithmetic; each
// gradient has the type of what it is a gradient of.
TEST(Attend, GradientsOfTypes) {
  const AttendCase c;
  Random random(12);
  const auto out_gradient = random.normal_tensor<4>({kBatch, kQueryLength, kQueryHeads, kValueDim});
  c.write("do.npy", out_gradient);
  const AttentionOptions options{.causal = Causal::bottom_right};
  struct Given {
    NumberType type, cache;
  };
  for (const Given& given : {Given{NumberType::bfloat16, NumberType::bfloat16},
                             {NumberType::float16, NumberType::bfloat16},
                             {NumberType::float32, NumberType::float16}}) {
    Engine engine;
    Stored query(given.type, c.query), key(given.cache, c.key), value(given.cache, c.value);
    Stored out(given.type, out_gradient.shape()), of_out(given.type, out_gradient);
    Stored of_query(given.type, c.query.shape()), of_key(given.cache, c.key.shape());
    Stored of_value(given.cache, c.value.shape());
    Tensor<float, 3> log_sum_exp({kBatch, kQueryHeads, kQueryLength});
    AttentionOptions forward = options;
    forward.log_sum_exp = log_sum_exp;
    attention(engine, query.view(), key.view(), value.view(), out.view(), forward);
    attention_backward(engine, query.view(), key.view(), value.view(), out.view(), log_sum_exp, of_out.view(),
                       {of_query.view(), of_key.view(), of_value.view()}, options);
    for (const std::string method : {"fused", "unfused", "reference"}) {
      SCOPED_TRACE(std::string(name(given.type)) + " " + std::string(name(given.cache)) + " " + method);
      const Finished finished = run_program(c.arguments(
          {"--type", std::string(name(given.type)), "--cache-type", std::string(name(given.cache)), "--causal",
           "bottom-right", "--method", method, "--grad-out", c.folder / "do.npy", "--grad-query", c.folder / "dq.npy",
           "--grad-key", c.folder / "dk.npy", "--grad-value", c.folder / "dv.npy"}));
      ASSERT_EQ(finished.code, 0) << finished.error;
      const auto expect = [&](const char* file, const Tensor<float, 4>& expected, NumberType type) {
        if (method == "fused") return expect_npy(c.folder / file, expected);
        const models::Array<float> found = models::read_npy<float>(c.folder / file);
        double largest = 0;
        for (const float number : expected) largest = std::max(largest, static_cast<double>(std::abs(number)));
        for (std::size_t n = 0; n < found.values.size(); ++n) {
          EXPECT_EQ(found.values[n], rounded_to(type, found.values[n]));
          // δ of the fused method comes from a result of 16 bits, and each element is rounded by itself.
          EXPECT_NEAR(found.values[n], expected.data()[n], largest * 0x1p-6);
        }
      };
      expect("dq.npy", of_query.floats(), given.type);
      expect("dk.npy", of_key.floats(), given.cache);
      expect("dv.npy", of_value.floats(), given.cache);
    }
  }
}

}  // namespace headlight::test::attend_test
