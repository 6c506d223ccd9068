// Models of every family, beside what Transformers makes of the same folders; see tests/golden/families.py.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "headlight/models/text_encoder.h"
#include "models/families/encoder_form.h"
#include "models/families/family.h"
#include "models/golden_family.h"
#include "support/compare.h"
#include "support/isas.h"

namespace headlight::models::families_test {

using nlohmann::json;
using test::contains;
using test::file_error;
using test::golden_families;
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

bool is_built(const GoldenFamily& family) {
  const json& config = family.described.at("config");
  const Family* const known = find_family(config.at("model_type").get<std::string>());
  return as_encoder(known->read(files::JsonValue::parse_object("config.json", config.dump())).network).has_value();
}

std::vector<const GoldenFamily*> of_hidden_states() {
  std::vector<const GoldenFamily*> found;
  for (const GoldenFamily& family : golden_families()) {
    if (family.hidden) found.push_back(&family);
  }
  return found;
}

TEST(Families, HiddenStatesAndVectorsAreThoseOfTransformers) {
  const ScratchFolder scratch;
  std::set<std::string> seen;
  for (const GoldenFamily* family : of_hidden_states()) {
    SCOPED_TRACE(family->name);
    if (!is_built(*family)) continue;
    const TextEncoder model = load(family->write(scratch));
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
  EXPECT_GE(seen.size(), 3u);
}

const GoldenFamily& named(const std::string& name) {
  for (const GoldenFamily& family : golden_families()) {
    if (family.name == name && family.hidden) return family;
  }
  throw std::runtime_error("no family " + name);
}

// Which rows of a table of positions tokens take does not depend on what is hidden behind them, nor between.
TEST(Families, ATokenBehindAHoleKeepsItsPosition) {
  const ScratchFolder scratch;
  const TextEncoder model = load(named("roberta").write(scratch));
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
  for (const GoldenFamily* family : of_hidden_states()) {
    if (!is_built(*family)) continue;
    SCOPED_TRACE(family->name);
    const TextEncoder model = load(family->write(scratch));
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

// Weights under other names, or without one of them.
TEST(Families, WeightsThatDoNotFitAreNamed) {
  const ScratchFolder scratch;
  for (const GoldenFamily* family : of_hidden_states()) {
    SCOPED_TRACE(family->name);
    const json config = family->described.at("config");
    const GoldenFamily::Tensors tensors = family->tensors();
    const Weights all = GoldenFamily::views(tensors);
    const auto refusal = [&](const Weights& weights) {
      return file_error([&] { static_cast<void>(load(family->write(scratch, {}, weights))); });
    };
    for (const auto& [name, view] : all) {
      if (name.find("pooler") != std::string::npos) continue;
      Weights less = all;
      less.erase(name);
      ASSERT_TRUE(contains(refusal(less), "model.safetensors: lacks the tensor '" + name + "'"));
      Weights cut = all;
      cut[name].shape[0] -= 1;
      cut[name].values = view.values.first(view.values.size() / static_cast<std::size_t>(view.shape[0]) *
                                           static_cast<std::size_t>(view.shape[0] - 1));
      ASSERT_TRUE(contains(refusal(cut), "tensor '" + name + "' has shape"));
    }
    // One of another model; what is computed, and what stands beside the network, is left aside.
    Weights more = all;
    const std::vector<float> numbers{1, 2, 3};
    const std::string first = all.begin()->first;
    more.emplace(first.substr(0, first.find('.')) + ".other.weight", WeightView{{3}, numbers});
    EXPECT_TRUE(contains(refusal(more), ".other.weight', which config.json does not ask for"));
  }
}

TEST(Families, PrefixesHeadsAndOldNames) {
  const ScratchFolder scratch;
  Engine engine({.threads = 1});
  const std::vector<float> numbers{1, 2, 3};
  for (const GoldenFamily* family : of_hidden_states()) {
    if (!is_built(*family)) continue;
    SCOPED_TRACE(family->name);
    const Family& known = *find_family(family->described.at("config").at("model_type").get<std::string>());
    const GoldenFamily::Tensors tensors = family->tensors();
    const Tensor<std::int64_t, 2> ids = integers(family->described.at("ids"));
    const Tensor<float, 3> plain = load(family->write(scratch)).encode(engine, ids);
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
      EXPECT_TRUE(test::same_bits(plain, load(family->write(scratch, {}, renamed)).encode(engine, ids))) << prefix;
    }
  }
}

// In 16 bits the shares of a tensor that holds several begin where they begin.
TEST(Families, WeightsOf16BitsAreThoseNumbers) {
  const ScratchFolder scratch;
  Engine engine({.threads = 1});
  for (const GoldenFamily* family : of_hidden_states()) {
    if (!is_built(*family)) continue;
    SCOPED_TRACE(family->name);
    GoldenFamily::Tensors tensors = family->tensors();
    for (auto& [name, tensor] : tensors) {
      for (float& value : tensor.second) value = std::round(value * 16) / 16;  // which bfloat16 holds
    }
    const Tensor<std::int64_t, 2> ids = integers(family->described.at("ids"));
    const std::string folder = family->write(scratch, {}, GoldenFamily::views(tensors));
    const Tensor<float, 3> wide = load(folder).encode(engine, ids);
    write_safetensors(folder + "/model.safetensors", GoldenFamily::views(tensors), {}, NumberType::bfloat16);
    EXPECT_TRUE(test::same_bits(wide, load(folder).encode(engine, ids)));
  }
}

TEST(Families, WhatOnlyBertHasIsRefused) {
  const ScratchFolder scratch;
  const TextEncoder model = load(named("xlm-roberta").write(scratch));
  EXPECT_TRUE(model.has_network());
  EXPECT_FALSE(model.has_tokenizer());
  EXPECT_EQ(model.options().model_type, "xlm-roberta");
  EXPECT_EQ(model.options().max_length, 38);
  EXPECT_EQ(model.token_count(), 627);
  EXPECT_THROW(static_cast<void>(model.tokenizer()), std::invalid_argument);
  EXPECT_THROW(model.save(scratch.path("saved")), std::invalid_argument);
  const std::vector<std::int64_t> ids = model.tokenize("the city");
  EXPECT_EQ(model.decode(ids), "<s> the city</s>");
  EXPECT_EQ(model.tokenize("the city", 3).size(), 3u);
  EXPECT_EQ(model.tokenize("the city", 3).back(), ids.back());
  EXPECT_EQ(*model.token(ids[0]), "<s>");
  EXPECT_EQ(model.token_id("<s>"), ids[0]);
  EXPECT_EQ(model.token(628), nullptr);
  EXPECT_THROW(static_cast<void>(model.decode(std::vector<std::int64_t>{628})), std::invalid_argument);
}

}  // namespace headlight::models::families_test
