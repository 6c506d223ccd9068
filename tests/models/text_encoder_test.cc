#include "headlight/models/text_encoder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "headlight/models/npy.h"
#include "models/tiny_bert.h"
#include "support/compare.h"
#include "support/golden.h"
#include "support/isas.h"
#include "support/quick.h"

namespace headlight::models::model_encoder_test {

using test::same_bits;
using test::ScratchFolder;
using test::TinyBert;

constexpr std::int64_t kRows = 3;
constexpr std::int64_t kLength = 9;

Tensor<std::int64_t, 2> tiny_ids() {
  Tensor<std::int64_t, 2> ids({kRows, kLength});
  for (std::int64_t n = 0; n < ids.size(); ++n) ids.data()[n] = (7 * n + 3) % TinyBert::kVocabulary;
  return ids;
}

Tensor<std::int64_t, 2> tiny_mask() {
  constexpr std::int64_t kMask[kRows][kLength] = {
      {1, 1, 1, 1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 0, 0, 0, 0}, {1, 1, 0, 1, 0, 1, 1, 0, 0}};
  Tensor<std::int64_t, 2> mask({kRows, kLength});
  std::copy_n(&kMask[0][0], mask.size(), mask.data());
  return mask;
}

template <class A, class B>
double largest_difference(const A* a, const B* b, std::int64_t count) {
  double largest = 0;
  for (std::int64_t n = 0; n < count; ++n) {
    const double difference = std::abs(static_cast<double>(a[n]) - static_cast<double>(b[n]));
    if (!(difference <= largest)) largest = difference;
  }
  return largest;
}

// Between an id and its hidden state lie, per layer, four products of K ≤ 40 terms, attention, a GELU and two
// normalisations: some 8 stages a layer, each adding about u·√K of elements that normalisation keeps at about 1 (at
// most about 3).
constexpr double kTinyTolerance = 3 * 8 * TinyBert::kLayers * test::kUnitRoundoff * 6.4;

TEST(ModelEncoder, AgreesWithTransformersInEveryActivation) {
  const ScratchFolder folder;
  test::GoldenNumbers golden("bert_tiny.npy");
  for (const char* activation : {"\"gelu\"", "\"gelu_new\"", "\"relu\""}) {
    const auto hidden_truth = golden.next<3>({kRows, kLength, TinyBert::kWidth});
    const auto pooled_truth = golden.next<2>({kRows, TinyBert::kWidth});
    TinyBert bert;
    bert.config["hidden_act"] = activation;
    const TextEncoder encoder = load(bert.write(folder));
    for (const Isa isa : available_isas()) {
      Engine engine({.threads = 2, .isa = isa});
      const auto ids = tiny_ids();
      const auto mask = tiny_mask();
      const auto hidden = encoder.encode(engine, ids, mask);
      for (std::int64_t row = 0; row < kRows; ++row) {
        for (std::int64_t column = 0; column < kLength; ++column) {
          for (std::int64_t e = 0; e < TinyBert::kWidth; ++e) {
            const double truth = mask(row, column) != 0 ? hidden_truth(row, column, e) : 0;
            ASSERT_NEAR(hidden(row, column, e), truth, kTinyTolerance) << row << " " << column << " " << e;
          }
        }
      }
      const auto pooled = encoder.embed(engine, ids, mask);
      EXPECT_LE(largest_difference(pooled.data(), pooled_truth.data(), pooled.size()), kTinyTolerance) << name(isa);
    }
  }
  EXPECT_TRUE(golden.at_end());
}

TEST(ModelEncoder, TextsAreTokensBetweenClsAndSep) {
  const ScratchFolder folder;
  const TextEncoder encoder = load(TinyBert().write(folder));
  Engine engine({.threads = 1});
  const std::vector<std::string> texts{"A b", "", "é ? x y z a b c d e f g h"};
  const HiddenStates states = encoder.encode(engine, texts);
  EXPECT_EQ(states.ids,
            (std::vector<std::vector<std::int64_t>>{{2, 5, 6, 3}, {2, 3}, {2, 9, 1, 28, 29, 30, 5, 6, 7, 8, 9, 3}}));
  ASSERT_EQ(states.hidden.shape(), (std::array<std::int64_t, 3>{3, 12, TinyBert::kWidth}));
  // The same as ids with a mask; behind the end of a text all is zero.
  Tensor<std::int64_t, 2> ids({3, 12});
  Tensor<std::int64_t, 2> mask({3, 12});
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t column = 0; column < states.ids[row].size(); ++column) {
      ids(row, column) = states.ids[row][column];
      mask(row, column) = 1;
    }
  }
  EXPECT_TRUE(same_bits(encoder.encode(engine, ids, mask), states.hidden));
  EXPECT_EQ(states.hidden(1, 2, 0), 0.0f);
  EXPECT_EQ(states.hidden(0, 11, 23), 0.0f);
  EXPECT_TRUE(same_bits(encoder.embed(engine, ids, mask), encoder.embed(engine, texts)));
}

TEST(ModelEncoder, NothingInNothingOut) {
  const ScratchFolder folder;
  const TextEncoder encoder = load(TinyBert().write(folder));
  Engine engine({.threads = 1});
  EXPECT_EQ(encoder.encode(engine, std::span<const std::string>()).hidden.shape(),
            (std::array<std::int64_t, 3>{0, 0, 24}));
  EXPECT_EQ(encoder.embed(engine, std::span<const std::string>()).shape(), (std::array<std::int64_t, 2>{0, 24}));
  // A row without a visible token has zeros and a vector of zeros.
  Tensor<std::int64_t, 2> ids({2, 3});
  Tensor<std::int64_t, 2> mask({2, 3});
  mask(1, 1) = 1;
  const auto vectors = encoder.embed(engine, ids, mask);
  EXPECT_EQ(largest_difference(vectors.data(), std::vector<float>(24, 0).data(), 24), 0);
  EXPECT_NE(vectors(1, 0), 0.0f);
}

TEST(ModelEncoder, TheSameBitsInAnyCompanyOnAnyThreads) {
  const ScratchFolder folder;
  const TextEncoder encoder = load(TinyBert().write(folder));
  // More tokens than go through the network at a time.
  std::vector<std::string> texts;
  for (int n = 0; n < 400; ++n) {
    texts.push_back(std::string("a b c d e f g h i j").substr(0, static_cast<std::size_t>(n % 20)));
    texts.back() += static_cast<char>('a' + n % 26);
  }
  Engine alone({.threads = 1});
  const auto together = encoder.encode(alone, texts);
  const auto vectors = encoder.embed(alone, texts);
  for (const int threads : {2, 3, 5}) {
    Engine engine({.threads = threads});
    EXPECT_TRUE(same_bits(encoder.encode(engine, texts).hidden, together.hidden));
    EXPECT_TRUE(same_bits(encoder.embed(engine, texts), vectors));
  }
  for (const std::size_t one : {0u, 7u, 399u}) {
    const auto single = encoder.encode(alone, {&texts[one], 1});
    EXPECT_EQ(single.ids[0], together.ids[one]);
    EXPECT_EQ(0, std::memcmp(single.hidden.data(), &together.hidden(one, 0, 0),
                             static_cast<std::size_t>(single.hidden.size()) * sizeof(float)));
  }
}

TEST(ModelEncoder, WhatIsSavedIsLoaded) {
  const ScratchFolder folder;
  ModelOptions options;
  options.encoder = {.max_positions = 20,
                     .token_types = 0,
                     .width = 12,
                     .heads = 2,
                     .feed_forward_width = 10,
                     .layers = 1,
                     .activation = Activation::relu,
                     .layer_norm_epsilon = 1e-6f,
                     .dropout = 0.25f};
  options.max_length = 0;
  options.embed_max_length = 7;
  const Tokenizer tokenizer({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "É", "e"},
                            {.lower_case = false, .strip_accents = false, .split_ideographs = false});
  const TextEncoder made = make_random(options, tokenizer, 5);
  made.save(folder.path("new/folder"));
  const TextEncoder loaded = load(folder.path("new/folder/"));
  Engine engine({.threads = 1});
  const std::vector<std::string> texts{"É e É é 中 e e e e e"};
  EXPECT_EQ(made.encode(engine, texts).ids[0], (std::vector<std::int64_t>{2, 4, 5, 4, 1, 1, 5, 5, 5, 5, 5, 3}));
  EXPECT_TRUE(same_bits(made.encode(engine, texts).hidden, loaded.encode(engine, texts).hidden));
  EXPECT_TRUE(same_bits(made.embed(engine, texts), loaded.embed(engine, texts)));
  EXPECT_EQ(loaded.options().max_length, 20);
  EXPECT_EQ(loaded.options().embed_max_length, 7);
  EXPECT_EQ(loaded.options().encoder.layer_norm_epsilon, 1e-6f);
  EXPECT_EQ(loaded.options().encoder.dropout, 0.25f);
  EXPECT_EQ(loaded.options().encoder.activation, Activation::relu);
  EXPECT_EQ(loaded.options().encoder.token_types, 0);
  EXPECT_EQ(loaded.options().tokenizer.strip_accents, false);
  EXPECT_FALSE(
      same_bits(make_random(options, tokenizer, 6).encode(engine, texts).hidden, made.encode(engine, texts).hidden));
}

// load() takes a byte-order mark and line ends away: what it could not give back is not written.
TEST(ModelEncoder, WhatCouldNotBeLoadedIsNotSaved) {
  const ScratchFolder folder;
  ModelOptions options;
  options.encoder = {.max_positions = 4, .width = 8, .heads = 2, .layers = 1};
  const std::vector<std::string> needed = {"[PAD]", "[UNK]", "[CLS]", "[SEP]"};
  const auto saved = [&](std::vector<std::string> tokens, ModelOptions with) {
    const std::string path = folder.path("model");
    std::filesystem::remove_all(path);
    try {
      make_random(with, Tokenizer(tokens), 1).save(path);
    } catch (const std::exception& error) {
      EXPECT_FALSE(std::filesystem::exists(path));
      return std::string(error.what());
    }
    const TextEncoder again = load(path);
    for (std::size_t n = 0; n < tokens.size(); ++n) {
      EXPECT_EQ(again.tokenizer().token(static_cast<std::int64_t>(n)), tokens[n]);
    }
    return std::string();
  };
  const auto with_token = [&](const std::string& token) {
    std::vector<std::string> tokens = needed;
    tokens.push_back(token);
    return saved(tokens, options);
  };
  for (const char* token : {"a", "", " ", "\r a", "\xEF\xBB\xBF", "\xE2\x80\xA8"})
    EXPECT_EQ(with_token(token), "") << token;
  for (const char* token : {"a\nb", "\n", "a\r", "\xFF"}) {
    EXPECT_NE(with_token(token).find("vocab.txt: cannot hold token 4"), std::string::npos) << token;
  }
  std::vector<std::string> first = needed;
  first.insert(first.begin(), "\xEF\xBB\xBF");
  EXPECT_NE(saved(first, options).find("cannot hold token 0"), std::string::npos);
  ModelOptions pre = options;
  pre.encoder.norm = Norm::pre;
  EXPECT_NE(saved(needed, pre).find("normalises before"), std::string::npos);
  ModelOptions linear = options;
  linear.encoder.activation = Activation::none;
  EXPECT_NE(saved(needed, linear).find("no name for the encoder's activation"), std::string::npos);
}

TEST(ModelEncoder, MoreRowsThanMemoryAreAnError) {
  Engine engine;
  const ScratchFolder folder;
  const TextEncoder model = load(TinyBert().write(folder));
  for (const std::int64_t rows : {std::int64_t{1} << 44, std::int64_t{1} << 62, INT64_MAX}) {
    const View<const std::int64_t, 2> ids(nullptr, {rows, 0});
    EXPECT_EQ(model.encode(engine, ids).size(), 0) << rows;
    EXPECT_THROW((void)model.embed(engine, ids), OutOfMemory) << rows;
  }
}

TEST(ModelEncoder, ProbabilitiesSumToOneAndAgreeWithTheLayersCount) {
  const ScratchFolder folder;
  const TextEncoder encoder = load(TinyBert().write(folder));
  Engine engine({.threads = 2});
  const std::vector<std::int64_t> ids{2, 5, 9, 3};
  const auto weights = encoder.probabilities(engine, ids, 1);
  ASSERT_EQ(weights.shape(), (std::array<std::int64_t, 3>{3, 4, 4}));
  for (std::int64_t head = 0; head < 3; ++head) {
    for (std::int64_t row = 0; row < 4; ++row) {
      float sum = 0;
      for (std::int64_t column = 0; column < 4; ++column) sum += weights(head, row, column);
      EXPECT_NEAR(sum, 1.0f, 8 * test::kUnitRoundoff);
    }
  }
  EXPECT_FALSE(same_bits(weights, encoder.probabilities(engine, ids, 0)));
  EXPECT_THROW((void)encoder.probabilities(engine, ids, 2), std::invalid_argument);
}

template <class Action>
void expect_refused(Action action, std::string_view says) {
  try {
    action();
    ADD_FAILURE() << "accepted, expected: " << says;
  } catch (const std::invalid_argument& error) {
    EXPECT_TRUE(test::contains(error.what(), says));
  }
}

TEST(ModelEncoder, BadArgumentsAreNamed) {
  const ScratchFolder folder;
  const TextEncoder encoder = load(TinyBert().write(folder));
  Engine engine({.threads = 1});
  Tensor<std::int64_t, 2> ids({2, 5});
  ids(1, 3) = 31;
  expect_refused([&] { (void)encoder.encode(engine, ids); }, "the id at row 1, column 3 is 31, expected 0 to 30");
  ids(1, 3) = -1;
  expect_refused([&] { (void)encoder.embed(engine, ids); }, "row 1, column 3 is -1");
  const Tensor<std::int64_t, 2> wide({1, 13});
  expect_refused([&] { (void)encoder.encode(engine, wide); }, "ids have shape [1, 13], expected at most 12 columns");
  const Tensor<std::int64_t, 2> mask({5, 2});
  expect_refused([&] { (void)encoder.encode(engine, ids, mask); },
                 "mask has shape [5, 2], expected that of ids, [2, 5]");
  const std::vector<std::string> texts{"fine", "not \xFF"};
  expect_refused([&] { (void)encoder.encode(engine, texts); },
                 "text 1: tokenizer: the text is not UTF-8 at its byte 4");
  ModelOptions options = encoder.options();
  options.max_length = 13;
  expect_refused([&] { (void)make_random(options, encoder.tokenizer(), 1); },
                 "max_length is 13, expected 2 to max_positions 12");
  options.max_length = 8;
  options.embed_max_length = 9;
  expect_refused([&] { (void)make_random(options, encoder.tokenizer(), 1); }, "embed_max_length is 9");
  options.embed_max_length = 0;
  options.encoder.vocabulary = 30;
  expect_refused([&] { (void)make_random(options, encoder.tokenizer(), 1); }, "the tokenizer has 31 tokens");
}

// The published model, where it is: all-MiniLM-L6-v2 unpacked under downloads/, or where HEADLIGHT_TEST_MODEL says.
TEST(ModelEncoder, MiniLmAgreesWithPyTorch) {
  const char* given = std::getenv("HEADLIGHT_TEST_MODEL");
  const std::string folder = given != nullptr ? given : HEADLIGHT_SOURCE_DIR "/downloads/all-MiniLM-L6-v2";
  if (!std::ifstream(folder + "/model.safetensors")) GTEST_SKIP() << "no all-MiniLM-L6-v2 in " << folder;
  const TextEncoder encoder = load(folder);
  EXPECT_EQ(encoder.options().embed_max_length, 256);
  std::vector<std::string> texts;
  std::vector<std::vector<std::int64_t>> ids;
  std::ifstream stream(test::golden_path("tokenizer_cases.jsonl"));
  int number = 0;
  for (std::string line; std::getline(stream, line); ++number) {
    const auto one = nlohmann::json::parse(line);
    const auto text = one[0].get<std::string>();
    const auto codepoints = std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; });
    if (number >= 62 && codepoints <= 3000) continue;
    texts.push_back(text);
    ids.push_back(one[1].get<std::vector<std::int64_t>>());
  }
  ASSERT_GE(texts.size(), 50u);
  const auto truth = read_npy<float>(test::golden_path("minilm.npy"));
  for (const Isa isa : available_isas()) {
    Engine engine({.isa = isa});
    // All texts on the best instruction set; the short ones on the others, which take up to twenty times as long.
    const std::size_t longest = isa == available_isas().back() && !test::quick() ? 512 : 40;
    std::size_t row = 0;
    double worst = 0;
    for (std::size_t text = 0; text < texts.size(); ++text) {
      const auto length = static_cast<std::int64_t>(ids[text].size());
      std::set<std::int64_t> chosen;
      for (std::int64_t step = 0; step < 4; ++step) chosen.insert(step * (length - 1) / 3);
      if (ids[text].size() > longest) {
        row += chosen.size();
        continue;
      }
      const HiddenStates states = encoder.encode(engine, {&texts[text], 1});
      ASSERT_EQ(states.ids[0], ids[text]);
      for (const std::int64_t token : chosen) {
        worst = std::max(worst, largest_difference(&states.hidden(0, token, 0), &truth.values[384 * row++], 384));
      }
    }
    EXPECT_EQ(row * 384, truth.values.size());
    EXPECT_LE(worst, 2e-5) << name(isa);  // what the project promises; about 3e-6 is usual
    RecordProperty(std::string(name(isa)), std::to_string(worst));
  }
}

}  // namespace headlight::models::model_encoder_test
