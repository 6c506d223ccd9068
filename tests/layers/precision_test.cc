// Layers whose products multiply in a narrower type than float32: what they compute, and which numbers they keep.
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/attention.h"
#include "headlight/layers.h"
#include "headlight/normalization.h"
#include "headlight/out_of_memory.h"
#include "layers/encoder_twin.h"
#include "layers/feed_forward_rows.h"
#include "layers/twins.h"
#include "support/allocation_counter.h"
#include "support/compare.h"
#include "support/isas.h"
#include "support/narrow_types.h"
#include "support/random.h"
#include "support/refusal.h"
#include "support/workers.h"

namespace headlight::test::precision_test {

using Precision = EachIsaAndFeature;
HEADLIGHT_ON_EVERY_FEATURE(Precision);

View<const float, 2> matrix_of(const Weights& weights, const std::string& name) {
  const WeightView& weight = weights.at(name);
  return {weight.values.data(), {weight.shape[0], weight.shape[1]}};
}

std::span<const float> vector_of(const Weights& weights, const std::string& name) { return weights.at(name).values; }

// The values of weights, wherever they lie later.
std::map<std::string, std::vector<float>> copy_of(const Layer& layer) {
  std::map<std::string, std::vector<float>> values;
  for (const auto& [name, weight] : layer.weights()) values[name] = {weight.values.begin(), weight.values.end()};
  return values;
}

// y = x Wᵀ + b as gemm() computes it in that type.
Tensor<float, 2> product(Engine& engine, const View<const float, 2>& x, const Weights& weights, const std::string& name,
                         NumberType type, GemmOptions options = {}) {
  const bool is_projection = name.ends_with("in_proj_");
  options.bias = vector_of(weights, name + (is_projection ? "bias" : ".bias"));
  const PackedMatrix packed(engine, matrix_of(weights, name + (is_projection ? "weight" : ".weight")), Transpose::yes,
                            type);
  Tensor<float, 2> y({x.extent(0), packed.columns()});
  gemm(engine, x, packed, y, options);
  return y;
}

template <class T>
View<const T, 4> heads_of(const Tensor<T, 2>& projected, std::int64_t which, std::int64_t heads) {
  const std::int64_t rows = projected.shape()[0], width = projected.shape()[1] / 3, columns = 3 * width;
  return {
      projected.data() + which * width, {1, rows, heads, width / heads}, {rows * columns, columns, width / heads, 1}};
}

Tensor<BFloat16, 2> rounded(const Tensor<float, 2>& from) {
  Tensor<BFloat16, 2> to(from.shape());
  std::transform(from.begin(), from.end(), to.begin(), [](float x) { return BFloat16(x); });
  return to;
}

// Whether attention between products in that type is over bfloat16.
bool attends_in_pairs(const Engine& engine, std::int64_t head_dim, NumberType type) {
  const bool rounds_activations = type != NumberType::float32 && type != NumberType::float16;
  return rounds_activations && engine.features().has(InstructionFeature::avx512_bf16) && head_dim % 2 == 0;
}

// A layer of the original transformer, put together from its operations. What is rounded for a product alone is left in
// float32 here, for the product rounds it as well.
Tensor<float, 2> layer_of_parts(Engine& engine, const View<const float, 2>& x, const Weights& weights,
                                std::int64_t heads, NumberType type) {
  const std::int64_t rows = x.extent(0), width = x.extent(1);
  const Tensor<float, 2> projected = product(engine, x, weights, "self_attn.in_proj_", type);
  Tensor<float, 2> attended({rows, width});
  const View<float, 4> out(attended.data(), {1, rows, heads, width / heads});
  const auto attend = [&](const auto& of) {
    attention(engine, heads_of(of, 0, heads), heads_of(of, 1, heads), heads_of(of, 2, heads), out);
  };
  if (attends_in_pairs(engine, width / heads, type)) {
    attend(rounded(projected));
  } else {
    attend(projected);
  }
  const auto normalised = [&](Tensor<float, 2> of, const std::string& name) {
    layer_norm(engine, of, of,
               {.weight = vector_of(weights, name + ".weight"),
                .bias = vector_of(weights, name + ".bias"),
                .epsilon = TransformerLayerOptions().layer_norm_epsilon});
    return of;
  };
  const Tensor<float, 2> middle =
      normalised(product(engine, attended, weights, "self_attn.out_proj", type, {.residual = x}), "norm1");
  const Tensor<float, 2> hidden = product(engine, middle, weights, "linear1", type, {.activation = Activation::gelu});
  return normalised(product(engine, hidden, weights, "linear2", type, {.residual = middle}), "norm2");
}

TEST_P(Precision, ALayerIsItsPartsInThatType) {
  Engine engine(options());
  Random random(1);
  const auto x = random.normal_tensor<3>({1, 19, 48});
  // Heads of 12 numbers, and of 3.
  for (const std::int64_t heads : {4, 16}) {
    TransformerEncoderLayer layer({.width = 48, .heads = heads, .activation = Activation::gelu});
    randomize(layer, random);
    Tensor<float, 3> y(x.shape());
    for (const NumberType type :
         {NumberType::float32, kNarrow[0], NumberType::float32, kNarrow[1], kNarrow[2], kNarrow[3]}) {
      layer.set_precision(type);
      EXPECT_EQ(layer.precision(), type);
      layer.forward(engine, x, y);
      const Tensor<float, 2> expected = layer_of_parts(engine, {x.data(), {19, 48}}, layer.weights(), heads, type);
      EXPECT_TRUE(same_bits(View<const float, 2>(y.data(), {19, 48}), expected.view())) << name(type);
    }
  }
}

// Heads that somebody looks at are float32, whatever type they have else.
TEST_P(Precision, LookingAtHeadsChangesNoBit) {
  Engine engine(options());
  Random random(10);
  constexpr std::int64_t kSilenced[] = {1};
  const auto x = random.normal_tensor<3>({2, 9, 32});
  for (const Merge merge : {Merge::concatenate, Merge::average, Merge::weighted_by_input, Merge::gated_by_element}) {
    MultiHeadAttention layer({.width = 32, .heads = 4, .merge = merge});
    randomize(layer, random);
    for (const NumberType type : kNarrow) {
      SCOPED_TRACE(std::string(name(merge)) + " in " + std::string(name(type)));
      layer.set_precision(type);
      for (const std::span<const std::int64_t> silenced : {std::span<const std::int64_t>(), {kSilenced}}) {
        Tensor<float, 3> expected(x.shape()), y(x.shape()), outputs(x.shape()), scaled(x.shape()), again(x.shape());
        layer.forward(engine, x, x, x, expected, {}, {}, {.silenced = silenced});
        layer.forward(engine, x, x, x, y, {}, {}, {.outputs = outputs, .silenced = silenced});
        EXPECT_TRUE(same_bits(y, expected)) << "outputs";
        layer.forward(engine, x, x, x, y, {}, {}, {.silenced = silenced, .scaled_outputs = scaled});
        EXPECT_TRUE(same_bits(y, expected)) << "scaled outputs";
        layer.forward(engine, x, x, x, y, {}, {}, {outputs, silenced, again});
        EXPECT_TRUE(same_bits(y, expected)) << "both";
        EXPECT_TRUE(same_bits(again, scaled));
        EXPECT_TRUE(merge != Merge::concatenate || same_bits(outputs, scaled));
      }
    }
  }
}

// Keys and values of another tensor, of fewer heads, and views whose rows are no matrix.
TEST_P(Precision, AttendsToAnotherTensorSampleBySample) {
  Engine engine(options());
  Random random(11);
  const auto all = random.normal_tensor<3>({2, 9, 32}), memory = random.normal_tensor<3>({2, 14, 32});
  const View<const float, 3> x(all.data(), {2, 5, 32}, all.view().strides), y = memory;
  MultiHeadAttention layer({.width = 32, .heads = 4, .key_value_heads = 2});
  randomize(layer, random);
  for (const NumberType type : kNarrow) {
    layer.set_precision(type);
    Tensor<float, 3> together({2, 5, 32}), alone({1, 5, 32});
    layer.forward(engine, x, y, y, together);
    for (std::int64_t b = 0; b < 2; ++b) {
      const View<const float, 3> one(&x(b, 0, 0), {1, 5, 32}), keys(&y(b, 0, 0), {1, 14, 32});
      layer.forward(engine, one, keys, keys, alone);
      EXPECT_TRUE(same_bits(alone.view(), View<float, 3>(&together(b, 0, 0), {1, 5, 32}))) << name(type);
    }
  }
}

TEST_P(Precision, SameBitsOverThreadsAndCompany) {
  Random random(2);
  Encoder encoder({.vocabulary = 50, .max_positions = 64, .token_types = 2, .width = 96, .heads = 4, .layers = 2});
  randomize(encoder, random);
  const Tokens tokens(random, 50, {1, 7, 64, 30, 2, 33});
  for (const NumberType type : kNarrow) {
    encoder.set_precision(type);
    Engine one(options());
    Tensor<float, 2> once({tokens.count(), 96}), again({tokens.count(), 96});
    encoder.forward(one, tokens.input(), once);
    for (const int threads : {1, 2, 3, 5, 8}) {
      Engine engine(options(threads));
      encoder.forward(engine, tokens.input(), again);
      EXPECT_TRUE(same_bits(again, once)) << threads << " threads";
      for (std::size_t s = 0; s + 1 < tokens.offsets.size(); ++s) {
        const Tokens alone = tokens.only(s);
        Tensor<float, 2> hidden({alone.count(), 96});
        encoder.forward(engine, alone.input(), hidden);
        EXPECT_TRUE(same_bits(hidden.view(), View<float, 2>(&once(tokens.offsets[s], 0), hidden.shape())))
            << "sequence " << s << " alone, " << threads << " threads";
      }
    }
  }
}

TEST_P(Precision, AllocatesNothingAfterReserve) {
  Random random(3);
  for (const NumberType type : kNarrow) {
    for (const int threads : {1, 3}) {
      Encoder encoder({.vocabulary = 50, .max_positions = 64, .token_types = 2, .width = 48, .heads = 4, .layers = 2});
      randomize(encoder, random);
      encoder.set_precision(type);
      const Tokens tokens(random, 50, {40, 3, 25});
      Tensor<float, 2> hidden({tokens.count(), 48});
      const EncoderInput input = tokens.input();
      Engine engine(options(threads));
      wait_for_workers(engine);
      encoder.reserve(engine, tokens.count());
      EXPECT_GE(engine.scratch_bytes(), encoder.workspace_bytes(engine, tokens.count()));
      const AllocationCounter counter;
      encoder.forward(engine, input, hidden);
      const std::int64_t allocations = counter.count();
      EXPECT_EQ(allocations, 0) << name(type) << ", threads: " << threads;
    }
  }
}

// Rows go through a feed-forward part some at a time: what is left over takes no more memory than the others.
TEST(LayerPrecision, AllocatesNothingForTheRowsThatAreLeft) {
  for (const NumberType type : kNumberTypes) {
    constexpr std::int64_t kHidden = 3072;
    const std::int64_t at_once = layers::rows_at_once(INT64_MAX, kHidden);
    FeedForward layer({.width = 16, .hidden_width = kHidden});
    layer.set_precision(type);
    for (const int threads : {1, 3}) {
      for (const std::int64_t left : {1, 8, 48, 97, 144, 145, 190}) {
        const Tensor<float, 3> x({1, at_once + left, 16});
        Tensor<float, 3> y(x.shape());
        Engine engine({.threads = threads});
        wait_for_workers(engine);
        layer.reserve(engine, 1, x.shape()[1]);
        const AllocationCounter counter;
        layer.forward(engine, x, y);
        const std::int64_t allocations = counter.count();
        EXPECT_EQ(allocations, 0) << name(type) << ", " << threads << " threads, " << left << " rows left";
      }
    }
  }
}

// An open layer's weights may change at any time, and gradients are those of float32.
TEST(LayerPrecision, IsFloat32WhileALayerIsOpen) {
  Engine engine({.threads = 1});
  Random random(4);
  const auto x = random.normal_tensor<3>({2, 5, 16});
  TransformerEncoderLayer layer({.width = 16, .heads = 2}), plain({.width = 16, .heads = 2});
  randomize(layer, random);
  plain.load(layer.weights());
  layer.set_precision(NumberType::bfloat16);
  Tensor<float, 3> narrow(x.shape()), wide(x.shape()), y(x.shape());
  layer.forward(engine, x, narrow);
  plain.forward(engine, x, wide);
  EXPECT_FALSE(same_bits(narrow, wide));
  const auto is = [&](const Tensor<float, 3>& expected) {
    layer.forward(engine, x, y);
    return same_bits(y, expected);
  };
  EXPECT_TRUE(is(narrow));
  (void)layer.parameters();
  EXPECT_TRUE(is(wide)) << "somebody may write";
  layer.freeze();
  EXPECT_TRUE(is(narrow));
  layer.set_training(true);
  EXPECT_TRUE(is(wide)) << "trains";
  layer.set_training(false);
  EXPECT_TRUE(is(narrow));
  layer.load(plain.weights());
  EXPECT_TRUE(is(narrow)) << "loaded anew";
  EXPECT_EQ(layer.precision(), NumberType::bfloat16);
  TransformerEncoderLayer moved = std::move(layer);
  layer = std::move(moved);
  EXPECT_TRUE(is(narrow)) << "moved";
}

TEST(LayerPrecision, LeavesWeightsAsTheyWerePutIn) {
  Engine engine({.threads = 1});
  Random random(5);
  Encoder encoder({.vocabulary = 9, .max_positions = 6, .width = 8, .heads = 2, .layers = 1});
  randomize(encoder, random);
  const auto before = copy_of(encoder);
  const Tokens tokens(random, 9, {4});
  Tensor<float, 2> hidden({4, 8});
  // Packed in one type, then the other: numbers lie in panels of float32 alone in between.
  for (const NumberType type : {NumberType::bfloat16, NumberType::float32, NumberType::bfloat16}) {
    encoder.set_precision(type);
    encoder.forward(engine, {tokens.ids, tokens.positions, {}, tokens.offsets}, hidden);
  }
  EXPECT_EQ(copy_of(encoder), before);
}

TEST(LayerPrecision, RefusesWhatIsNoType) {
  Linear layer(2, 3);
  EXPECT_EQ(refusal([&] { layer.set_precision(static_cast<NumberType>(9)); }),
            "Linear: precision is 9, expected float32, bfloat16, float16, int8 or int4");
  EXPECT_EQ(layer.precision(), NumberType::float32);
}

TEST(LayerPrecision, ThatCannotBeHadChangesNothing) {
  if (!AllocationLimit::works()) GTEST_SKIP() << "a sanitizer's allocator";
  Engine engine({.threads = 1});
  Random random(6);
  const auto x = random.normal_tensor<3>({1, 4, 8});
  FeedForward layer({.width = 8});
  randomize(layer, random);
  Tensor<float, 3> expected(x.shape()), y(x.shape());
  layer.forward(engine, x, expected);  // and the weights lie in panels alone
  for (std::int64_t granted = 0;; ++granted) {
    try {
      const AllocationLimit limit(granted);
      layer.set_precision(NumberType::bfloat16);
      EXPECT_GE(granted, 2) << "rows of two matrices";
      break;
    } catch (const OutOfMemory&) {  // anything else ends the test
    }
    EXPECT_EQ(layer.precision(), NumberType::float32);
    layer.forward(engine, x, y);
    EXPECT_TRUE(same_bits(y, expected)) << granted << " requests granted";
  }
  EXPECT_EQ(layer.precision(), NumberType::bfloat16);
  // Nor does a product that finds no room for panels.
  layer.forward(engine, x, expected);
  FeedForward again({.width = 8});
  again.load(layer.weights());
  again.set_precision(NumberType::bfloat16);
  for (std::int64_t granted = 0;; ++granted) {
    try {
      const AllocationLimit limit(granted);
      again.forward(engine, x, y);
      break;
    } catch (const OutOfMemory&) {
    }
  }
  EXPECT_TRUE(same_bits(y, expected));
}

}  // namespace headlight::test::precision_test
