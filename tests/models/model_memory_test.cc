// A model that is warm, or reserved, takes no memory.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "headlight/models/headlight_models.h"
#include "headlight/models/text_encoder.h"
#include "headlight/out_of_memory.h"
#include "models/golden_family.h"
#include "models/random_input.h"
#include "models/tiny_bert.h"
#include "support/allocation_counter.h"
#include "support/compare.h"
#include "support/random.h"
#include "support/refusal.h"
#include "support/workers.h"

namespace headlight::models::model_memory_test {

using test::AllocationCounter;
using test::same_bits;
using test::ScratchFolder;
using test::TinyBert;

// What one call of each kind allocates.
struct Allocations {
  std::int64_t embed_texts, embed_ids, encode_ids;
  bool operator==(const Allocations&) const = default;
};

Allocations allocations_of(const TextEncoder& model, Engine& engine, const std::vector<std::string>& texts,
                           const Ids& rows) {
  const std::int64_t width = model.options().encoder.width;
  Tensor<float, 2> of_texts({static_cast<std::int64_t>(texts.size()), width}), of_rows({rows.ids.shape()[0], width});
  Tensor<float, 3> hidden({rows.ids.shape()[0], rows.ids.shape()[1], width});
  const auto count = [](auto f) {
    const AllocationCounter counter;
    f();
    return counter.count();
  };
  return {count([&] { model.embed(engine, texts, of_texts); }),
          count([&] { model.embed(engine, rows.ids, rows.mask, of_rows); }),
          count([&] { model.encode(engine, rows.ids, rows.mask, hidden); })};
}

constexpr Allocations kNone = {0, 0, 0};

TEST(ModelMemory, NothingIsAllocatedOnceWarm) {
  test::Random random(1);
  const TextEncoder model = tiny();
  const auto texts = random_texts(random, 30, 8);
  const Ids rows = random_ids(random, 9, 12);
  for (const int threads : {1, 3}) {
    Engine engine({.threads = threads});
    test::wait_for_workers(engine);
    (void)allocations_of(model, engine, texts, rows);
    EXPECT_EQ(allocations_of(model, engine, texts, rows), kNone) << threads << " threads";
    for (int fewer = 0; fewer < 20; ++fewer) {
      const std::vector<std::string> some(texts.begin(), texts.begin() + random.integer(0, 30));
      EXPECT_EQ(allocations_of(model, engine, some, rows), kNone) << some.size() << " texts";
    }
  }
}

TEST(ModelMemory, NothingIsAllocatedFromCEither) {
  const ScratchFolder folder;
  const std::string path = TinyBert().write(folder);
  headlight_encoder* model = nullptr;
  headlight_engine* engine = nullptr;
  headlight_error error{};
  headlight_engine_options options{};
  options.struct_size = sizeof options;
  options.threads = 1;
  ASSERT_EQ(headlight_encoder_load(path.c_str(), &model, &error), HEADLIGHT_OK) << error.message;
  ASSERT_EQ(headlight_engine_create(&options, &engine, &error), HEADLIGHT_OK) << error.message;
  ASSERT_EQ(headlight_encoder_reserve(model, engine, 100, &error), HEADLIGHT_OK) << error.message;
  const char* const texts[] = {"a b c", "", "d é"};
  const std::int64_t shape[] = {3, TinyBert::kWidth};
  Tensor<float, 2> vectors({3, TinyBert::kWidth});
  const headlight_tensor out = {vectors.data(), HEADLIGHT_FLOAT32, 2, shape, nullptr};
  const AllocationCounter counter;
  const headlight_status status = headlight_encoder_embed_texts(model, engine, texts, nullptr, 3, &out, &error);
  const std::int64_t allocations = counter.count();
  EXPECT_EQ(status, HEADLIGHT_OK) << error.message;
  EXPECT_EQ(allocations, 0);
  headlight_engine_destroy(engine);
  headlight_encoder_destroy(model);
}

// What is returned is the only thing that a warm call allocates.
TEST(ModelMemory, AResultIsOneAllocation) {
  test::Random random(2);
  const TextEncoder model = tiny();
  Engine engine({.threads = 1});
  const auto texts = random_texts(random, 7, 8);
  (void)model.embed(engine, texts);
  const AllocationCounter counter;
  const Tensor<float, 2> vectors = model.embed(engine, texts);
  EXPECT_EQ(counter.count(), 1);
}

TEST(ModelMemory, NothingIsAllocatedAfterReserve) {
  test::Random random(3);
  // Once for calls of a few tokens, once for more than go through the network at a time.
  for (const std::int64_t tokens : {40, 5000}) {
    for (const int threads : {1, 3}) {
      const TextEncoder model = tiny();
      Engine engine({.threads = threads});
      test::wait_for_workers(engine);
      model.reserve(engine, tokens);
      for (int call = 0; call < 20; ++call) {
        const std::int64_t words = random.integer(1, 7);  // two tokens each at most, [CLS] and [SEP]
        const auto texts = random_texts(random, random.integer(0, tokens / (2 * words + 2)), words);
        const std::int64_t columns = random.integer(1, 12);
        const Ids rows = random_ids(random, random.integer(0, tokens / columns), columns);
        EXPECT_EQ(allocations_of(model, engine, texts, rows), kNone)
            << texts.size() << " texts of up to " << words << " words, " << rows.ids.shape()[0] << " rows of "
            << columns << ", " << threads << " threads";
      }
    }
  }
}

// Fewer tokens may take another route through attention, and more memory: sequences that go through a layer by
// themselves, and others.
TEST(ModelMemory, NothingIsAllocatedForFewerTokensThanAreReserved) {
  constexpr std::int64_t kTokens = 2048;
  ModelOptions options;
  options.encoder = {.vocabulary = 5,
                     .max_positions = kTokens,
                     .token_types = 2,
                     .width = 768,
                     .heads = 12,
                     .feed_forward_width = 64,
                     .layers = 1};
  options.max_length = kTokens;
  const TextEncoder model(options, Tokenizer({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"}),
                          headlight::Encoder(options.encoder));
  Engine engine({.threads = 2});
  test::wait_for_workers(engine);
  model.reserve(engine, kTokens);
  const std::size_t reserved = engine.scratch_bytes();
  for (const auto [rows, columns] : {std::array<std::int64_t, 2>{1, 1473}, {2, 750}, {3, 600}, {1, 1137}, {8, 144}}) {
    const Tensor<std::int64_t, 2> ids({rows, columns});
    Tensor<float, 2> out({rows, model.embed_width()});
    const AllocationCounter counter;
    model.embed(engine, ids, View<const std::int64_t, 2>(), out);
    EXPECT_EQ(counter.count(), 0) << rows << " of " << columns << " tokens";
    EXPECT_EQ(engine.scratch_bytes(), reserved) << rows << " of " << columns << " tokens";
  }
}

// Vectors that keep the length of what a Normalize layer left of all their numbers, and are cut then.
TEST(ModelMemory, NothingIsAllocatedForShorterVectorsAfterReserve) {
  test::Random random(7);
  const ScratchFolder folder;
  const TextEncoder made = load(TinyBert().write(folder));
  for (const std::vector<VectorLayer>& layers : {std::vector<VectorLayer>{}, {VectorLayer{}}}) {
    ModelOptions options = made.options();
    options.vector_layers = layers;
    headlight::Encoder network(made.network().options());
    network.initialize(1);
    const TextEncoder model(options, made.tokenizer(), std::move(network));
    const auto texts = random_texts(random, 30, 7);
    Engine engine({.threads = 1});
    model.reserve(engine, 30 * 16);
    for (const std::int64_t width : {TinyBert::kWidth, std::int64_t{5}}) {
      for (const bool normalize : {false, true}) {
        Tensor<float, 2> out({30, width});
        const EmbedOptions call{.normalize = normalize, .truncate_dim = width};
        const AllocationCounter counter;
        model.embed(engine, texts, out, call);
        EXPECT_EQ(counter.count(), 0) << width << " numbers, " << layers.size() << " layers, " << normalize;
      }
    }
  }
}

// Whatever the tokenizer, and with a prompt in front of texts.
TEST(ModelMemory, NothingIsAllocatedForAnyFamilyAfterReserve) {
  const std::vector<std::string> texts{"the streets are long", "", "Ça ne fait rien, été\u0301!",
                                       "机器人拿起红色的积木", "  a  "};
  const ScratchFolder scratch;
  for (const test::GoldenFamily* const family : test::families_of_hidden_states()) {
    const TextEncoder model = load(family->write(scratch.path(family->name)));
    Engine engine({.threads = 1});
    const std::int64_t longest = model.options().embed_max_length;
    model.reserve(engine, longest * std::ssize(texts));
    Tensor<float, 2> out({std::ssize(texts), model.embed_width()});
    for (const char* const prompt : {"", "the query of somebody who asks for something: "}) {
      const EmbedOptions call{.prompt = prompt};
      const AllocationCounter counter;
      model.embed(engine, texts, out, call);
      const std::int64_t allocations = counter.count();
      EXPECT_EQ(allocations, 0) << family->name << ", prompt '" << prompt << "'";
    }
  }
}

// Tokens that are looked for in what normalising leaves.
TEST(ModelMemory, NothingIsAllocatedForNormalizedTokensAfterReserve) {
  const TextEncoder made = tiny();
  ModelOptions options = made.options();
  options.tokenizer.added_tokens = {{.content = "É", .id = 5, .normalized = true}};
  headlight::Encoder network(made.network().options());
  network.initialize(1);
  const TextEncoder model(options, Tokenizer(made.tokenizer().vocabulary(), options.tokenizer), std::move(network));
  Engine engine({.threads = 1});
  const std::vector<std::string> texts{"a b é c", "e\u0301 É", ""};
  model.reserve(engine, 3 * model.options().embed_max_length);
  Tensor<float, 2> out({3, model.embed_width()});
  const AllocationCounter counter;
  model.embed(engine, texts, out);
  EXPECT_EQ(counter.count(), 0);
}

// What one piece without end took is given back, and what was reserved is there again.
TEST(ModelMemory, LongTextsAreForgotten) {
  const std::string long_text(std::size_t{1} << 18, '0');  // of which there are tokens of two
  const ScratchFolder scratch;
  for (const test::GoldenFamily* const family : test::families_of_hidden_states()) {
    const TextEncoder model = load(family->write(scratch.path(family->name)));
    Engine engine({.threads = 1});
    const std::int64_t tokens = model.options().embed_max_length;
    const std::int64_t before = model.call_bytes(engine, tokens).one_text;
    Tensor<float, 2> out({1, model.embed_width()});
    const EmbedOptions prompted{.prompt = "query: "};
    model.embed(engine, std::vector<std::string>{long_text}, out, prompted);
    EXPECT_FALSE(model.tokenize(long_text).empty());
    EXPECT_LE(model.call_bytes(engine, tokens).one_text, before + (std::int64_t{1} << 20)) << family->name;
    const std::vector<std::string> short_text{"the streets are long"};
    const AllocationCounter counter;
    model.embed(engine, short_text, out, prompted);
    const std::int64_t allocations = counter.count();
    EXPECT_EQ(allocations, 0) << family->name;
  }
}

// What call_bytes() says is there then, and grows with the tokens.
TEST(ModelMemory, BytesOfACallAreTold) {
  const TextEncoder model = tiny();
  Engine engine({.threads = 1});
  const TextEncoder::CallBytes few = model.call_bytes(engine, 2);
  EXPECT_GE(few.further_text, static_cast<std::int64_t>(engine.scratch_bytes()));
  EXPECT_GT(few.one_text, few.further_text);
  const TextEncoder::CallBytes more = model.call_bytes(engine, 12);
  EXPECT_GT(more.one_text, few.one_text);
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(model.call_bytes(engine, kMost).further_text, model.call_bytes(engine, kMost / 2).further_text);
  EXPECT_GE(model.call_bytes(engine, kMost).further_text, more.further_text);
  EXPECT_EQ(test::refusal([&] { static_cast<void>(model.call_bytes(engine, -1)); }),
            "models::TextEncoder: reserve() for -1 tokens, expected at least 0");
}

TEST(ModelMemory, CallsAtOnceHaveMemoryOfTheirOwn) {
  test::Random random(4);
  const TextEncoder model = tiny();
  const auto texts = random_texts(random, 400, 8);
  Engine engine({.threads = 1});
  const Tensor<float, 2> expected = model.embed(engine, texts);
  std::vector<Tensor<float, 2>> results(4);
  std::vector<std::thread> threads;
  for (Tensor<float, 2>& result : results) {
    threads.emplace_back([&] {
      for (int call = 0; call < 3; ++call) result = model.embed(engine, texts);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Tensor<float, 2>& result : results) EXPECT_TRUE(same_bits(result, expected));
}

TEST(ModelMemory, ALackOfItNamesTheModel) {
  if (!test::AllocationLimit::works()) GTEST_SKIP() << "a sanitizer's allocator";
  test::Random random(6);
  const TextEncoder model = tiny();
  const auto texts = random_texts(random, 5, 8);
  Tensor<float, 2> out({5, TinyBert::kWidth});
  Engine engine({.threads = 1});
  int failures = 0;
  for (bool done = false; !done; ++failures) {
    try {
      const test::AllocationLimit limit(failures);
      model.embed(engine, texts, out);
      done = true;
    } catch (const OutOfMemory&) {  // anything else ends the test
    }
  }
  EXPECT_GT(failures, 5);
}

// Without its n-th piece of memory, whichever that is, a call says so: it neither ends the process nor leaves a part
// behind.
TEST(ModelMemory, EachSingleLackOfItIsAnError) {
  if (!test::AllocationLimit::works()) GTEST_SKIP() << "a sanitizer allocates";
  const ScratchFolder from;
  const ScratchFolder to;
  const std::string folder = TinyBert().write(from);
  const std::string copy = to.path("copy");
  for (const bool saves : {false, true}) {
    headlight_encoder* encoder = nullptr;
    if (saves) {
      ASSERT_EQ(headlight_encoder_load(folder.c_str(), &encoder, nullptr), HEADLIGHT_OK);
    }
    headlight_status status = HEADLIGHT_OUT_OF_MEMORY;
    std::int64_t refusals = 0;
    for (std::int64_t granted = 0; status != HEADLIGHT_OK; granted += 1 + granted / 50) {
      std::filesystem::remove_all(copy);
      headlight_error error{};
      {
        const test::AllocationLimit limit(granted);
        status = saves ? headlight_encoder_save(encoder, copy.c_str(), &error)
                       : headlight_encoder_load(folder.c_str(), &encoder, &error);
      }
      if (status == HEADLIGHT_OK) break;
      ASSERT_EQ(status, HEADLIGHT_OUT_OF_MEMORY) << granted << ": " << error.message;
      ++refusals;
      if (!std::filesystem::exists(copy)) continue;
      for (const auto& entry : std::filesystem::directory_iterator(copy)) {
        EXPECT_FALSE(entry.path().filename().string().starts_with('.')) << entry.path();
      }
    }
    EXPECT_GT(refusals, 50);
    headlight_encoder_destroy(encoder);
  }
}

}  // namespace headlight::models::model_memory_test
