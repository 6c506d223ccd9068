// A call from C gives the bits of the same call from C++, allocates nothing when it is repeated, and turns every
// exception into a status.
#include <array>
#include <cstring>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>

#include "c/c_interface.h"
#include "headlight/layers/encoder.h"
#include "headlight/layers/feed_forward.h"
#include "headlight/layers/transformer.h"
#include "headlight/normalization.h"

namespace headlight::same_bits_test {

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
  ASSERT_EQ(headlight_packed_matrix_create(engine_, &right, HEADLIGHT_FLOAT32, &packed, &error_), HEADLIGHT_OK)
      << error_.message;
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

// Rows of 16 bits: x of bfloat16, y of float16.
TEST_F(CInterface, TypedRows) {
  Tensor<BFloat16, 2> x({30, 50}), gradient({30, 50});
  for (BFloat16& number : x) number = BFloat16(random_.normal());
  for (BFloat16& number : gradient) number = BFloat16(random_.normal());
  Tensor<Float16, 2> y({30, 50}), y_c({30, 50});
  const std::int64_t shape[] = {30, 50}, columns[] = {50};
  const headlight_tensor in{x.data(), HEADLIGHT_BFLOAT16, 2, shape, nullptr};
  const headlight_tensor back{gradient.data(), HEADLIGHT_BFLOAT16, 2, shape, nullptr};
  const headlight_tensor out{y_c.data(), HEADLIGHT_FLOAT16, 2, shape, nullptr};
  const auto expect = [&](const auto& in_c_call, const char* name) {
    EXPECT_EQ(in_c_call(), HEADLIGHT_OK) << name << ": " << error_.message;
    EXPECT_EQ(allocations(in_c_call), 0) << name;
    EXPECT_EQ(std::memcmp(y.data(), y_c.data(), 2 * 30 * 50), 0) << name;
  };
  Engine& engine = engine_->engine;
  softmax(engine, x, y);
  expect([&] { return headlight_softmax(engine_, &in, &out, &error_); }, "softmax");
  softmax_backward(engine, x, gradient, y);
  expect([&] { return headlight_softmax_backward(engine_, &in, &back, &out, &error_); }, "softmax_backward");
  activate(engine, Activation::gelu, x, y);
  expect([&] { return headlight_activate(engine_, HEADLIGHT_ACTIVATION_GELU, &in, &out, &error_); }, "activate");
  activate_backward(engine, Activation::gelu, x, gradient, y);
  expect([&] { return headlight_activate_backward(engine_, HEADLIGHT_ACTIVATION_GELU, &in, &back, &out, &error_); },
         "activate_backward");
  layer_norm(engine, x, y, {.residual = gradient});
  headlight_layer_norm_options options = HEADLIGHT_OPTIONS(headlight_layer_norm_options);
  options.residual = &back;
  expect([&] { return headlight_layer_norm(engine_, &in, &out, &options, &error_); }, "layer_norm");
  layer_norm_backward(engine, x, gradient, {.x = y, .residual = gradient});
  headlight_layer_norm_gradients gradients = HEADLIGHT_OPTIONS(headlight_layer_norm_gradients);
  gradients.x = &out;
  gradients.residual = &back;
  expect([&] { return headlight_layer_norm_backward(engine_, &in, &back, &gradients, nullptr, &error_); },
         "layer_norm_backward");
  const headlight_dropout drop{.probability = 0.25f, .stream = 1, .seed = 2};
  dropout(engine, x, y, {.probability = 0.25f, .seed = 2, .stream = 1}, gradient);
  expect([&] { return headlight_apply_dropout(engine_, &in, &out, &drop, &back, &error_); }, "apply_dropout");
  const std::array<std::int64_t, 30> ids{3, 1, 29};
  const headlight_indices words{ids.data(), 30};
  embed(engine, std::array{Embedding{x, ids}}, y);
  expect([&] { return headlight_embed(engine_, &in, &words, 1, &out, &error_); }, "embed");

  Tensor<float, 2> table({30, 50}), table_c({30, 50});
  Tensor<float, 1> sums({50}), sums_c({50});
  const headlight_tensor to = in_c(table_c), sums_to{sums_c.data(), HEADLIGHT_FLOAT32, 1, columns, nullptr};
  embed_backward(engine, x, std::array{EmbeddingGradient{table, ids}});
  ASSERT_EQ(headlight_embed_backward(engine_, &in, &to, &words, 1, &error_), HEADLIGHT_OK) << error_.message;
  EXPECT_TRUE(same_bits(table, table_c));
  bias_backward(engine, x, std::span(sums.data(), 50));
  ASSERT_EQ(headlight_bias_backward(engine_, &in, &sums_to, &error_), HEADLIGHT_OK) << error_.message;
  EXPECT_TRUE(same_bits(sums, sums_c));

  const headlight_tensor bytes{x.data(), HEADLIGHT_INT8, 2, shape, nullptr};
  EXPECT_EQ(headlight_softmax(engine_, &bytes, &out, &error_), HEADLIGHT_INVALID_ARGUMENT);
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

  network.set_precision(NumberType::bfloat16);
  network.forward(engine_->engine, {.ids = ids, .positions = positions, .offsets = offsets}, hidden);
  EXPECT_FALSE(same_bits(hidden, hidden_c));
  ASSERT_EQ(headlight_layer_set_precision(layer, HEADLIGHT_BFLOAT16, &error_), HEADLIGHT_OK);
  ASSERT_EQ(headlight_encoder_network_forward(layer, engine_, &input, &out, nullptr, 0, &error_), HEADLIGHT_OK);
  EXPECT_TRUE(same_bits(hidden, hidden_c)) << "in bfloat16";
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
