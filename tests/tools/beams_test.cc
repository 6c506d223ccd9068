// headlight beams: what the pictures hold, that words stay words, and that bad input is one line.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "headlight/models/encoder.h"
#include "headlight/models/npy.h"
#include "support/random.h"
#include "tools/program.h"
#include "tools/well_formed.h"

namespace headlight::test {
namespace {

std::string contents(const std::string& path) {
  return (std::ostringstream() << std::ifstream(path, std::ios::binary).rdbuf()).str();
}

std::string between(const std::string& text, const std::string& before, const std::string& after) {
  const std::size_t begin = text.find(before);
  if (begin == std::string::npos) return {};
  return text.substr(begin + before.size(), text.find(after, begin + before.size()) - begin - before.size());
}

// The page's JSON. It is found as a browser finds it: up to the first end of a script.
nlohmann::json data_of(const std::string& page) {
  return nlohmann::json::parse(between(page, "<script type=\"application/json\" id=\"data\">", "</script"));
}

std::vector<std::uint8_t> from_base64(const std::string& text) {
  const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<std::uint8_t> bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char letter : text.substr(0, text.find('='))) {
    bits = bits << 6 | static_cast<std::uint32_t>(letters.find(letter));
    if ((count += 6) >= 8) bytes.push_back(static_cast<std::uint8_t>(bits >> (count -= 8)));
  }
  return bytes;
}

// [H, L, L] of one layer, 0 where there is no beam.
Tensor<float, 3> beams_of(const nlohmann::json& data, std::size_t layer) {
  const auto heads = data.at("heads").get<std::int64_t>();
  const auto length = static_cast<std::int64_t>(data.at("words").size());
  const std::vector<std::uint8_t> bytes = from_base64(data.at("layers").at(layer).at("beams"));
  std::size_t at = 0;
  const auto next = [&] {
    at += 2;
    return bytes.at(at - 2) | bytes.at(at - 1) << 8;
  };
  Tensor<float, 3> weights({heads, length, length});
  for (std::int64_t head = 0; head < heads; ++head) {
    for (std::int64_t i = 0; i < length; ++i) {
      for (int left = next(); left > 0; --left) {
        const std::int64_t to = next();
        weights(head, i, to) = static_cast<float>(next()) / 65535.0f;
      }
    }
  }
  EXPECT_EQ(at, bytes.size());
  return weights;
}

class BeamsCommand : public testing::Test {
 protected:
  // Random weights for so many words, written to a.npy.
  Tensor<float, 4> write_weights(std::int64_t layers, std::int64_t heads, std::int64_t length) {
    Tensor<float, 4> weights({layers, heads, length, length});
    for (float* row = weights.begin(); row != weights.end(); row += length) {
      double sum = 0;
      for (std::int64_t j = 0; j < length; ++j) sum += std::exp(2 * static_cast<double>(row[j] = random_.normal()));
      for (std::int64_t j = 0; j < length; ++j) {
        row[j] = static_cast<float>(std::exp(2 * static_cast<double>(row[j])) / sum);
      }
    }
    write(weights);
    return weights;
  }
  void write(const Tensor<float, 4>& weights) const {
    models::write_npy(folder_ / "a.npy", weights.shape(), std::span<const float>(weights.begin(), weights.end()));
  }

  [[nodiscard]] Finished run(const std::string& words, const std::string& out,
                             const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all{"beams", "--words", words, "--attention", folder_ / "a.npy", "-o", folder_ / out};
    all.insert(all.end(), more.begin(), more.end());
    return run_program(all);
  }
  [[nodiscard]] std::string picture(const std::string& words, const std::string& out,
                                    const std::vector<std::string>& more = {}) const {
    const Finished finished = run(words, out, more);
    EXPECT_EQ(finished.code, 0) << finished.error;
    EXPECT_EQ(finished.error, "");
    return contents(folder_ / out);
  }

  ScratchFolder folder_;
  Random random_{11};
};

TEST_F(BeamsCommand, ThePageHoldsTheWeights) {
  const Tensor<float, 4> weights = write_weights(2, 3, 5);
  const std::string page = picture("a b c d e", "x.html", {"--layer", "1", "--heads", "2,0,2", "--from", "c"});
  const nlohmann::json data = data_of(page);
  EXPECT_EQ(data.at("view"), nlohmann::json::parse(R"({"layer": 1, "heads": [0, 2], "from": 2, "to": null})"));
  for (std::size_t layer = 0; layer < 2; ++layer) {
    const Tensor<float, 3> found = beams_of(data, layer);
    for (std::int64_t n = 0; n < found.size(); ++n) {
      const float expected = weights.data()[static_cast<std::int64_t>(layer) * found.size() + n];
      EXPECT_NEAR(found.data()[n], expected < 1e-3f ? 0.0f : expected, 1e-5f);
    }
  }
  EXPECT_EQ(page.find("://"), std::string::npos) << "a page that needs another host";
}

TEST_F(BeamsCommand, OnlyTheBrightestAreKept) {
  const Tensor<float, 4> weights = write_weights(1, 2, 9);
  const Tensor<float, 3> found = beams_of(data_of(picture("a b c d e f g h i", "x.html", {"--top", "2"})), 0);
  for (std::int64_t head = 0; head < 2; ++head) {
    for (std::int64_t i = 0; i < 9; ++i) {
      std::vector<float> row(&weights(0, head, i, 0), &weights(0, head, i, 0) + 9);
      std::sort(row.rbegin(), row.rend());
      for (std::int64_t j = 0; j < 9; ++j) {
        EXPECT_EQ(found(head, i, j) > 0, weights(0, head, i, j) >= std::max(row[1], 1e-3f));
      }
    }
  }
}

TEST_F(BeamsCommand, TheStillHoldsTheBeamsAskedFor) {
  Tensor<float, 4> weights({1, 2, 3, 3});
  for (std::int64_t head = 0; head < 2; ++head) {
    for (std::int64_t i = 0; i < 3; ++i) weights(0, head, i, (i + head) % 3) = 1;
  }
  write(weights);
  const auto cones = [](const std::string& svg) {
    std::size_t count = 0;
    const std::string light = between(svg, "<g class=\"light\">", "</g>");
    for (std::size_t at = 0; (at = light.find("<path", at)) != std::string::npos; ++at) ++count;
    return count;
  };
  EXPECT_EQ(cones(picture("a b c", "x.svg")), 6u);
  EXPECT_EQ(cones(picture("a b c", "x.svg", {"--from", "a"})), 2u);
  EXPECT_EQ(cones(picture("a b c", "x.svg", {"--to", "B"})), 2u);
  EXPECT_EQ(cones(picture("a b c", "x.svg", {"--from", "a", "--to", "b"})), 1u);
  EXPECT_EQ(cones(picture("a b c", "x.svg", {"--heads", "1"})), 3u);
  EXPECT_EQ(cones(picture("a a a", "x.svg", {"--from", "a#3", "--heads", "0", "--to", "a#3"})), 1u);
  const std::string svg = picture("机器人 拿起 红色", "x.svg");
  EXPECT_TRUE(is_well_formed(svg));
  EXPECT_NE(svg.find("lang=\"zh\""), std::string::npos);
  EXPECT_NE(svg.find(">机器人</text>"), std::string::npos) << "text as text";
}

TEST_F(BeamsCommand, HostileWordsStayWords) {
  const std::string words =
      "<script>alert(1)</script> </script><img/src=x/onerror=alert(1)> \"><svg/onload=alert(1)> &lt; ' ]]> <!-- "
      "\xE2\x80\xAE"
      "evil \x1b[31m\x01 \xff\xfe {{x}} ${x} @beams_script@ \\u003c";
  constexpr std::int64_t count = 14;
  write_weights(1, 2, count);
  const std::string page = picture(words, "x.html");
  const std::string svg = picture(words, "x.svg");
  EXPECT_TRUE(is_well_formed(svg)) << svg;
  for (const std::string& text : {page, svg}) {
    EXPECT_EQ(text.find("<script>alert"), std::string::npos);
    EXPECT_EQ(text.find("<img"), std::string::npos);
    EXPECT_EQ(text.find("<svg/"), std::string::npos);
    EXPECT_EQ(text.find("<!--"), std::string::npos);
    EXPECT_EQ(text.find("\xE2\x80\xAE"), std::string::npos) << "a mark that turns the line around";
    EXPECT_EQ(text.find_first_of("\x1b\x01\xff"), std::string::npos);
  }
  const nlohmann::json shown = data_of(page).at("words");
  ASSERT_EQ(shown.size(), static_cast<std::size_t>(count));
  EXPECT_EQ(shown.at(0).at("text"), "<script>alert(1)</script>");
  EXPECT_EQ(shown.at(13).at("text"), "\\u003c");
}

TEST_F(BeamsCommand, WhatDoesNotFitIsOneLine) {
  Tensor<float, 4> weights = write_weights(2, 3, 4);
  const std::vector<std::string> before = folder_.names();
  const auto fails = [&](const std::vector<std::string>& more, const std::vector<std::string>& words, int code = 1) {
    expect_error(run("a b c d", "x.html", more), words, code);
    EXPECT_EQ(folder_.names(), before);
  };
  fails({"--from", "street"}, {"--from", "'street'", "a b c d"});
  fails({"--to", "a#2"}, {"--to", "'a#2'"});
  fails({"--heads", "0,3"}, {"--heads", "no head 3", "0 to 2"});
  fails({"--heads", "-1"}, {"no head -1"});
  fails({"--heads", "0,x"}, {"--heads", "0,x"}, 2);
  fails({"--heads", "0,"}, {"--heads"}, 2);
  fails({"--layer", "2"}, {"--layer", "no layer 2", "0 to 1"});
  fails({"--layer", "-1"}, {"--layer"}, 2);
  fails({"--top", "0"}, {"--top"}, 2);
  fails({"--model", "somewhere"}, {"--model"}, 2);
  fails({"--text", "a"}, {"--text"}, 2);
  expect_error(run("a b c d", "x.png"), {"x.png", ".html or .svg"}, 2);
  expect_error(run("a b c", "x.html"), {"a.npy", "[2, 3, 4, 4]", "[layers, heads, 3, 3]"});
  expect_error(run("   ", "x.html"), {"--words", "0 words"});
  std::string many;
  for (int n = 0; n < 10000; ++n) many += "word ";
  expect_error(run(many, "x.html"), {"--words", "10000 words", "4096"});
  for (const float bad : {0.5f, -1.0f, std::nanf(""), INFINITY}) {
    Tensor<float, 4> broken = write_weights(2, 3, 4);
    broken(1, 2, 3, 0) += bad;
    write(broken);
    fails({}, {"a.npy", "layer 1, head 2, row 3"});
  }
  models::write_npy(folder_ / "a.npy", std::vector<std::int64_t>{3, 4, 4}, std::span<const float>(weights.data(), 48));
  fails({}, {"a.npy", "[3, 4, 4]", "[layers, heads, L, L]"});
  expect_error(run_program({"beams", "-o", folder_ / "x.html"}), {"--text"}, 2);
  expect_error(run_program({"beams", "--words", "a", "-o", folder_ / "x.html"}), {"--attention"}, 2);
  EXPECT_EQ(folder_.names(), before);
}

TEST_F(BeamsCommand, WithoutAModelItShowsTheDemonstrationModelAndItsRelations) {
  const auto said = [&](const std::string& text) {
    const Finished finished = run_program({"beams", "--text", text, "-o", folder_ / "x.html"});
    EXPECT_EQ(finished.code, 0) << finished.error;
    return finished.out;
  };
  const std::string tired = said("The animal didn't cross the street because it was too tired.");
  for (const char* line : {"coreference", "it -> animal", "cross -> street", "because -> tired"}) {
    EXPECT_NE(tired.find(line), std::string::npos) << tired;
  }
  EXPECT_NE(said("The animal didn't cross the street because it was too wide.").find("it -> street"),
            std::string::npos);
  const std::string light = said("机器人拿起红色的积木,因为它很轻");
  for (const char* line : {"它 -> 积木", "红色 -> 积木", "拿起 -> 机器人"}) {
    EXPECT_NE(light.find(line), std::string::npos) << light;
  }
  EXPECT_NE(tired.find("11 words"), std::string::npos) << "[CLS], the full stop and [SEP] are none: " << tired;
  EXPECT_NE(said("The red animal chased the animal").find("red -> animal#1"), std::string::npos);
  EXPECT_EQ(said("xyzzy").find("coreference"), std::string::npos);
  (void)said("it");
  expect_error(run_program({"beams", "--text", "", "-o", folder_ / "y.html"}), {"--text", "holds no words"});
  EXPECT_EQ(folder_.names(), std::vector<std::string>{"x.html"});
}

TEST_F(BeamsCommand, ARowThatSeesNothingAndOneWordAreFine) {
  write(Tensor<float, 4>({1, 1, 3, 3}));
  EXPECT_TRUE(is_well_formed(picture("a b c", "x.svg")));
  EXPECT_EQ(data_of(picture("a b c", "x.html")).at("words").size(), 3u);
  Tensor<float, 4> one({1, 30, 1, 1});
  for (float& weight : one) weight = 1;
  write(one);
  EXPECT_TRUE(is_well_formed(picture("alone", "x.svg")));
  EXPECT_EQ(data_of(picture("alone", "x.html")).at("dashed").at(12), true);
}

// A model of its own, in which words have pieces.
class BeamsOfModel : public BeamsCommand {
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

TEST_F(BeamsOfModel, LongTextsAreCutWithAWord) {
  std::string many;
  for (int n = 0; n < 10000; ++n) many += "street ";
  const Finished finished = text(many, {"--from", "street#22"});
  EXPECT_EQ(finished.code, 0);
  EXPECT_TRUE(finished.error.starts_with("headlight: warning: ")) << finished.error;
  EXPECT_EQ(data_of(contents(folder_ / "x.html")).at("words").size(), 24u);
  expect_error(text("the\xff"), {"UTF-8"});
  expect_error(text("the", {"--from", "street"}), {"'street'"});
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

TEST(BeamsOfReadme, ThePictureIsWhatItsCommandDraws) {
  const ScratchFolder folder;
  const Finished finished =
      run_program({"beams", "--text", "The animal didn't cross the street because it was too tired.", "--top", "6",
                   "-o", folder / "beams.svg"});
  ASSERT_EQ(finished.code, 0) << finished.error;
  EXPECT_TRUE(nearly_equal(contents(folder / "beams.svg"), contents(HEADLIGHT_SOURCE "/docs/beams.svg")))
      << "docs/beams.svg is of another model or another picture: README.md has the command that draws it";
}

}  // namespace
}  // namespace headlight::test
