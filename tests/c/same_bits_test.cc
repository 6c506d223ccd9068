// A call from C gives the bits of the same call from C++, allocates nothing when it is repeated, and turns every
// exception into a status.
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

#include "c/handles.h"
#include "headlight/analysis/attention_unfused.h"
#include "headlight/analysis/headlight_analysis.h"
#include "headlight/attention_backward.h"
#include "headlight/headlight.h"
#include "headlight/layers/encoder.h"
#include "headlight/layers/feed_forward.h"
#include "headlight/layers/transformer.h"
#include "headlight/normalization.h"
#include "support/allocation_counter.h"
#include "support/compare.h"
#include "support/random.h"
#include "support/workers.h"

namespace headlight::same_bits_test {

using test::AllocationCounter;
using test::Random;
using test::same_bits;

// A tensor of the C++ interface as one of C.
template <int Rank>
headlight_tensor in_c(const Tensor<float, Rank>& tensor) {
  return {const_cast<float*>(tensor.data()), HEADLIGHT_FLOAT32, Rank, tensor.shape().data(), nullptr};
}

class CInterface : public testing::Test {
 protected:
  CInterface() {
    headlight_engine_options options = HEADLIGHT_OPTIONS(headlight_engine_options);
    options.threads = 2;
    EXPECT_EQ(headlight_engine_create(&options, &engine_, &error_), HEADLIGHT_OK);
    test::wait_for_workers(engine_->engine);
  }
  ~CInterface() override { headlight_engine_destroy(engine_); }

  // Allocations of the second of two calls.
  template <class Call>
  std::int64_t allocations(Call call) {
    EXPECT_EQ(call(), HEADLIGHT_OK) << error_.message;
    const AllocationCounter counter;
    const headlight_status status = call();
    const std::int64_t count = counter.count();
    EXPECT_EQ(status, HEADLIGHT_OK) << error_.message;
    return count;
  }

  headlight_engine* engine_ = nullptr;
  headlight_error error_{};
  Random random_{5};
};

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
TEST_F(CInterface, ScoreStepsOfAttention) {
  const auto query = random_.normal_tensor<4>({2, 33, 4, 16}), key = random_.normal_tensor<4>({2, 40, 2, 16});
  const auto value = random_.normal_tensor<4>({2, 40, 2, 16}), out_gradient = random_.normal_tensor<4>({2, 33, 4, 16});
  const std::array<float, 4> slopes{0.5f, 0.25f, 0.125f, 0.0625f}, sinks{0.5f, -1.0f, 2.0f, 0.0f};
  const std::array<std::int64_t, 2> query_start{20, 3};
  Tensor<float, 4> out({2, 33, 4, 16}), out_c({2, 33, 4, 16}), scores({2, 4, 33, 40}), scores_c({2, 4, 33, 40});
  Tensor<float, 4> query_gradient({2, 33, 4, 16}), query_gradient_c({2, 33, 4, 16});
  Tensor<float, 3> lse({2, 4, 33});
  Tensor<float, 1> sinks_gradient({4}), sinks_gradient_c({4});
  AttentionOptions options{.causal = Causal::top_left, .key_start = 2, .query_start = query_start};
  options.soft_cap = 2.5f;
  options.slopes = slopes;
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
  const float soft_cap = 2.5f;
  headlight_attention_options given = HEADLIGHT_OPTIONS(headlight_attention_options);
  given.causal = HEADLIGHT_CAUSAL_TOP_LEFT;
  given.query_start = {query_start.data(), 2};
  given.key_start = {key_start, 1};
  given.soft_cap = &soft_cap;
  given.slopes = &m;
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
  } fused, unfused, results;
  const auto gradients = [](Results& to) { return AttentionGradients{to.query, to.key, to.value, to.bias}; };
  attention_backward(engine_->engine, query, key, value, out, lse, out_gradient, gradients(fused), options);
  analysis::attention_unfused_backward(engine_->engine, query, key, value, out_gradient, gradients(unfused), options);

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
  const auto expect = [&](const Results& expected) {
    EXPECT_TRUE(same_bits(expected.query, results.query));
    EXPECT_TRUE(same_bits(expected.key, results.key));
    EXPECT_TRUE(same_bits(expected.value, results.value));
    EXPECT_TRUE(same_bits(expected.bias, results.bias));
  };
  EXPECT_EQ(allocations(
                [&] { return headlight_attention_backward(engine_, &q, &k, &v, &o, &l, &g, &asked, &given, &error_); }),
            0);
  expect(fused);
  EXPECT_EQ(allocations(
                [&] { return headlight_attention_unfused_backward(engine_, &q, &k, &v, &g, &asked, &given, &error_); }),
            0);
  expect(unfused);

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

TEST_F(CInterface, Gemm) {
  const auto a = random_.normal_tensor<2>({50, 70}), b = random_.normal_tensor<2>({80, 70});
  const auto bias = random_.normal_tensor<1>({80});
  Tensor<float, 2> c({50, 80}), c_c({50, 80});
  gemm(engine_->engine, a, b, c,
       {.transpose_b = Transpose::yes, .bias = {bias.data(), 80}, .activation = Activation::gelu});

  const std::int64_t shape[] = {70, 80}, strides[] = {1, 70};
  const headlight_tensor left = in_c(a), shift = in_c(bias), out = in_c(c_c);
  const headlight_tensor right{const_cast<float*>(b.data()), HEADLIGHT_FLOAT32, 2, shape, strides};
  headlight_gemm_options given = HEADLIGHT_OPTIONS(headlight_gemm_options);
  given.bias = &shift;
  given.activation = HEADLIGHT_ACTIVATION_GELU;
  EXPECT_EQ(allocations([&] { return headlight_gemm(engine_, &left, &right, &out, &given, &error_); }), 0);
  EXPECT_TRUE(same_bits(c, c_c));

  headlight_packed_matrix* packed = nullptr;
  ASSERT_EQ(headlight_packed_matrix_create(engine_, &right, &packed, &error_), HEADLIGHT_OK) << error_.message;
  c_c = Tensor<float, 2>({50, 80});
  const headlight_tensor again = in_c(c_c);
  EXPECT_EQ(allocations([&] { return headlight_gemm_packed(engine_, &left, packed, &again, &given, &error_); }), 0);
  EXPECT_TRUE(same_bits(c, c_c));
  headlight_packed_matrix_destroy(packed);
}

TEST_F(CInterface, Rows) {
  const auto x = random_.normal_tensor<2>({30, 50});
  Tensor<float, 2> y({30, 50}), y_c({30, 50}), pooled({1, 50}), pooled_c({1, 50});
  const headlight_tensor in = in_c(x), out = in_c(y_c), mean = in_c(pooled_c);
  softmax(engine_->engine, x, y);
  EXPECT_EQ(allocations([&] { return headlight_softmax(engine_, &in, &out, &error_); }), 0);
  EXPECT_TRUE(same_bits(y, y_c));
  layer_norm(engine_->engine, x, y);
  EXPECT_EQ(allocations([&] { return headlight_layer_norm(engine_, &in, &out, nullptr, &error_); }), 0);
  EXPECT_TRUE(same_bits(y, y_c));
  activate(engine_->engine, Activation::gelu_tanh, x, y);
  EXPECT_EQ(
      allocations([&] { return headlight_activate(engine_, HEADLIGHT_ACTIVATION_GELU_TANH, &in, &out, &error_); }), 0);
  EXPECT_TRUE(same_bits(y, y_c));
  const std::array<std::int64_t, 2> offsets{0, 30};
  const headlight_indices starts{offsets.data(), 2};
  mean_pool(engine_->engine, x, offsets, pooled, true);
  EXPECT_EQ(allocations([&] { return headlight_mean_pool(engine_, &in, &starts, &mean, 1, &error_); }), 0);
  EXPECT_TRUE(same_bits(pooled, pooled_c));
  const std::array<std::int64_t, 30> ids{3, 1, 29};
  const headlight_indices words{ids.data(), 30};
  const Embedding embedding{.table = x, .ids = ids};
  embed(engine_->engine, {&embedding, 1}, y);
  EXPECT_EQ(allocations([&] { return headlight_embed(engine_, &in, &words, 1, &out, &error_); }), 0);
  EXPECT_TRUE(same_bits(y, y_c));
}

TEST_F(CInterface, Layers) {
  const auto x = random_.normal_tensor<3>({2, 20, 48}), memory = random_.normal_tensor<3>({2, 30, 48});
  Tensor<float, 3> y({2, 20, 48}), y_c({2, 20, 48});
  const headlight_tensor in = in_c(x), keys = in_c(memory), out = in_c(y_c);

  MultiHeadAttention attention_layer({.width = 48, .heads = 4, .key_value_heads = 2, .merge = Merge::gated_by_head});
  attention_layer.initialize(9);
  attention_layer.forward(engine_->engine, x, memory, memory, y);
  headlight_multi_head_attention_options attention_options = HEADLIGHT_OPTIONS(headlight_multi_head_attention_options);
  attention_options.width = 48;
  attention_options.heads = 4;
  attention_options.key_value_heads = 2;
  attention_options.merge = HEADLIGHT_MERGE_GATED_BY_HEAD;
  headlight_layer* layer = nullptr;
  ASSERT_EQ(headlight_multi_head_attention_create(&attention_options, &layer, &error_), HEADLIGHT_OK);
  ASSERT_EQ(headlight_layer_initialize(layer, 9, &error_), HEADLIGHT_OK);
  EXPECT_EQ(allocations([&] {
              return headlight_multi_head_attention_forward(layer, engine_, &in, &keys, &keys, &out, nullptr, nullptr,
                                                            nullptr, &error_);
            }),
            0);
  EXPECT_TRUE(same_bits(y, y_c));
  headlight_layer_destroy(layer);

  TransformerEncoderLayer encoder_layer({.width = 48, .heads = 4, .merge = Merge::weighted_by_input});
  encoder_layer.initialize(9);
  encoder_layer.forward(engine_->engine, x, y);
  headlight_transformer_layer_options layer_options = HEADLIGHT_OPTIONS(headlight_transformer_layer_options);
  layer_options.width = 48;
  layer_options.heads = 4;
  layer_options.merge = HEADLIGHT_MERGE_WEIGHTED_BY_INPUT;
  ASSERT_EQ(headlight_transformer_encoder_layer_create(&layer_options, &layer, &error_), HEADLIGHT_OK);
  ASSERT_EQ(headlight_layer_initialize(layer, 9, &error_), HEADLIGHT_OK);
  EXPECT_EQ(allocations([&] {
              return headlight_transformer_encoder_layer_forward(layer, engine_, &in, &out, nullptr, nullptr, &error_);
            }),
            0);
  EXPECT_TRUE(same_bits(y, y_c));
  headlight_layer_destroy(layer);

  TransformerDecoderLayer decoder_layer({.width = 48, .heads = 4, .merge = Merge::weighted_by_input});
  decoder_layer.initialize(9);
  decoder_layer.forward(engine_->engine, x, memory, y);
  ASSERT_EQ(headlight_transformer_decoder_layer_create(&layer_options, &layer, &error_), HEADLIGHT_OK);
  ASSERT_EQ(headlight_layer_initialize(layer, 9, &error_), HEADLIGHT_OK);
  EXPECT_EQ(allocations([&] {
              return headlight_transformer_decoder_layer_forward(layer, engine_, &in, &keys, &out, nullptr, nullptr,
                                                                 &error_);
            }),
            0);
  EXPECT_TRUE(same_bits(y, y_c));
  headlight_layer_destroy(layer);
}

TEST_F(CInterface, SmallLayers) {
  const auto x = random_.normal_tensor<3>({2, 20, 48});
  Tensor<float, 3> y({2, 20, 48}), y_c({2, 20, 48});
  const headlight_tensor in = in_c(x), out = in_c(y_c);
  FeedForward feed_forward({.width = 48});
  feed_forward.initialize(9);
  feed_forward.forward(engine_->engine, x, y, x);
  headlight_feed_forward_options options = HEADLIGHT_OPTIONS(headlight_feed_forward_options);
  options.width = 48;
  headlight_layer* layer = nullptr;
  ASSERT_EQ(headlight_feed_forward_create(&options, &layer, &error_), HEADLIGHT_OK);
  ASSERT_EQ(headlight_layer_initialize(layer, 9, &error_), HEADLIGHT_OK);
  EXPECT_EQ(allocations([&] { return headlight_feed_forward_forward(layer, engine_, &in, &out, &in, &error_); }), 0);
  EXPECT_TRUE(same_bits(y, y_c));
  headlight_layer_destroy(layer);

  const auto rows = random_.normal_tensor<2>({30, 48});
  Tensor<float, 2> z({30, 70}), z_c({30, 70}), n({30, 48}), n_c({30, 48});
  const headlight_tensor flat = in_c(rows), wide = in_c(z_c), narrow = in_c(n_c);
  Linear linear(48, 70);
  linear.initialize(9);
  linear.forward(engine_->engine, rows, z, {.activation = Activation::gelu});
  headlight_linear_options linear_options = HEADLIGHT_OPTIONS(headlight_linear_options);
  linear_options.in_features = 48;
  linear_options.out_features = 70;
  ASSERT_EQ(headlight_linear_create(&linear_options, &layer, &error_), HEADLIGHT_OK);
  ASSERT_EQ(headlight_layer_initialize(layer, 9, &error_), HEADLIGHT_OK);
  EXPECT_EQ(allocations([&] {
              return headlight_linear_forward(layer, engine_, &flat, &wide, HEADLIGHT_ACTIVATION_GELU, nullptr,
                                              &error_);
            }),
            0);
  EXPECT_TRUE(same_bits(z, z_c));
  headlight_layer_destroy(layer);

  const LayerNorm norm(48);
  norm.forward(engine_->engine, rows, n);
  headlight_layer_norm_layer_options norm_options = HEADLIGHT_OPTIONS(headlight_layer_norm_layer_options);
  norm_options.width = 48;
  ASSERT_EQ(headlight_layer_norm_layer_create(&norm_options, &layer, &error_), HEADLIGHT_OK);
  EXPECT_EQ(allocations([&] { return headlight_layer_norm_layer_forward(layer, engine_, &flat, &narrow, &error_); }),
            0);
  EXPECT_TRUE(same_bits(n, n_c));
  headlight_layer_destroy(layer);
}

TEST_F(CInterface, EncoderNetwork) {
  const std::array<std::int64_t, 5> ids{3, 1, 4, 1, 5}, positions{0, 1, 2, 0, 1};
  const std::array<std::int64_t, 3> offsets{0, 3, 5};
  Tensor<float, 2> hidden({5, 48}), hidden_c({5, 48});
  Tensor<float, 4> weights({1, 4, 5, 5}), weights_c({1, 4, 5, 5});
  Encoder network(
      {.vocabulary = 10, .max_positions = 8, .width = 48, .heads = 4, .layers = 2, .merge = Merge::gated_by_element});
  network.initialize(9);
  const std::array<LayerProbabilities, 1> wanted{{{.layer = 1, .probabilities = {.per_head = weights}}}};
  network.forward(engine_->engine, {.ids = ids, .positions = positions, .offsets = offsets}, hidden, wanted);

  headlight_encoder_network_options options = HEADLIGHT_OPTIONS(headlight_encoder_network_options);
  options.vocabulary = 10;
  options.max_positions = 8;
  options.width = 48;
  options.heads = 4;
  options.layers = 2;
  options.merge = HEADLIGHT_MERGE_GATED_BY_ELEMENT;
  headlight_layer* layer = nullptr;
  ASSERT_EQ(headlight_encoder_network_create(&options, &layer, &error_), HEADLIGHT_OK);
  ASSERT_EQ(headlight_layer_initialize(layer, 9, &error_), HEADLIGHT_OK);
  headlight_encoder_network_input input = HEADLIGHT_OPTIONS(headlight_encoder_network_input);
  input.ids = {ids.data(), 5};
  input.positions = {positions.data(), 5};
  input.offsets = {offsets.data(), 3};
  const headlight_tensor out = in_c(hidden_c), per_head = in_c(weights_c);
  headlight_probabilities written = HEADLIGHT_OPTIONS(headlight_probabilities);
  written.per_head = &per_head;
  headlight_layer_access asked = HEADLIGHT_OPTIONS(headlight_layer_access);
  asked.layer = 1;
  asked.probabilities = &written;
  EXPECT_EQ(
      allocations([&] { return headlight_encoder_network_forward(layer, engine_, &input, &out, &asked, 1, &error_); }),
      0);
  EXPECT_TRUE(same_bits(hidden, hidden_c));
  EXPECT_TRUE(same_bits(weights, weights_c));
  headlight_layer_destroy(layer);
}

// What throws, as the caller from C sees it.
template <class Exception>
std::string reported(headlight_status expected, const Exception& exception, std::uint64_t bytes = 0) {
  headlight_error error{HEADLIGHT_OK, "", 1};
  EXPECT_EQ(c::call(&error, [&] { throw exception; }), expected);
  EXPECT_EQ(error.status, expected);
  EXPECT_EQ(error.bytes, bytes);
  EXPECT_EQ(c::call(nullptr, [&] { throw exception; }), expected);
  return error.message;
}

TEST(CCall, GivesEveryExceptionAStatus) {
  EXPECT_EQ(reported(HEADLIGHT_INVALID_ARGUMENT, std::invalid_argument("gemm: a is odd")), "gemm: a is odd");
  EXPECT_NE(reported(HEADLIGHT_OUT_OF_MEMORY, std::bad_alloc()), "");
  EXPECT_NE(reported(HEADLIGHT_OUT_OF_MEMORY, OutOfMemory("gemm", 12), 12), "");
  EXPECT_NE(reported(HEADLIGHT_OUT_OF_MEMORY, std::bad_array_new_length()), "");
  EXPECT_NE(reported(HEADLIGHT_OUT_OF_MEMORY, std::length_error("vector")), "");
  EXPECT_NE(reported(HEADLIGHT_SYSTEM_ERROR, std::system_error(EAGAIN, std::generic_category())), "");
  EXPECT_EQ(reported(HEADLIGHT_FILE_ERROR, c::Failure(HEADLIGHT_FILE_ERROR, "x: is torn")), "x: is torn");
  EXPECT_EQ(reported(HEADLIGHT_INTERNAL_ERROR, std::logic_error("two and two")), "two and two");
  EXPECT_NE(reported(HEADLIGHT_INTERNAL_ERROR, 42), "");
}

TEST(CCall, CutsMessagesBetweenCharacters) {
  headlight_error error{};
  for (std::size_t before = 0; before < 5; ++before) {
    std::string text(before, 'x');
    while (text.size() < 2000) text += "€";
    c::report(&error, HEADLIGHT_INTERNAL_ERROR, text);
    const std::string message = error.message;
    EXPECT_GE(message.size(), sizeof error.message - 4);
    ASSERT_TRUE(message.ends_with("€…")) << message;
    EXPECT_EQ(text.compare(0, message.size() - 3, message, 0, message.size() - 3), 0);
  }
  const std::string fits(sizeof error.message - 1, 'x');
  c::report(&error, HEADLIGHT_INTERNAL_ERROR, fits);
  EXPECT_EQ(error.message, fits);
}

}  // namespace headlight::same_bits_test
