// headlight beams: what the pictures hold, that words stay words, and that bad input is one line.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "headlight/models/npy.h"
#include "support/random.h"
#include "tools/beams_picture.h"
#include "tools/program.h"
#include "tools/well_formed.h"

namespace headlight::test::beams_test {

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

// Colour and line of each head in the legend, which a picture and a page share.
TEST_F(BeamsCommand, FortyEightHeadsLookDifferent) {
  constexpr std::size_t heads = 48;
  write_weights(1, heads, 3);
  const std::string svg = picture("a b c", "x.svg");
  EXPECT_TRUE(is_well_formed(svg));
  const std::string legend = svg.substr(svg.find(">layer 0<"));
  std::set<std::string> looks;
  for (std::size_t at = 0; (at = legend.find("<path ", at)) != std::string::npos; ++at) {
    looks.insert(between(legend.substr(at), " stroke=\"", "\"") +
                 between(legend.substr(at, legend.find('>', at) - at), "dasharray=\"", "\""));
  }
  EXPECT_EQ(looks.size(), heads);
  const nlohmann::json data = data_of(picture("a b c", "x.html"));
  for (const char* ground : {"dark", "light"}) {
    looks.clear();
    for (std::size_t head = 0; head < heads; ++head) {
      looks.insert(data.at("colours").at(ground).at(head).get<std::string>() +
                   data.at("lines").at(head).get<std::string>());
    }
    EXPECT_EQ(looks.size(), heads) << ground;
  }
}

TEST_F(BeamsCommand, AStillThatCannotShowAllSaysSo) {
  Tensor<float, 4> weights({1, 2, 40, 40});
  for (float& weight : weights) weight = 1.0f / 40;
  write(weights);
  std::string words;
  for (int n = 0; n < 40; ++n) words += "w ";
  const Finished many = run(words, "x.svg", {"--top", "40"});
  EXPECT_EQ(many.code, 0);
  EXPECT_EQ(many.error,
            "headlight: warning: the picture shows the 2,000 brightest of 3,200 beams; --top, --heads, --from and --to "
            "choose fewer\n");
  const std::string svg = contents(folder_ / "x.svg");
  EXPECT_TRUE(is_well_formed(svg));
  EXPECT_NE(svg.find(">the 2,000 brightest of 3,200 beams are drawn</text>"), std::string::npos);
  EXPECT_EQ(picture(words, "y.svg", {"--top", "40", "--heads", "1"}).find("brightest of"), std::string::npos);
  EXPECT_EQ(picture(words, "y.svg", {"--top", "25"}).find("brightest of"), std::string::npos) << "exactly 2,000";
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
  fails({"--from", "street"}, {"--from", "'street'", "a b c d"}, 2);
  for (const char* word : {"a#2", "a#1x", "a# 1", "a#+1", "a#", "a#0", "a#-1", "a#9223372036854775808"}) {
    fails({"--to", word}, {"--to", std::string("'") + word + "'"}, 2);
  }
  fails({"--heads", "0,3"}, {"--heads is '0,3'", "0 to 2"}, 2);
  fails({"--heads", "-1"}, {"--heads is -1, expected numbers"}, 2);
  fails({"--heads", ""}, {"--heads is empty"}, 2);
  fails({"--heads", "0,x"}, {"--heads", "0,x"}, 2);
  for (const char* list : {"0,", ",0", "0,,1", "0, 1", "+1"}) {
    fails({"--heads", list}, {std::string("--heads is '") + list + "', expected numbers from 0 on such as 0,3,7"}, 2);
  }
  fails({"--layer", "2"}, {"--layer is 2", "0 to 1"}, 2);
  fails({"--layer", "-1"}, {"--layer"}, 2);
  fails({"--top", "0"}, {"--top"}, 2);
  fails({"--model", "somewhere"}, {"--model"}, 2);
  fails({"--text", "a"}, {"--text"}, 2);
  expect_error(run("a b c d", "x.png"), {"x.png", ".html or .svg", "--format"}, 2);
  fails({"--format", "png"}, {"--format is 'png', expected html or svg"}, 2);
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

// A picture on standard output, or in a pipe, is written straight there and stands alone.
TEST_F(BeamsCommand, ThePictureMayGoIntoAPipe) {
  write_weights(1, 2, 3);
  const auto to = [&](const std::string& out, const std::vector<std::string>& more) {
    std::vector<std::string> all{"beams", "--words", "a b c", "--attention", folder_ / "a.npy", "-o", out};
    all.insert(all.end(), more.begin(), more.end());
    return run_program(all);
  };
  const std::string page = picture("a b c", "x.html"), still = picture("a b c", "x.svg");
  const std::vector<std::string> before = folder_.names();
  for (const char* out : {"-", "/dev/stdout", "/dev/fd/1"}) {
    EXPECT_EQ(to(out, {}).out, page) << out;
    EXPECT_EQ(to(out, {"--format", "svg"}).out, still) << out;
  }
  EXPECT_EQ(folder_.names(), before);

  // What a pipe holds, so that nobody has to read while the program writes.
  std::string read(still.size() + 1, ' ');
  ASSERT_LT(read.size(), 65536u);
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  const int reader = ::open((folder_ / "pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  const Finished finished = to(folder_ / "pipe", {"--format", "svg"});
  EXPECT_EQ(finished.code, 0) << finished.error;
  read.resize(static_cast<std::size_t>(std::max(::read(reader, read.data(), read.size()), ::ssize_t{0})));
  ::close(reader);
  EXPECT_EQ(read, still);
  EXPECT_NE(finished.out.find("pipe: 3 words"), std::string::npos) << finished.out;
  EXPECT_TRUE(std::filesystem::is_fifo(folder_ / "pipe"));
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
  const Finished strange =
      run_program({"beams", "--text", "xyzzy", "-o", folder_ / "x.html"}, {.name = "some where/headlight"});
  EXPECT_EQ(strange.error,
            "headlight: warning: the demonstration model does not know 1 word: 'xyzzy' (`'some where/headlight' info "
            "--words` lists its words; other texts need --model)\n");
  (void)said("it");
  expect_error(run_program({"beams", "--text", "", "-o", folder_ / "y.html"}), {"--text", "holds no words"});
  std::string long_text = "it";
  for (int word = 1; word < 16; ++word) long_text += " it";
  EXPECT_NE(run_program({"beams", "--text", long_text, "-o", folder_ / "x.html"})
                .error.find("has more than the 15 tokens that the model takes; the rest is left out"),
            std::string::npos);
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
  const nlohmann::json lines = data_of(picture("alone", "x.html")).at("lines");
  EXPECT_EQ(lines.at(11), "");
  EXPECT_NE(lines.at(12), "");
}

}  // namespace headlight::test::beams_test
