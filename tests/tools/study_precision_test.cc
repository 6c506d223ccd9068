// headlight study precision: losses against a plain count of the same thing, and its document, table and chart.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "headlight/models/text_encoder.h"
#include "models/golden_family.h"
#include "support/random.h"
#include "tools/headlight/studies/precision.h"
#include "tools/program.h"
#include "tools/well_formed.h"

namespace headlight::test::study_precision_test {

using program::RoundedWeights;
using program::SharedScale;

models::TextEncoder tiny_model() {
  models::ModelOptions options;
  options.encoder = {.max_positions = 24, .width = 32, .heads = 4, .layers = 2};
  return models::make_random(
      options, models::Tokenizer({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "lamp", "ship", "turns", "waits"}), 5);
}

const std::vector<std::string> kTexts = {"the lamp turns", "the ship waits", "lamp", "the the ship turns the lamp",
                                         "waits waits waits"};

std::string text_file(const ScratchFolder& folder) {
  std::ofstream file(folder / "texts.txt");
  for (const std::string& text : kTexts) file << text << '\n';
  return folder / "texts.txt";
}

TEST(StudyPrecision, WeightsAreRoundedByTensorByChannelAndWithoutOutliers) {
  Tensor<float, 2> matrix({2, 4});
  const float values[] = {127.0f, 0.6f, -63.4f, 0.0f, 1.27f, 0.004f, -0.0051f, 0.5f};
  std::copy(std::begin(values), std::end(values), matrix.begin());
  Tensor<float, 1> bias({4});
  const Weights weights = {{"layers.0.linear1.weight", {{2, 4}, {matrix.data(), 8}, {}}},
                           {"layers.0.linear1.bias", {{4}, {bias.data(), 4}, {}}}};
  const auto rounded = [&](SharedScale scale) {
    RoundedWeights result = program::rounded(weights, scale);
    EXPECT_EQ(result.weights.at("layers.0.linear1.bias").values.data(), bias.data());
    EXPECT_EQ(result.worst, "layers.0.linear1.weight");
    EXPECT_EQ(result.worst_error, result.error);
    double difference = 0, size = 0;
    const std::span<const float> got = result.weights.at("layers.0.linear1.weight").values;
    for (std::size_t n = 0; n < 8; ++n) {
      difference += std::pow(static_cast<double>(got[n]) - static_cast<double>(values[n]), 2);
      size += std::pow(static_cast<double>(values[n]), 2);
    }
    EXPECT_NEAR(result.error, std::sqrt(difference / size), 1e-12);
    return std::vector<float>(got.begin(), got.end());
  };
  EXPECT_EQ(rounded(SharedScale::tensor), (std::vector<float>{127, 1, -63, 0, 1, 0, 0, 0}));
  const float step = 1.27f / 127.0f;
  EXPECT_EQ(rounded(SharedScale::channel),
            (std::vector<float>{127, 1, -63, 0, step * 127.0f, 0, step * -1.0f, step * 50.0f}));
  // Of eight weights the largest one, if any, is the outlier: 8 / 1000 is none.
  EXPECT_EQ(rounded(SharedScale::channel_but_outliers), rounded(SharedScale::channel));
}

TEST(StudyPrecision, OutliersStayAndHaveNoPartInTheScale) {
  Tensor<float, 2> matrix = Random(3).uniform_tensor<2>({2, 1000});
  matrix(0, 17) = 500.0f;
  matrix(1, 3) = -600.0f;
  const Weights weights = {
      {"layers.1.linear2.weight", {{2, 1000}, {matrix.data(), static_cast<std::size_t>(matrix.size())}, {}}}};
  const RoundedWeights with = program::rounded(weights, SharedScale::channel);
  const RoundedWeights without = program::rounded(weights, SharedScale::channel_but_outliers);
  const std::span<const float> got = without.weights.at("layers.1.linear2.weight").values;
  EXPECT_EQ(got[17], 500.0f);
  EXPECT_EQ(got[1003], -600.0f);
  for (std::size_t n = 0; n < got.size(); ++n) {
    if (n == 17 || n == 1003) continue;
    EXPECT_LE(std::abs(got[n] - matrix.data()[n]), 0.5f / 127 * (1 + 1e-5f)) << n;  // numbers of at most 1
  }
  EXPECT_GT(with.error, 50 * without.error);
}

// A model whose layers are not BERT's.
TEST(StudyPrecision, ReadsModelsOfOtherFamilies) {
  const ScratchFolder folder;
  for (const char* const name : {"modernbert", "qwen3"}) {
    const std::string model = golden_family(name).write(folder / name);
    const Finished finished = run_program({"study", "precision", "--model", model, "--input", text_file(folder),
                                           "--quick", "--json", "-", "--threads", "1"});
    ASSERT_EQ(finished.code, 0) << finished.error;
    const nlohmann::json document = nlohmann::json::parse(finished.out);
    const auto layers = document.at("layers").get<std::size_t>();
    for (const nlohmann::json& entry : document.at("types")) {
      const auto losses = entry.at("error_by_layer").get<std::vector<double>>();
      EXPECT_EQ(losses.size(), layers);
      const bool exact = entry.at("type") == "float32";
      EXPECT_TRUE(std::all_of(losses.begin(), losses.end(), [&](double loss) { return exact == (loss == 0); })) << name;
      EXPECT_GT(entry.at("weight_bytes").get<double>(), 0) << name;
    }
  }
}

// What the study says of a type is what a model of that precision gives.
TEST(StudyPrecision, LossesAreThoseOfTheModels) {
  const ScratchFolder folder;
  tiny_model().save(folder / "model");
  const Finished finished = run_program({"study", "precision", "--model", folder / "model", "--input",
                                         text_file(folder), "--quick", "--json", "-", "--threads", "1"});
  ASSERT_EQ(finished.code, 0) << finished.error;
  const nlohmann::json document = nlohmann::json::parse(finished.out);
  EXPECT_EQ(document.at("texts"), kTexts.size());
  Engine engine({.threads = 1});
  const Tensor<float, 2> exact = models::load(folder / "model").embed(engine, kTexts);
  const auto cosine = [](const Tensor<float, 2>& a, std::int64_t i, const Tensor<float, 2>& b, std::int64_t j) {
    double sum = 0;
    for (std::int64_t e = 0; e < a.shape()[1]; ++e) {
      sum += static_cast<double>(a(i, e)) * static_cast<double>(b(j, e));
    }
    return sum;
  };
  const auto nearest = [&](const Tensor<float, 2>& vectors, std::int64_t text) {
    std::int64_t best = text == 0 ? 1 : 0;
    for (std::int64_t other = 0; other < vectors.shape()[0]; ++other) {
      if (other != text && cosine(vectors, text, vectors, other) > cosine(vectors, text, vectors, best)) best = other;
    }
    return best;
  };
  double bytes = INFINITY;
  for (const nlohmann::json& entry : document.at("types")) {
    const auto type = parse_number_type(entry.at("type").get<std::string>());
    ASSERT_TRUE(type);
    const models::TextEncoder model = models::load(folder / "model", {.precision = *type});
    const Tensor<float, 2> vectors = model.embed(engine, kTexts);
    double least = 1, sum = 0, kept = 0;
    const auto count = static_cast<std::int64_t>(kTexts.size());
    for (std::int64_t text = 0; text < count; ++text) {
      least = std::min(least, cosine(vectors, text, exact, text));
      sum += cosine(vectors, text, exact, text);
      kept += nearest(vectors, text) == nearest(exact, text) ? 1 : 0;
    }
    EXPECT_NEAR(entry.at("cosine").at("least").get<double>(), least, 1e-6);
    EXPECT_NEAR(entry.at("cosine").at("mean").get<double>(), sum / static_cast<double>(count), 1e-6);
    EXPECT_NEAR(entry.at("neighbours_kept").get<double>(), kept / static_cast<double>(count), 1e-9);
    const auto layers = entry.at("error_by_layer").get<std::vector<double>>();
    ASSERT_EQ(layers.size(), 2u);
    for (const double error : layers) EXPECT_EQ(error == 0, *type == NumberType::float32) << entry;
    EXPECT_GT(entry.at("seconds").get<double>(), 0);
    const bool is_as_wide = *type == NumberType::float16;  // as bfloat16 before it
    EXPECT_EQ(entry.at("weight_bytes").get<double>() < bytes, !is_as_wide) << entry;
    bytes = entry.at("weight_bytes").get<double>();
  }
  ASSERT_EQ(document.at("int8_weights").size(), 3u);
  EXPECT_LT(document.at("int8_weights").at(1).at("weight_error").get<double>(),
            document.at("int8_weights").at(0).at("weight_error").get<double>());
}

TEST(StudyPrecision, TheDemonstrationModelByItself) {
  const ScratchFolder folder;
  const Finished finished = run_program(
      {"study", "precision", "--quick", "--json", folder / "x.json", "--svg", folder / "x.svg", "--threads", "1"});
  ASSERT_EQ(finished.code, 0) << finished.error;
  EXPECT_EQ(finished.error, "");
  for (const char* words : {"demonstration: 2 layers of width 64; 64 texts", "bfloat16", "float16", "int8", "int4",
                            "Quick", "one scale for each", "channel but outliers", "Error after each layer"}) {
    EXPECT_NE(finished.out.find(words), std::string::npos) << words << " in " << finished.out;
  }
  const std::string chart = (std::ostringstream() << std::ifstream(folder / "x.svg").rdbuf()).str();
  EXPECT_TRUE(is_well_formed(chart));
  EXPECT_EQ(chart.find("nan"), std::string::npos);
  for (const char* panel : {"Error of the hidden states", "The text that is worst off", "Time", "Weights"}) {
    EXPECT_NE(chart.find(panel), std::string::npos) << panel;
  }
  std::ifstream json(folder / "x.json");
  EXPECT_EQ(nlohmann::json::parse(json).at("texts"), 64);
}

TEST(StudyPrecision, WrongUsage) {
  const ScratchFolder folder;
  std::ofstream(folder / "one.txt") << "the lamp\n";
  expect_error(run_program({"study", "precision", "--input", folder / "one.txt"}), {"--input", "at least 2"});
  expect_error(run_program({"study", "precision", "--model", "no-such-folder"}), {"no-such-folder"});
  expect_error(run_program({"study", "precision", "--input", "no-such-file"}), {"no-such-file"});
}

}  // namespace headlight::test::study_precision_test
