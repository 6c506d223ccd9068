// headlight beams on models: pieces become words, heads' parts come back, and the documents' picture is what its
// command draws.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "headlight/models/text_encoder.h"
#include "tools/beams_picture.h"
#include "tools/program.h"
#include "tools/well_formed.h"

namespace headlight::test::beams_model_test {

// A model of its own, in which words have pieces.
class BeamsOfModel : public testing::Test {
 protected:
  BeamsOfModel() {
    models::ModelOptions options;
    options.encoder = {.max_positions = 24, .token_types = 2, .width = 24, .heads = 3, .layers = 2};
    models::Tokenizer tokenizer({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "didn", "'", "t", "street", "##s", ".", "(",
                                 ")", "机", "器", "人"});
    models::make_random(options, std::move(tokenizer), 3).save(folder_ / "model");
  }
  [[nodiscard]] Finished text(const std::string& text, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all{"beams", "--model", folder_ / "model", "--text", text, "-o", folder_ / "x.html"};
    all.insert(all.end(), more.begin(), more.end());
    return run_program(all);
  }
  [[nodiscard]] nlohmann::json data(const std::string& words, const std::vector<std::string>& more = {}) const {
    const Finished finished = text(words, more);
    EXPECT_EQ(finished.code, 0) << finished.error;
    return data_of(contents(folder_ / "x.html"));
  }
  static std::string words_in(const nlohmann::json& data) {
    std::string words;
    for (const nlohmann::json& word : data.at("words")) {
      if (!words.empty()) words += "|";
      words += word.at("text").get<std::string>();
    }
    return words;
  }

  ScratchFolder folder_;
};

TEST_F(BeamsOfModel, PiecesBecomeWords) {
  EXPECT_EQ(words_in(data("(The streets didn't.)")), "[CLS]|(|The|streets|didn't|.|)|[SEP]");
  EXPECT_EQ(words_in(data("(The streets didn't.)", {"--pieces"})), "[CLS]|(|the|street|##s|didn|'|t|.|)|[SEP]");
  EXPECT_EQ(words_in(data("机器人 streets")), "[CLS]|机|器|人|streets|[SEP]");
  EXPECT_EQ(words_in(data("the [SEP] streets")), "[CLS]|the|[SEP]|streets|[SEP]") << "tokens where words do not fit";
  expect_error(text(""), {"--text", "holds no words"});
  expect_error(text(" \t\n "), {"--text", "holds no words"});
}

TEST_F(BeamsOfModel, LightIsNeitherLostNorMade) {
  const nlohmann::json joined = data("(The streets didn't.)");
  for (std::size_t layer = 0; layer < 2; ++layer) {
    const Tensor<float, 3> weights = beams_of(joined, layer);
    for (std::int64_t row = 0; row < 3 * 8; ++row) {
      double sum = 0;
      for (std::int64_t j = 0; j < 8; ++j) sum += static_cast<double>(weights.data()[row * 8 + j]);
      EXPECT_NEAR(sum, 1, 1e-2);
    }
    const std::vector<std::uint8_t> parts = from_base64(joined.at("layers").at(layer).at("parts"));
    ASSERT_EQ(parts.size(), 4u * 8 * 3);
    for (std::size_t n = 0; n < 8 * 3; ++n) {
      float part = 0;
      std::memcpy(&part, &parts[4 * n], 4);
      EXPECT_TRUE(part > 0 && part < 100) << part;
    }
  }
}

// The weights are those of a model that multiplies in the type asked for; 16 bits of a weight are in the page.
TEST_F(BeamsOfModel, TheWeightsAreThoseOfThePrecision) {
  const auto largest_difference = [&](const nlohmann::json& data, NumberType precision) {
    const models::TextEncoder model = models::load(folder_ / "model", {.precision = precision});
    Engine engine;
    const std::vector<std::int64_t> ids = model.tokenizer().encode("the streets didn", 24);
    const Tensor<float, 3> expected = model.probabilities(engine, ids, 1), found = beams_of(data, 1);
    EXPECT_EQ(found.shape(), expected.shape());
    float most = 0;
    for (std::int64_t n = 0; n < expected.size(); ++n) {
      most = std::max(most, std::abs(found.data()[n] - expected.data()[n]));
    }
    return most;
  };
  const nlohmann::json narrow = data("the streets didn", {"--precision", "int8", "--pieces"});
  const nlohmann::json wide = data("the streets didn", {"--pieces"});
  EXPECT_LT(largest_difference(narrow, NumberType::int8), 2e-5f);
  EXPECT_GT(largest_difference(narrow, NumberType::float32), 1e-4f);
  EXPECT_LT(largest_difference(wide, NumberType::float32), 2e-5f);
  expect_error(text("the", {"--precision", "float64"}), {"--precision is 'float64', expected float32"}, 2);
  expect_error(
      run_program({"beams", "--words", "a b", "--attention", "a.npy", "--precision", "int8", "-o", folder_ / "x.html"}),
      {"--precision goes with --text"}, 2);
}

TEST_F(BeamsOfModel, EveryMergeTellsWhatComesBack) {
  for (int number = 0; number < 6; ++number) {
    models::ModelOptions options;
    options.encoder = {.max_positions = 24,
                       .token_types = 2,
                       .width = 24,
                       .heads = 3,
                       .layers = 2,
                       .merge = static_cast<Merge>(number)};
    models::Tokenizer tokenizer({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "street"});
    models::make_random(options, std::move(tokenizer), 3).save(folder_ / "model");
    const Finished finished = text("the street");
    EXPECT_EQ(finished.code, 0);
    EXPECT_EQ(finished.error, "");
    const nlohmann::json data = data_of(contents(folder_ / "x.html"));
    for (const nlohmann::json& layer : data.at("layers")) {
      const std::vector<std::uint8_t> parts = from_base64(layer.at("parts"));
      ASSERT_EQ(parts.size(), 4u * 4 * 3) << number;
      for (std::size_t n = 0; n < 4 * 3; ++n) {
        float part = 0;
        std::memcpy(&part, &parts[4 * n], 4);
        EXPECT_TRUE(part > 0 && part < 100) << part;
      }
    }
  }
}

TEST_F(BeamsOfModel, LongTextsAreCutWithAWord) {
  std::string many;
  for (int n = 0; n < 10000; ++n) many += "street ";
  const Finished finished = text(many, {"--from", "street#22"});
  EXPECT_EQ(finished.code, 0);
  EXPECT_TRUE(finished.error.starts_with("headlight: warning: ")) << finished.error;
  const std::string page = contents(folder_ / "x.html");
  EXPECT_EQ(data_of(page).at("words").size(), 24u);
  EXPECT_NE(page.find("<p class=\"note\">This is the first 22 words of 10,000: the model takes no more.</p>"),
            std::string::npos);
  expect_error(text("the\xff"), {"UTF-8"});
  expect_error(text("the", {"--from", "street"}), {"'street'"}, 2);
}

// A picture travels without what was said on standard error.
TEST_F(BeamsOfModel, ThePictureSaysWhatTheModelDoesNotKnow) {
  const std::string strange = "the <b>, \"&\" Quantum street, quantum chromodynamics of 7 or 8 colours";
  const std::string known = "The model does not know: ";
  ASSERT_EQ(text(strange).code, 0);
  const std::string page = contents(folder_ / "x.html");
  const std::string note = between(page, "<p class=\"note\">" + known, "</p>");
  EXPECT_EQ(
      note,
      "&#39;&lt;&#39;, &#39;b&#39;, &#39;&gt;&#39;, &#39;,&#39;, &#39;&quot;&#39;, …; what it shows of them means "
      "nothing.");
  const auto still = [&](const std::string& words) {
    const Finished finished =
        run_program({"beams", "--model", folder_ / "model", "--text", words, "-o", folder_ / "x.svg"});
    EXPECT_EQ(finished.code, 0) << finished.error;
    return contents(folder_ / "x.svg");
  };
  const std::string svg = still(strange);
  EXPECT_TRUE(is_well_formed(svg));
  EXPECT_NE(svg.find(">" + known), std::string::npos) << svg;
  EXPECT_EQ(svg.find("<b>"), std::string::npos);
  ASSERT_EQ(text("The streets didn't.").code, 0);
  EXPECT_EQ(contents(folder_ / "x.html").find("class=\"note\""), std::string::npos);
  EXPECT_EQ(still("The streets didn't.").find("The model"), std::string::npos);
}

TEST_F(BeamsOfModel, NotesInAStillStayInsideIt) {
  const std::string words = "electrodynamics chromodynamics thermodynamics hydrodynamics aerodynamics";
  const Finished finished =
      run_program({"beams", "--model", folder_ / "model", "--text", words, "-o", folder_ / "x.svg"});
  ASSERT_EQ(finished.code, 0) << finished.error;
  const std::string svg = contents(folder_ / "x.svg");
  const double width = std::stod(between(svg, " width=\"", "\"")), height = std::stod(between(svg, " height=\"", "\""));
  const std::size_t first = svg.find("The model does not know"), last = svg.find("means nothing</text>");
  ASSERT_TRUE(first != std::string::npos && last != std::string::npos) << svg;
  EXPECT_NE(svg.substr(first, last - first).find("</text>"), std::string::npos) << "one line would be too long";
  for (std::size_t at = svg.rfind("<text", first); at < last; at = svg.find("<text", at + 1)) {
    const std::string line = svg.substr(at, svg.find("</text>", at) - at);
    EXPECT_LT(std::stod(between(line, " y=\"", "\"")), height - 3) << line;
    // 7 pixels a letter of this size; an entity is one.
    double pixels = 0;
    for (std::size_t n = line.find('>') + 1; n < line.size(); n = line[n] == '&' ? line.find(';', n) + 1 : n + 1) {
      pixels += 7;
    }
    EXPECT_LT(std::stod(between(line, " x=\"", "\"")) + pixels, width) << line;
  }
}

// The same but for numbers, which may differ by rounding: other instruction sets add in another order.
bool nearly_equal(const std::string& a, const std::string& b) {
  const auto is_number = [](char letter) { return letter >= '0' && letter <= '9'; };
  const char* at = a.c_str();
  const char* there = b.c_str();
  while (*at != 0 && *there != 0) {
    if (is_number(*at) && is_number(*there)) {
      char *end = nullptr, *other = nullptr;
      if (std::abs(std::strtod(at, &end) - std::strtod(there, &other)) > 0.11) return false;
      at = end;
      there = other;
    } else if (*at++ != *there++) {
      return false;
    }
  }
  return *at == *there;
}

TEST(BeamsOfTheDocuments, ThePictureIsWhatItsCommandDraws) {
  const ScratchFolder folder;
  const Finished finished =
      run_program({"beams", "--text", "The animal didn't cross the street because it was too tired.", "--from", "it",
                   "-o", folder / "beams.svg"});
  ASSERT_EQ(finished.code, 0) << finished.error;
  EXPECT_TRUE(nearly_equal(contents(folder / "beams.svg"), contents(HEADLIGHT_SOURCE "/docs/beams.svg")))
      << "docs/beams.svg is of another model or another picture: docs/command-line.md has the command that draws it";
}

}  // namespace headlight::test::beams_model_test
