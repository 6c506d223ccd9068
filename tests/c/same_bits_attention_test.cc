// Attention from C, forward and backward, with the bits of the same call from C++.
#include "c/c_interface.h"
#include "headlight/attention_backward.h"
#include "support/stored.h"

namespace headlight::same_bits_test {

TEST_F(CInterface, Attention) {
  const auto query = random_.normal_tensor<4>({2, 70, 6, 32}), key = random_.normal_tensor<4>({2, 90, 3, 32});
  const auto value = random_.normal_tensor<4>({2, 90, 3, 40});
  Tensor<float, 4> out({2, 70, 6, 40}), out_c({2, 70, 6, 40}), per_head({2, 6, 1, 90}), per_head_c({2, 6, 1, 90});
  Tensor<float, 3> lse({2, 6, 70}), lse_c({2, 6, 70});
  const std::array<std::int64_t, 2> lengths{81, 3};
  const std::array<std::int64_t, 1> rows{69};
  AttentionOptions options{
      .causal = Causal::bottom_right, .window = {.left = 40}, .key_lengths = lengths, .scale = 0.2f};
  options.log_sum_exp = lse;
  options.probabilities = {.per_head = per_head, .rows = rows};
  attention(engine_->engine, query, key, value, out, options);

  const headlight_tensor q = in_c(query), k = in_c(key), v = in_c(value), o = in_c(out_c);
  const headlight_tensor l = in_c(lse_c), p = in_c(per_head_c);
  const headlight_window window{40, -1};
  const float scale = 0.2f;
  headlight_attention_options given = HEADLIGHT_OPTIONS(headlight_attention_options);
  given.causal = HEADLIGHT_CAUSAL_BOTTOM_RIGHT;
  given.window = &window;
  given.key_lengths = {lengths.data(), 2};
  given.scale = &scale;
  given.log_sum_exp = &l;
  headlight_probabilities wanted = HEADLIGHT_OPTIONS(headlight_probabilities);
  wanted.per_head = &p;
  wanted.rows = {rows.data(), 1};
  given.probabilities = &wanted;
  EXPECT_EQ(allocations([&] { return headlight_attention(engine_, &q, &k, &v, &o, &given, &error_); }), 0);
  EXPECT_TRUE(same_bits(out, out_c));
  EXPECT_TRUE(same_bits(lse, lse_c));
  EXPECT_TRUE(same_bits(per_head, per_head_c));
}

// Soft cap, slopes, sinks, positions and the scores, forward and backward.
TEST_F(CInterface, ScoreModifiersOfAttention) {
  const auto query = random_.normal_tensor<4>({2, 33, 4, 16}), key = random_.normal_tensor<4>({2, 40, 2, 16});
  const auto value = random_.normal_tensor<4>({2, 40, 2, 16}), out_gradient = random_.normal_tensor<4>({2, 33, 4, 16});
  const std::array<float, 4> slopes{0.5f, 0.25f, 0.125f, 0.0625f}, sinks{0.5f, -1.0f, 2.0f, 0.0f};
  const std::array<std::int64_t, 2> query_start{20, 3};
  Tensor<float, 4> out({2, 33, 4, 16}), out_c({2, 33, 4, 16}), scores({2, 4, 33, 40}), scores_c({2, 4, 33, 40});
  Tensor<float, 4> query_gradient({2, 33, 4, 16}), query_gradient_c({2, 33, 4, 16});
  Tensor<float, 3> lse({2, 4, 33});
  Tensor<float, 1> sinks_gradient({4}), sinks_gradient_c({4});
  AttentionOptions options{.causal = Causal::top_left, .key_start = 2, .query_start = query_start};
  options.softcap = 2.5f;
  options.alibi = slopes;
  options.sinks = sinks;
  options.log_sum_exp = lse;
  options.scores = scores;

  const headlight_tensor q = in_c(query), k = in_c(key), v = in_c(value), o = in_c(out_c), g = in_c(out_gradient);
  const headlight_tensor l = in_c(lse), s = in_c(scores_c), dq = in_c(query_gradient_c);
  const headlight_tensor ds = in_c(sinks_gradient_c);
  const std::int64_t four[] = {4}, key_start[] = {2};
  // C views tensors through pointers that are not const; these are only read.
  const headlight_tensor m{const_cast<float*>(slopes.data()), HEADLIGHT_FLOAT32, 1, four, nullptr};
  const headlight_tensor n{const_cast<float*>(sinks.data()), HEADLIGHT_FLOAT32, 1, four, nullptr};
  const float softcap = 2.5f;
  headlight_attention_options given = HEADLIGHT_OPTIONS(headlight_attention_options);
  given.causal = HEADLIGHT_CAUSAL_TOP_LEFT;
  given.query_start = {query_start.data(), 2};
  given.key_start = {key_start, 1};
  given.softcap = &softcap;
  given.alibi = &m;
  given.sinks = &n;
  given.scores = &s;
  const std::array<std::pair<ScoreStage, headlight_score_stage>, 3> stages = {
      {{ScoreStage::raw, HEADLIGHT_SCORES_RAW},
       {ScoreStage::capped, HEADLIGHT_SCORES_CAPPED},
       {ScoreStage::masked, HEADLIGHT_SCORES_MASKED}}};
  for (const auto& [stage, stage_in_c] : stages) {
    options.scores_at = stage;
    given.scores_at = stage_in_c;
    attention(engine_->engine, query, key, value, out, options);
    EXPECT_EQ(allocations([&] { return headlight_attention(engine_, &q, &k, &v, &o, &given, &error_); }), 0);
    EXPECT_TRUE(same_bits(out, out_c));
    EXPECT_TRUE(same_bits(scores, scores_c));
  }
  options.scores = {};
  given.scores = nullptr;
  attention_backward(engine_->engine, query, key, value, out, lse, out_gradient,
                     {.query = query_gradient, .sinks = sinks_gradient}, options);
  headlight_attention_gradients asked = HEADLIGHT_OPTIONS(headlight_attention_gradients);
  asked.query = &dq;
  asked.sinks = &ds;
  EXPECT_EQ(allocations(
                [&] { return headlight_attention_backward(engine_, &q, &k, &v, &o, &l, &g, &asked, &given, &error_); }),
            0);
  EXPECT_TRUE(same_bits(query_gradient, query_gradient_c));
  EXPECT_TRUE(same_bits(sinks_gradient, sinks_gradient_c));

  given.scores_at = 3;
  EXPECT_EQ(headlight_attention(engine_, &q, &k, &v, &o, &given, &error_), HEADLIGHT_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error_.message).find("scores_at is 3"), std::string::npos) << error_.message;
  given.scores_at = HEADLIGHT_SCORES_MASKED;
  given.key_start = {query_start.data(), 0};
  const std::int64_t three[] = {1, 2, 3};
  given.query_start = {three, 3};
  EXPECT_EQ(headlight_attention(engine_, &q, &k, &v, &o, &given, &error_), HEADLIGHT_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error_.message).find("query_start has 3 entries, expected 2"), std::string::npos);
}

TEST_F(CInterface, AttentionBackward) {
  const auto query = random_.normal_tensor<4>({2, 70, 6, 32}), key = random_.normal_tensor<4>({2, 90, 3, 32});
  const auto value = random_.normal_tensor<4>({2, 90, 3, 40}), out_gradient = random_.normal_tensor<4>({2, 70, 6, 40});
  const auto bias = random_.normal_tensor<4>({1, 6, 1, 90});
  Tensor<float, 4> out({2, 70, 6, 40});
  Tensor<float, 3> lse({2, 6, 70});
  AttentionOptions options{.causal = Causal::bottom_right, .bias = bias, .dropout = {0.25f, 123, 4}};
  options.log_sum_exp = lse;
  attention(engine_->engine, query, key, value, out, options);
  struct Results {
    Results() : query({2, 70, 6, 32}), key({2, 90, 3, 32}), value({2, 90, 3, 40}), bias({1, 6, 1, 90}) {}
    Tensor<float, 4> query, key, value, bias;
  } expected, results;
  const auto gradients = [](Results& to) { return AttentionGradients{to.query, to.key, to.value, to.bias}; };
  attention_backward(engine_->engine, query, key, value, out, lse, out_gradient, gradients(expected), options);

  const headlight_tensor q = in_c(query), k = in_c(key), v = in_c(value), o = in_c(out), g = in_c(out_gradient);
  const headlight_tensor l = in_c(lse), b = in_c(bias), dq = in_c(results.query), dk = in_c(results.key);
  const headlight_tensor dv = in_c(results.value), db = in_c(results.bias);
  const headlight_dropout dropout{0.25f, 4, 123};
  headlight_attention_options given = HEADLIGHT_OPTIONS(headlight_attention_options);
  given.causal = HEADLIGHT_CAUSAL_BOTTOM_RIGHT;
  given.bias = &b;
  given.dropout = &dropout;
  headlight_attention_gradients asked = HEADLIGHT_OPTIONS(headlight_attention_gradients);
  asked.query = &dq;
  asked.key = &dk;
  asked.value = &dv;
  asked.bias = &db;
  const auto expect = [&](const Results& right) {
    EXPECT_TRUE(same_bits(right.query, results.query));
    EXPECT_TRUE(same_bits(right.key, results.key));
    EXPECT_TRUE(same_bits(right.value, results.value));
    EXPECT_TRUE(same_bits(right.bias, results.bias));
  };
  EXPECT_EQ(allocations(
                [&] { return headlight_attention_backward(engine_, &q, &k, &v, &o, &l, &g, &asked, &given, &error_); }),
            0);
  expect(expected);

  // With log_sum_exp in the sum, which this function alone takes.
  const auto by_log_sum_exp = random_.normal_tensor<3>({2, 6, 70});
  const headlight_tensor bl = in_c(by_log_sum_exp);
  Results with_log_sum_exp;
  AttentionOptions with_gradient = options;
  with_gradient.log_sum_exp_gradient = by_log_sum_exp;
  attention_backward(engine_->engine, query, key, value, out, lse, out_gradient, gradients(with_log_sum_exp),
                     with_gradient);
  given.log_sum_exp_gradient = &bl;
  EXPECT_EQ(allocations(
                [&] { return headlight_attention_backward(engine_, &q, &k, &v, &o, &l, &g, &asked, &given, &error_); }),
            0);
  expect(with_log_sum_exp);
  EXPECT_FALSE(same_bits(expected.query, results.query));
  EXPECT_EQ(headlight_attention(engine_, &q, &k, &v, &o, &given, &error_), HEADLIGHT_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.message,
               "attention: log_sum_exp_gradient is given, expected none: attention_backward() alone takes one");
  given.log_sum_exp_gradient = nullptr;

  headlight_attention_shape shape = HEADLIGHT_OPTIONS(headlight_attention_shape);
  shape.query_length = shape.key_length = 70;
  shape.head_dim = shape.value_dim = 32;
  std::size_t bytes = 0;
  ASSERT_EQ(headlight_attention_backward_workspace_bytes(engine_, &shape, &bytes, &error_), HEADLIGHT_OK);
  EXPECT_EQ(bytes, backward_workspace_bytes(engine_->engine, {1, 70, 70, 1, 1, 32, 32}));
  EXPECT_EQ(headlight_attention_backward_reserve(engine_, &shape, &error_), HEADLIGHT_OK);
  asked.query = &k;
  EXPECT_EQ(headlight_attention_backward(engine_, &q, &k, &v, &o, &l, &g, &asked, &given, &error_),
            HEADLIGHT_INVALID_ARGUMENT);
}

// Tensors of 16 bits, forward and backward.
TEST_F(CInterface, AttentionBackwardOfTypes) {
  const auto stored = [&](NumberType type, const View<float, 4>::Shape& shape) {
    return test::Stored(type, random_.normal_tensor<4>(shape));
  };
  const auto of_types = [](test::Stored& tensor) {
    const MutableTypedView<4> view = tensor.view();
    const headlight_type type = view.type == NumberType::bfloat16  ? HEADLIGHT_BFLOAT16
                                : view.type == NumberType::float16 ? HEADLIGHT_FLOAT16
                                                                   : HEADLIGHT_FLOAT32;
    return headlight_tensor{view.data, type, 4, tensor.shape().data(), nullptr};
  };
  const NumberType bfloat16 = NumberType::bfloat16, float16 = NumberType::float16;
  test::Stored query = stored(bfloat16, {2, 70, 6, 32}), key = stored(float16, {2, 90, 3, 32});
  test::Stored value = stored(bfloat16, {2, 90, 3, 40}), out = stored(float16, {2, 70, 6, 40});
  test::Stored out_gradient = stored(bfloat16, {2, 70, 6, 40});
  test::Stored to_query = stored(bfloat16, {2, 70, 6, 32}), to_key = stored(float16, {2, 90, 3, 32});
  test::Stored to_value = stored(NumberType::float32, {2, 90, 3, 40});
  test::Stored to_query_c = to_query, to_key_c = to_key, to_value_c = to_value;
  Tensor<float, 3> lse({2, 6, 70});
  AttentionOptions options{.causal = Causal::bottom_right};
  options.log_sum_exp = lse;
  attention(engine_->engine, query.view(), key.view(), value.view(), out.view(), options);
  for (int time = 0; time < 2; ++time) {
    attention_backward(engine_->engine, query.view(), key.view(), value.view(), out.view(), lse, out_gradient.view(),
                       {to_query.view(), to_key.view(), to_value.view(), {}, {}, true}, options);
  }

  const headlight_tensor q = of_types(query), k = of_types(key), v = of_types(value), o = of_types(out);
  const headlight_tensor g = of_types(out_gradient), dq = of_types(to_query_c), dv = of_types(to_value_c);
  headlight_tensor dk = of_types(to_key_c);
  const headlight_tensor l = in_c(lse);
  headlight_attention_options given = HEADLIGHT_OPTIONS(headlight_attention_options);
  given.causal = HEADLIGHT_CAUSAL_BOTTOM_RIGHT;
  headlight_attention_gradients asked = HEADLIGHT_OPTIONS(headlight_attention_gradients);
  asked.query = &dq;
  asked.key = &dk;
  asked.value = &dv;
  asked.accumulate = 1;
  EXPECT_EQ(allocations(
                [&] { return headlight_attention_backward(engine_, &q, &k, &v, &o, &l, &g, &asked, &given, &error_); }),
            0);
  EXPECT_TRUE(same_bits(to_query.floats(), to_query_c.floats()));
  EXPECT_TRUE(same_bits(to_key.floats(), to_key_c.floats()));
  EXPECT_TRUE(same_bits(to_value.floats(), to_value_c.floats()));
  dk.type = HEADLIGHT_INT8;
  EXPECT_EQ(headlight_attention_backward(engine_, &q, &k, &v, &o, &l, &g, &asked, &given, &error_),
            HEADLIGHT_INVALID_ARGUMENT);

  headlight_attention_shape shape = HEADLIGHT_OPTIONS(headlight_attention_shape);
  shape.query_length = shape.key_length = 70;
  shape.head_dim = shape.value_dim = 32;
  shape.query_gradient = HEADLIGHT_BFLOAT16;
  std::size_t bytes = 0;
  ASSERT_EQ(headlight_attention_backward_workspace_bytes(engine_, &shape, &bytes, &error_), HEADLIGHT_OK);
  EXPECT_EQ(bytes, backward_workspace_bytes(engine_->engine, {1, 70, 70, 1, 1, 32, 32}, bfloat16));
  EXPECT_GT(bytes, backward_workspace_bytes(engine_->engine, {1, 70, 70, 1, 1, 32, 32}));
  EXPECT_EQ(headlight_attention_backward_reserve(engine_, &shape, &error_), HEADLIGHT_OK);
  shape.query_gradient = HEADLIGHT_INT8;
  EXPECT_EQ(headlight_attention_backward_reserve(engine_, &shape, &error_), HEADLIGHT_INVALID_ARGUMENT);
  shape.query_gradient = HEADLIGHT_FLOAT32;
  shape.reserved = 1;
  EXPECT_EQ(headlight_attention_backward_reserve(engine_, &shape, &error_), HEADLIGHT_INVALID_ARGUMENT);
}

// Keys and values of int8, made in C, and read with their scales.
TEST_F(CInterface, AttentionOverInt8) {
  Tensor<float, 4> query = random_.normal_tensor<4>({2, 70, 6, 32}), key = random_.normal_tensor<4>({2, 90, 3, 32});
  Tensor<float, 4> out({2, 70, 6, 32}), out_c(out.shape());
  Tensor<std::int8_t, 4> numbers(key.shape()), numbers_c(key.shape());
  Tensor<float, 3> scales({2, 90, 3}), scales_c(scales.shape());
  quantize_rows(engine_->engine, key, numbers, scales);
  attention(engine_->engine, query, numbers, numbers, out,
            {.causal = Causal::bottom_right, .key_scales = scales, .value_scales = scales});

  const headlight_tensor q = in_c(query), k = in_c(key), o = in_c(out_c), s = in_c(scales_c);
  const headlight_tensor n{numbers_c.data(), HEADLIGHT_INT8, 4, numbers_c.shape().data(), nullptr};
  headlight_attention_options given = HEADLIGHT_OPTIONS(headlight_attention_options);
  given.causal = HEADLIGHT_CAUSAL_BOTTOM_RIGHT;
  EXPECT_EQ(allocations([&] { return headlight_quantize_rows(engine_, &k, &n, &s, &error_); }), 0);
  EXPECT_TRUE(std::equal(numbers.begin(), numbers.end(), numbers_c.begin()));
  EXPECT_TRUE(same_bits(scales, scales_c));
  EXPECT_EQ(headlight_attention(engine_, &q, &n, &n, &o, &given, &error_), HEADLIGHT_INVALID_ARGUMENT);
  given.key_scales = given.value_scales = &s;
  EXPECT_EQ(allocations([&] { return headlight_attention(engine_, &q, &n, &n, &o, &given, &error_); }), 0);
  EXPECT_TRUE(same_bits(out, out_c));
  // Nobody reads them beside floats.
  EXPECT_EQ(headlight_attention(engine_, &q, &k, &k, &o, &given, &error_), HEADLIGHT_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.message, "attention: key_scales is given with a key of float32, expected int8");
  given.key_scales = nullptr;
  EXPECT_EQ(headlight_attention(engine_, &q, &k, &k, &o, &given, &error_), HEADLIGHT_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.message, "attention: value_scales is given with a value of float32, expected int8");
  EXPECT_EQ(headlight_attention(engine_, &n, &k, &k, &o, &given, &error_), HEADLIGHT_INVALID_ARGUMENT);
}

}  // namespace headlight::same_bits_test
