// Models of every family, beside what Transformers makes of the same folders; see tests/golden/families.py.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "headlight/models/text_encoder.h"
#include "models/families/family.h"
#include "models/golden_family.h"
#include "models/scratch_folder.h"
#include "support/compare.h"
#include "support/isas.h"
#include "support/refusal.h"

namespace headlight::models::families_test {

using nlohmann::json;
using test::contains;
using test::families_of_hidden_states;
using test::file_error;
using test::golden_families;
using test::golden_family;
using test::GoldenFamily;
using test::ScratchFolder;

Tensor<std::int64_t, 2> integers(const json& rows) {
  Tensor<std::int64_t, 2> tensor(
      {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(rows.at(0).size())});
  std::int64_t* at = tensor.data();
  for (const json& row : rows) {
    for (const json& number : row) *at++ = number.get<std::int64_t>();
  }
  return tensor;
}

// Rows of hidden states have norms of 1 and more; 1e-4 of that is a hundred times what float32 rounds away in three
// layers, and a thousandth of what another window, scale or angle changes.
constexpr double kRelative = 1e-4;

template <int Rank>
void expect_near(const Tensor<float, Rank>& found, const Tensor<double, Rank>& truth) {
  ASSERT_EQ(found.shape(), truth.shape());
  const std::int64_t width = truth.shape().back();
  for (std::int64_t row = 0; row < truth.size() / width; ++row) {
    double squares = 0, off = 0;
    for (std::int64_t e = row * width; e < (row + 1) * width; ++e) {
      squares += truth.data()[e] * truth.data()[e];
      off += (found.data()[e] - truth.data()[e]) * (found.data()[e] - truth.data()[e]);
    }
    ASSERT_LE(std::sqrt(off), kRelative * std::sqrt(squares)) << "row " << row;
  }
}

TEST(Families, HiddenStatesAndVectorsAreThoseOfTransformers) {
  const ScratchFolder scratch;
  std::set<std::string> seen;
  for (const GoldenFamily* family : families_of_hidden_states()) {
    SCOPED_TRACE(family->name);
    const TextEncoder model = load(family->write(scratch.path("family")));
    EXPECT_TRUE(model.options().unknown_keys.empty()) << testing::PrintToString(model.options().unknown_keys);
    const Tensor<std::int64_t, 2> ids = integers(family->described.at("ids")),
                                  mask = integers(family->described.at("mask"));
    for (const Isa isa : available_isas()) {
      Engine engine({.threads = 2, .isa = isa});
      expect_near(model.encode(engine, ids, mask), *family->hidden);
      expect_near(model.embed(engine, ids, mask), *family->vectors);
    }
    seen.insert(model.options().model_type);
  }
  EXPECT_GE(seen.size(), 10u);
}

// Which rows of a table of positions tokens take does not depend on what is hidden behind them, nor between.
TEST(Families, ATokenBehindAHoleKeepsItsPosition) {
  const ScratchFolder scratch;
  const TextEncoder model = load(golden_family("roberta").write(scratch.path("family")));
  Engine engine({.threads = 1});
  // Padding, by its id, is counted in none: two of it in front change nothing of those that are seen.
  const std::vector<std::int64_t> plain{7, 8, 9}, padded{1, 1, 7, 8, 9}, mask{0, 0, 1, 1, 1};
  const Tensor<float, 3> one = model.encode(engine, {plain.data(), {1, 3}});
  const Tensor<float, 3> two = model.encode(engine, {padded.data(), {1, 5}}, {mask.data(), {1, 5}});
  for (std::int64_t n = 0; n < one.size(); ++n) ASSERT_EQ(one.data()[n], two.data()[n + 2 * 32]);
  // Another token that is hidden is counted.
  const std::vector<std::int64_t> hole{5, 7, 8, 9}, shown{0, 1, 1, 1};
  const Tensor<float, 3> three = model.encode(engine, {hole.data(), {1, 4}}, {shown.data(), {1, 4}});
  EXPECT_NE(one(0, 0, 0), three(0, 1, 0));
}

TEST(Families, TheSameBitsInAnyCompanyOnAnyThreads) {
  const ScratchFolder scratch;
  const std::vector<std::string> texts{"a city", "", "the streets are long and the lights are many", "New York"};
  for (const GoldenFamily* family : families_of_hidden_states()) {
    SCOPED_TRACE(family->name);
    const TextEncoder model = load(family->write(scratch.path("family")));
    Engine one({.threads = 1}), many({.threads = 3});
    const Tensor<float, 2> together = model.embed(one, texts);
    EXPECT_TRUE(test::same_bits(together, model.embed(many, texts)));
    const HiddenStates states = model.encode(many, texts);
    for (std::size_t n = 0; n < texts.size(); ++n) {
      const auto row = static_cast<std::int64_t>(n);
      const Tensor<float, 2> alone = model.embed(many, std::span(texts).subspan(n, 1));
      for (std::int64_t e = 0; e < alone.size(); ++e) ASSERT_EQ(alone.data()[e], together(row, e));
      const HiddenStates own = model.encode(one, std::span(texts).subspan(n, 1));
      EXPECT_EQ(own.ids[0], states.ids[n]);
      for (std::int64_t t = 0; t < own.hidden.shape()[1]; ++t) {
        for (std::int64_t e = 0; e < 32; ++e) ASSERT_EQ(own.hidden(0, t, e), states.hidden(row, t, e));
      }
    }
  }
}

TEST(Families, PrefixesHeadsAndOldNames) {
  const ScratchFolder scratch;
  Engine engine({.threads = 1});
  const std::vector<float> numbers{1, 2, 3};
  for (const GoldenFamily* family : families_of_hidden_states()) {
    SCOPED_TRACE(family->name);
    const Family* const found = find_family(family->described.at("config").at("model_type").get<std::string>());
    if (found == nullptr) continue;  // BERT, whose table is another
    const Family& known = *found;
    const GoldenFamily::Tensors tensors = family->tensors();
    const Tensor<std::int64_t, 2> ids = integers(family->described.at("ids"));
    const Tensor<float, 3> plain = load(family->write(scratch.path("family"))).encode(engine, ids);
    for (const std::string_view prefix : known.prefixes) {
      Weights renamed;
      for (const auto& [name, view] : GoldenFamily::views(tensors)) {
        std::string other = name;
        if (const std::size_t at = name.find("LayerNorm.weight"); at != std::string::npos) {
          other = name.substr(0, at) + "LayerNorm.gamma";
        }
        renamed.emplace(std::string(prefix) + other, view);
      }
      for (const char* aside : {"pooler.dense.weight", "classifier.weight", "lm_head.weight", "cls.predictions.bias"}) {
        renamed.emplace(aside, WeightView{{3}, numbers});
      }
      renamed.emplace(std::string(prefix) + std::string(known.own[0]) + std::string(known.computed[0]),
                      WeightView{{3}, numbers});
      EXPECT_TRUE(test::same_bits(plain, load(family->write(scratch.path("family"), {}, renamed)).encode(engine, ids)))
          << prefix;
    }
  }
}

// In 16 bits the shares of a tensor that holds several begin where they begin.
TEST(Families, WeightsOf16BitsAreThoseNumbers) {
  const ScratchFolder scratch;
  Engine engine({.threads = 1});
  for (const GoldenFamily* family : families_of_hidden_states()) {
    SCOPED_TRACE(family->name);
    GoldenFamily::Tensors tensors = family->tensors();
    for (auto& [name, tensor] : tensors) {
      for (float& value : tensor.second) value = std::round(value * 16) / 16;  // which bfloat16 holds
    }
    const Tensor<std::int64_t, 2> ids = integers(family->described.at("ids"));
    const std::string folder = family->write(scratch.path("family"), {}, GoldenFamily::views(tensors));
    const Tensor<float, 3> wide = load(folder).encode(engine, ids);
    write_safetensors(folder + "/model.safetensors", GoldenFamily::views(tensors), {}, NumberType::bfloat16);
    EXPECT_TRUE(test::same_bits(wide, load(folder).encode(engine, ids)));
  }
}

// A pooling of the last token, and a prompt that is left out of the mean, beside hidden states.
TEST(Families, VectorsAreOfTheFoldersModules) {
  const ScratchFolder scratch;
  Engine engine({.threads = 1});
  static_cast<void>(golden_family("qwen3").write(scratch.path("family")));
  scratch.write("family/modules.json",
                R"([{"type": "sentence_transformers.models.Transformer", "path": ""},
                    {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"},
                    {"type": "sentence_transformers.models.Normalize", "path": "2_Normalize"}])");
  scratch.write("family/1_Pooling/config.json", R"({"pooling_mode_lasttoken": true, "include_prompt": false})");
  scratch.write("family/config_sentence_transformers.json", R"({"prompts": {"query": "New York: "}})");
  const TextEncoder model = load(scratch.path("family"));
  const std::vector<std::string> text{"the city"};
  EXPECT_EQ(model.options().pooling, std::vector{PoolingMode::last_token});
  const auto expect = [&](const std::string& whole, const EmbedOptions& options) {
    const HiddenStates states = model.encode(engine, std::vector<std::string>{whole});
    const std::int64_t last = states.hidden.shape()[1] - 1;
    double squares = 0;
    for (std::int64_t e = 0; e < 32; ++e) squares += std::pow(static_cast<double>(states.hidden(0, last, e)), 2);
    Tensor<float, 2> vector({1, 32});
    model.embed(engine, text, vector, options);
    for (std::int64_t e = 0; e < 32; ++e) {
      ASSERT_NEAR(vector(0, e), static_cast<double>(states.hidden(0, last, e)) / std::sqrt(squares), 1e-6);
    }
  };
  expect("the city", {});
  expect("New York: the city", {.prompt_name = "query"});

  // The tokens of a prompt, and what stands in front of it, are no part of a mean; what stands behind texts is, where a
  // file names it.
  static_cast<void>(golden_family("xlm-roberta").write(scratch.path("family")));
  const char* const kConfig = "family/tokenizer_config.json";
  scratch.write(kConfig, R"({"tokenizer_class": "TokenizersBackend", "eos_token": "</s>"})");
  scratch.write("family/config_sentence_transformers.json", R"({"prompts": {"query": "New York: "}})");
  const std::string pooling = "family/1_Pooling/config.json";
  scratch.write(pooling, R"({"pooling_mode": "mean", "include_prompt": false})");
  const TextEncoder mean = load(scratch.path("family"));
  const HiddenStates states = mean.encode(engine, std::vector<std::string>{"New York: the city"});
  const auto prompt = static_cast<std::int64_t>(mean.tokenize("New York: ").size()) - 1;
  std::vector<double> sum(32);
  for (std::int64_t t = prompt; t < states.hidden.shape()[1]; ++t) {
    for (std::int64_t e = 0; e < 32; ++e) sum[static_cast<std::size_t>(e)] += states.hidden(0, t, e);
  }
  double squares = 0;
  for (const double number : sum) squares += number * number;
  Tensor<float, 2> vector({1, 32}), of_null({1, 32});
  mean.embed(engine, text, vector, {.prompt_name = "query"});
  for (std::size_t e = 0; e < 32; ++e) {
    ASSERT_NEAR(vector(0, static_cast<std::int64_t>(e)), sum[e] / std::sqrt(squares), 1e-6);
  }
  scratch.write(kConfig, R"({"tokenizer_class": "TokenizersBackend"})");
  Tensor<float, 2> unnamed({1, 32});
  load(scratch.path("family")).embed(engine, text, unnamed, {.prompt_name = "query"});
  EXPECT_FALSE(test::same_bits(vector, unnamed));
  scratch.write(kConfig, R"({"tokenizer_class": "TokenizersBackend", "eos_token": "</s>"})");
  scratch.write(pooling, R"({"pooling_mode": "mean", "include_prompt": null})");
  load(scratch.path("family")).embed(engine, text, of_null, {.prompt_name = "query"});
  EXPECT_TRUE(test::same_bits(vector, of_null));
}

TEST(Families, EveryPrecision) {
  const ScratchFolder scratch;
  Engine engine({.threads = 1});
  const std::vector<std::string> texts{"the city of New York", "long streets"};
  for (const char* name : {"roberta", "modernbert", "gemma3_text", "qwen3"}) {
    const std::string folder = golden_family(name).write(scratch.path("family"));
    const Tensor<float, 2> exact = load(folder).embed(engine, texts);
    for (const NumberType type : {NumberType::bfloat16, NumberType::float16, NumberType::int8}) {
      const TextEncoder model = load(folder, {.precision = type});
      EXPECT_EQ(model.layer().precision(), type);
      const Tensor<float, 2> rounded = model.embed(engine, texts);
      for (std::int64_t row = 0; row < 2; ++row) {
        double cosine = 0;
        for (std::int64_t e = 0; e < 32; ++e) cosine += static_cast<double>(exact(row, e)) * rounded(row, e);
        // Of vectors of length 1, whose difference has the length √(2 − 2 cos): three layers of 1% each at most.
        EXPECT_GT(cosine, 1 - 0.06 * 0.06 / 2) << name << " " << headlight::name(type);
      }
    }
  }
}

// Rows of sum 1, in which tokens see those that their family lets them see.
TEST(Families, ProbabilitiesAreThoseOfEveryNetwork) {
  const ScratchFolder scratch;
  Engine engine({.threads = 1});
  const std::vector<std::int64_t> ids{7, 8, 9, 10, 11};
  for (const std::string name : {"roberta", "modernbert", "qwen3"}) {
    const TextEncoder model = load(golden_family(name).write(scratch.path("family")));
    const Tensor<float, 3> found = model.probabilities(engine, ids, 1);
    ASSERT_EQ(found.shape(), (Tensor<float, 3>::Shape{model.options().encoder.heads, 5, 5}));
    for (std::int64_t i = 0; i < 5; ++i) {
      double sum = 0;
      for (std::int64_t j = 0; j < 5; ++j) sum += static_cast<double>(found(0, i, j));
      EXPECT_NEAR(sum, 1, 1e-6) << name;
    }
    EXPECT_EQ(found(0, 0, 1) == 0, name == "qwen3") << name;
  }
}

TEST(Families, PositionsBeginWhereTheFamilySays) {
  const ScratchFolder scratch;
  const std::vector<std::int64_t> ids{7, 8, 9, 10, 11}, offsets{0, 3, 5};
  const TextEncoder rows = load(golden_family("roberta").write(scratch.path("family")));
  EXPECT_EQ(rows.positions(ids, offsets), (std::vector<std::int64_t>{2, 3, 4, 2, 3}));
  const TextEncoder places = load(golden_family("qwen3").write(scratch.path("family")));
  EXPECT_EQ(places.positions(ids, offsets), (std::vector<std::int64_t>{0, 1, 2, 0, 1}));
  EXPECT_EQ(test::refusal([&] {
              static_cast<void>(places.positions(ids, std::vector<std::int64_t>{0, 3}));
            }),
            "models::TextEncoder: positions: offsets do not ascend from 0 to 5, expected such");
}

}  // namespace headlight::models::families_test
