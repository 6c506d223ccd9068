// Layers and optimisers where memory ends, at each of the places where they ask for some: an error that names who
// asked, and everything stays usable.
#include <algorithm>
#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/layers.h"
#include "headlight/optimizer.h"
#include "headlight/out_of_memory.h"
#include "support/allocation_counter.h"
#include "support/compare.h"
#include "support/random.h"

namespace headlight::test::layers_out_of_memory_test {

// What f() says when memory ends at its first request, its second and so on, until there is enough; "" for an error
// without a name.
template <class Function>
std::vector<std::string> words_of(Function f) {
  std::vector<std::string> words;
  for (std::int64_t granted = 0;; ++granted) {
    std::optional<OutOfMemory> lacking;
    try {
      const AllocationLimit limit(granted);
      f();
      return words;
    } catch (const OutOfMemory& error) {
      lacking = error;
    } catch (const std::bad_alloc&) {  // which names nobody
    }
    words.emplace_back(lacking ? lacking->what() : "");
  }
}

template <class Function>
void expect_names(const std::string& what, Function f) {
  const std::vector<std::string> words = words_of(f);
  EXPECT_FALSE(words.empty()) << what;
  const auto unnamed = std::ranges::find(words, "");
  EXPECT_EQ(unnamed, words.end()) << what << " with " << unnamed - words.begin() << " requests granted of "
                                  << words.size();
}

constexpr TransformerLayerOptions kLayer = {.width = 8, .heads = 2, .dropout = 0.5f};
const EncoderOptions kEncoder = {
    .vocabulary = 8, .max_positions = 8, .token_types = 2, .width = 8, .heads = 2, .layers = 2};

TEST(LayersOutOfMemory, NameWhatWasToBeMade) {
  if (!AllocationLimit::works()) GTEST_SKIP() << "a sanitizer's allocator";
  expect_names("Linear", [] { Linear(8, 8); });
  expect_names("LayerNorm", [] { LayerNorm(8); });
  expect_names("FeedForward", [] { FeedForward({.width = 8}); });
  for (const Merge merge : {Merge::concatenate, Merge::weighted, Merge::gated_by_head}) {
    expect_names("MultiHeadAttention", [&] { MultiHeadAttention({.width = 8, .heads = 2, .merge = merge}); });
  }
  expect_names("TransformerEncoderLayer", [] { TransformerEncoderLayer{kLayer}; });
  expect_names("TransformerDecoderLayer", [] { TransformerDecoderLayer{kLayer}; });
  expect_names("Encoder", [] { Encoder{kEncoder}; });
}

TEST(LayersOutOfMemory, NameWhoseParametersWereAskedFor) {
  if (!AllocationLimit::works()) GTEST_SKIP() << "a sanitizer's allocator";
  Encoder encoder(kEncoder);
  encoder.initialize(1);
  const Weights weights = encoder.weights();
  expect_names("parameters", [&] { (void)encoder.parameters(); });
  expect_names("weights", [&] { (void)encoder.weights(); });
  expect_names("count", [&] { (void)encoder.parameter_count(); });
  expect_names("load", [&] { encoder.load(weights); });
  expect_names("training", [&] { encoder.set_training(true); });
  MultiHeadAttention orthogonal({.width = 8, .heads = 2, .orthogonal = true});
  expect_names("initialize", [&] { orthogonal.initialize(1); });
  expect_names("optimizer", [&] { const AdamW made(encoder.parameters()); });
  AdamW optimizer(encoder.parameters());
  expect_names("state", [&] { (void)optimizer.state(); });
}

TEST(LayersOutOfMemory, NameWhoComputed) {
  if (!AllocationLimit::works()) GTEST_SKIP() << "a sanitizer's allocator";
  Random random(1);
  const auto x = random.normal_tensor<3>({2, 5, 8}), memory = random.normal_tensor<3>({2, 3, 8});
  Tensor<float, 3> y(x.shape()), x_gradient(x.shape());
  Engine engine({.threads = 1});
  const auto cold = [&](auto f) {
    return [&engine, f] {
      engine.release_scratch();
      f();
    };
  };
  for (const bool training : {false, true}) {
    TransformerEncoderLayer encoder(kLayer);
    TransformerDecoderLayer decoder(kLayer);
    for (Layer* const layer : {static_cast<Layer*>(&encoder), static_cast<Layer*>(&decoder)}) {
      layer->initialize(1);
      layer->set_training(training);
    }
    expect_names("encoder layer", cold([&] { encoder.forward(engine, x, y); }));
    expect_names("decoder layer", cold([&] { decoder.forward(engine, x, memory, y); }));
    expect_names("reserve", cold([&] { encoder.reserve(engine, 2, 5); }));
    if (!training) continue;
    for (const Checkpoint checkpoint : {Checkpoint::keep_linear, Checkpoint::layer_input}) {
      SavedState saved(checkpoint);
      expect_names("forward", cold([&] {
                     saved = SavedState(checkpoint);
                     encoder.forward(engine, x, y, saved, {});
                   }));
      expect_names("backward", cold([&] { encoder.backward(engine, x, saved, y, x_gradient); }));
      expect_names("decoder's forward", cold([&] {
                     saved = SavedState(checkpoint);
                     decoder.forward(engine, x, memory, y, saved, {});
                   }));
      expect_names("decoder's backward", cold([&] { decoder.backward(engine, x, memory, saved, y, x_gradient); }));
    }
  }
}

TEST(LayersOutOfMemory, NameTheEncoderThatComputed) {
  if (!AllocationLimit::works()) GTEST_SKIP() << "a sanitizer's allocator";
  Encoder encoder(kEncoder);
  encoder.initialize(1);
  const std::vector<std::int64_t> ids = {1, 2, 3, 4, 5}, types(5), offsets = {0, 2, 5};
  const EncoderInput input = {.ids = ids, .positions = ids, .token_types = types, .offsets = offsets};
  Tensor<float, 2> hidden({5, 8});
  Engine engine({.threads = 1});
  const auto expect_cold = [&](const std::string& what, auto f) {
    expect_names(what, [&] {
      engine.release_scratch();
      f();
    });
  };
  expect_cold("forward", [&] { encoder.forward(engine, input, hidden); });
  expect_cold("reserve", [&] { encoder.reserve(engine, 5); });
  encoder.set_training(true);
  for (const Checkpoint checkpoint : {Checkpoint::keep_linear, Checkpoint::layer_input, Checkpoint::every_k_layers}) {
    SavedState saved(checkpoint, checkpoint == Checkpoint::every_k_layers ? 2 : 0);
    expect_cold("forward in training", [&] {
      saved = SavedState(checkpoint, saved.k());
      encoder.forward(engine, input, hidden, saved, {});
    });
    expect_cold("backward", [&] { encoder.backward(engine, input, saved, hidden); });
  }
}

// Of two heads, whose weights take more than what the operations before them have left to reuse.
TEST(LayersOutOfMemory, NameTheEncoderWhoseHeadsAreWeighted) {
  if (!AllocationLimit::works()) GTEST_SKIP() << "a sanitizer's allocator";
  EncoderOptions options = kEncoder;
  options.width = options.heads = 2;
  options.merge = Merge::weighted;
  Encoder encoder(options);
  encoder.initialize(1);
  Engine engine({.threads = 1});
  const std::vector<std::string> words = words_of([&] {
    engine.release_scratch();
    encoder.reserve(engine, 100000);
  });
  EXPECT_FALSE(words.empty());
  for (const std::string& word : words) EXPECT_EQ(word.find("MultiHeadAttention"), std::string::npos) << word;
}

// After every failure the same call gives what it gives a layer that never failed.
TEST(LayersOutOfMemory, LeaveALayerAsItWas) {
  if (!AllocationLimit::works()) GTEST_SKIP() << "a sanitizer's allocator";
  Random random(2);
  const auto x = random.normal_tensor<3>({1, 4, 8});
  Engine engine({.threads = 1});
  TransformerEncoderLayer layer(kLayer), calm(kLayer), other(kLayer);
  layer.initialize(1);
  calm.initialize(1);
  other.initialize(2);
  Tensor<float, 3> y(x.shape()), expected(x.shape());
  calm.forward(engine, x, expected);
  words_of([&] { (void)layer.weights(); });
  words_of([&] { layer.forward(engine, x, y); });
  words_of([&] { layer.set_training(true); });
  words_of([&] { (void)layer.parameters(); });
  layer.set_training(false);
  layer.freeze();
  layer.forward(engine, x, y);
  EXPECT_TRUE(same_bits(y, expected));
  // A load that is refused half-way writes nothing.
  const Weights weights = other.weights();
  for (std::int64_t granted = 0;; ++granted) {
    try {
      const AllocationLimit limit(granted);
      layer.load(weights);
      break;
    } catch (const std::bad_alloc&) {
    }
    layer.forward(engine, x, y);
    ASSERT_TRUE(same_bits(y, expected)) << granted;
  }
}

// After reserve() memory cannot end on the way.
TEST(LayersOutOfMemory, LackNothingAfterReserve) {
  if (!AllocationLimit::works()) GTEST_SKIP() << "a sanitizer's allocator";
  Random random(3);
  const auto x = random.normal_tensor<3>({2, 5, 8}), memory = random.normal_tensor<3>({2, 3, 8});
  const View<const float, 2> rows(x.data(), {10, 8});
  const std::vector<std::int64_t> ids = {1, 2, 3, 0, 1}, types = {0, 1, 0, 1, 0}, offsets = {0, 2, 5};
  Tensor<float, 3> y(x.shape());
  Tensor<float, 2> hidden({5, 8}), out({10, 8});
  Linear linear(8, 8);
  LayerNorm norm(8);
  FeedForward feed_forward({.width = 8});
  MultiHeadAttention attention({.width = 8, .heads = 2, .merge = Merge::gated_by_head});
  TransformerEncoderLayer encoder_layer({.width = 8, .heads = 2, .norm = Norm::pre});
  TransformerDecoderLayer decoder_layer({.width = 8, .heads = 2, .norm = Norm::pre});
  Encoder encoder(kEncoder);
  Engine engine({.threads = 1});
  const auto expect_enough = [&](auto reserve, auto forward) {
    engine.release_scratch();
    reserve();
    const AllocationLimit limit(0);
    forward();
  };
  expect_enough([&] { linear.reserve(engine, 10); }, [&] { linear.forward(engine, rows, out); });
  expect_enough([] {}, [&] { norm.forward(engine, rows, out); });
  expect_enough([&] { feed_forward.reserve(engine, 2, 5); }, [&] { feed_forward.forward(engine, x, y); });
  expect_enough([&] { attention.reserve(engine, {.batch = 2, .query_length = 5, .key_length = 5}); },
                [&] { attention.forward(engine, x, x, x, y); });
  expect_enough([&] { encoder_layer.reserve(engine, 2, 5); }, [&] { encoder_layer.forward(engine, x, y); });
  expect_enough([&] { decoder_layer.reserve(engine, 2, 5, 3); }, [&] { decoder_layer.forward(engine, x, memory, y); });
  expect_enough([&] { encoder.reserve(engine, 5); },
                [&] {
                  encoder.forward(engine, {.ids = ids, .positions = ids, .token_types = types, .offsets = offsets},
                                  hidden);
                });
}

}  // namespace headlight::test::layers_out_of_memory_test
