// headlight heads and headlight beams on small models of other families than BERT's, by the probabilities of the
// library.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "headlight/models/text_encoder.h"
#include "models/golden_family.h"
#include "tools/beams_picture.h"
#include "tools/program.h"

namespace headlight::test::family_heads_test {

struct FamilyCase {
  const char* name;
  // What it puts around a text.
  std::vector<std::string> before, behind;

  friend std::ostream& operator<<(std::ostream& out, const FamilyCase& one) { return out << one.name; }
};

class FamilyHeads : public testing::TestWithParam<FamilyCase> {
 protected:
  FamilyHeads() : folder_(named(GetParam().name).write(scratch_ / "family")), model_(models::load(folder_)) {}

  [[nodiscard]] static const GoldenFamily& named(const std::string& name) {
    const auto& all = golden_families();
    return *std::find_if(all.begin(), all.end(), [&](const auto& one) { return !one.scores && one.name == name; });
  }
  [[nodiscard]] Finished run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin() + 1, {"--model", folder_, "--text", kText});
    const Finished finished = run_program(arguments);
    EXPECT_EQ(finished.code, 0) << finished.error;
    EXPECT_EQ(finished.error, "");
    return finished;
  }

  static constexpr const char* kText = "the streets are long";
  ScratchFolder scratch_;
  std::string folder_;
  models::TextEncoder model_;
  Engine engine_{{.threads = 1}};
};

TEST_P(FamilyHeads, AreMeasuredOnTheWordsAlone) {
  const nlohmann::json found =
      nlohmann::json::parse(run({"heads", "--importance", "--mask", "1.0", "--json", "-"}).out);
  const std::vector<std::int64_t> ids = model_.tokenize(kText);
  const auto length = static_cast<std::int64_t>(ids.size());
  const auto before = static_cast<std::int64_t>(GetParam().before.size()),
             end = length - static_cast<std::int64_t>(GetParam().behind.size());
  const EncoderOptions& sizes = model_.options().encoder;
  EXPECT_EQ(found.at("words"), end - before);
  ASSERT_EQ(found.at("heads").size(), static_cast<std::size_t>(sizes.layers * sizes.heads));
  for (const nlohmann::json& of_head : found.at("heads")) {
    const Tensor<float, 3> weights = model_.probabilities(engine_, ids, of_head.at("layer").get<std::int64_t>());
    const auto head = of_head.at("head").get<std::int64_t>();
    double entropy = 0;
    for (std::int64_t i = before; i < end; ++i) {
      for (std::int64_t j = 0; j < length; ++j) {
        const auto p = static_cast<double>(weights(head, i, j));
        if (p > 0) entropy -= p * std::log(p) / static_cast<double>(end - before);
      }
    }
    EXPECT_NEAR(of_head.at("entropy").get<double>(), entropy, 1e-5);
    EXPECT_GT(of_head.at("importance").get<double>(), 0);
  }
  EXPECT_GT(found.at("mask").at("change").get<double>(), 0);
}

TEST_P(FamilyHeads, AreDrawnPieceByPieceAndWordByWord) {
  const std::string file = scratch_ / "beams.html";
  static_cast<void>(run({"beams", "--pieces", "-o", file}));
  const nlohmann::json pieces = data_of(contents(file));
  const std::vector<std::int64_t> ids = model_.tokenize(kText);
  const auto length = static_cast<std::int64_t>(ids.size());
  ASSERT_EQ(pieces.at("words").size(), ids.size());
  const EncoderOptions& sizes = model_.options().encoder;
  ASSERT_EQ(pieces.at("layers").size(), static_cast<std::size_t>(sizes.layers));
  for (std::int64_t layer = 0; layer < sizes.layers; ++layer) {
    const Tensor<float, 3> expected = model_.probabilities(engine_, ids, layer);
    const Tensor<float, 3> drawn = beams_of(pieces, static_cast<std::size_t>(layer));
    for (std::int64_t head = 0; head < sizes.heads; ++head) {
      for (std::int64_t i = 0; i < length; ++i) {
        for (std::int64_t j = 0; j < length; ++j) EXPECT_NEAR(drawn(head, i, j), expected(head, i, j), 1e-3);
      }
    }
  }
  static_cast<void>(run({"beams", "-o", file}));
  std::vector<std::string> words = GetParam().before;
  words.insert(words.end(), {"the", "streets", "are", "long"});
  words.insert(words.end(), GetParam().behind.begin(), GetParam().behind.end());
  std::vector<std::string> drawn;
  const nlohmann::json of_words = data_of(contents(file));
  for (const nlohmann::json& word : of_words.at("words")) drawn.push_back(word.at("text").get<std::string>());
  EXPECT_EQ(drawn, words);
}

const std::vector<std::string> kNothing, kEnd{"<|endoftext|>"};

INSTANTIATE_TEST_SUITE_P(Of, FamilyHeads,
                         testing::Values(FamilyCase{"roberta", kEnd, kEnd}, FamilyCase{"modernbert", kEnd, kEnd},
                                         FamilyCase{"gemma3_text", kNothing, kEnd},
                                         FamilyCase{"qwen3", kNothing, kEnd}),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace headlight::test::family_heads_test
