// Charts: whole files whatever they are given, ticks that can be read, words that stay words.
#include "tools/headlight/pictures/chart.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tools/headlight/pictures/chart_axis.h"
#include "tools/well_formed.h"

namespace headlight::test::chart_test {

using namespace program;  // NOLINT

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::size_t count_of(const std::string& text, const std::string& words) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(words, at)) != std::string::npos; at += words.size()) ++count;
  return count;
}

std::vector<double> ticks_of(ChartScale scale, double least, double most, std::size_t at_most,
                             ChartSteps steps = ChartSteps::decimal) {
  ValueRange range(scale);
  range.include(least);
  range.include(most);
  return PlacedAxis({.scale = scale, .steps = steps}, range, 0, 100, at_most).ticks();
}

Chart line_chart(std::vector<ChartLine> lines) {
  return {.title = "Bytes",
          .panels = {{.x = {.label = "length", .scale = ChartScale::binary},
                      .y = {.label = "bytes", .scale = ChartScale::binary, .text = &bytes_text},
                      .lines = std::move(lines),
                      .guides = {{.label = "L²", .power = 2, .x = 1024, .y = 1 << 20}}}}};
}

TEST(Chart, TicksAreRound) {
  EXPECT_EQ(ticks_of(ChartScale::linear, 0.3, 0.97, 6), (std::vector<double>{0, 0.2, 0.4, 0.6000000000000001, 0.8, 1}));
  EXPECT_EQ(ticks_of(ChartScale::linear, -3, 7, 6), (std::vector<double>{-4, -2, 0, 2, 4, 6, 8}));
  EXPECT_EQ(ticks_of(ChartScale::linear, 1, 2, 6, ChartSteps::whole), (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(ticks_of(ChartScale::linear, 6, 96, 6, ChartSteps::whole), ticks_of(ChartScale::linear, 6, 96, 6));
  EXPECT_EQ(ticks_of(ChartScale::linear, 36 << 10, 256 << 10, 5, ChartSteps::binary),
            (std::vector<double>{0, 64 << 10, 128 << 10, 192 << 10, 256 << 10}));
  EXPECT_EQ(ticks_of(ChartScale::binary, 1, 16, 6), (std::vector<double>{1, 2, 4, 8, 16}));
  EXPECT_EQ(ticks_of(ChartScale::binary, 1, 1 << 30, 6), (std::vector<double>{1, 1 << 10, 1 << 20, 1 << 30}));
  EXPECT_EQ(ticks_of(ChartScale::logarithmic, 1, 10, 6), (std::vector<double>{1, 2, 5, 10}));
  const std::vector<double> decades = ticks_of(ChartScale::logarithmic, 1e-12, 1, 5);
  ASSERT_EQ(decades.size(), 5u);
  EXPECT_NEAR(decades.front() / 1e-12, 1, 1e-9);
  EXPECT_NEAR(decades[1] / 1e-9, 1, 1e-9);
}

TEST(Chart, AxesHaveTicksWhateverTheValues) {
  for (const ChartScale scale : {ChartScale::linear, ChartScale::logarithmic, ChartScale::binary}) {
    for (const auto& [least, most] : std::vector<std::pair<double, double>>{{5, 7},
                                                                            {3, 3},
                                                                            {1e-300, 1e300},
                                                                            {1e-9, 1.1e-9},
                                                                            {0, 0},
                                                                            {-1, -1},
                                                                            {kNan, kNan},
                                                                            {kInfinity, -kInfinity},
                                                                            {0.999, 1.001}}) {
      const std::vector<double> ticks = ticks_of(scale, least, most, 5);
      EXPECT_GE(ticks.size(), 2u) << least << " to " << most << " on scale " << static_cast<int>(scale);
      EXPECT_LE(ticks.size(), 8u) << least << " to " << most << " on scale " << static_cast<int>(scale);
    }
  }
}

TEST(Chart, LinesHaveMarksNamesAndGuides) {
  const std::string svg = chart_svg(line_chart({{"unfused", {{1024, 1 << 20}, {2048, 4 << 20}, {4096, 16 << 20}}},
                                                {"recomputed", {{1024, 1 << 18}, {2048, 1 << 19}, {4096, 1 << 20}}},
                                                {.label = "recomputed, predicted",
                                                 .points = {{1024, 1 << 18}, {4096, 1 << 20}},
                                                 .stroke = ChartStroke::dashed,
                                                 .series = "recomputed"}}));
  EXPECT_TRUE(is_well_formed(svg)) << svg;
  for (const char* words : {">unfused</text>", ">recomputed</text>", ">L²</text>", ">1 MiB</text>", ">2,048</text>",
                            "prefers-color-scheme: dark", "stroke-dasharray=\"6 4\"", "<title>Bytes</title>"}) {
    EXPECT_EQ(count_of(svg, words), 1u) << words;
  }
  EXPECT_EQ(count_of(svg, "a4 4 0 1 0 8 0"), 3u) << "round marks of the first series";
  EXPECT_EQ(count_of(svg, "v7.2h-7.2"), 3u) << "square marks of the second";
}

TEST(Chart, ALineThatLeavesThroughTheFloorIsMarked) {
  const auto marks = [](std::vector<ChartPoint> points, ChartStroke stroke = ChartStroke::line) {
    const std::string svg =
        chart_svg({.title = "Norms",
                   .panels = {{.y = {.scale = ChartScale::logarithmic, .lowest = 1e-12, .highest = 1},
                               .lines = {{.label = "a", .points = std::move(points), .stroke = stroke}}}}});
    EXPECT_TRUE(is_well_formed(svg));
    return count_of(svg, "<title>below 10⁻¹²</title>");
  };
  EXPECT_EQ(marks({{1, 1e-3}, {2, 1e-12}, {3, 1e-2}}), 0u) << "on the floor is not below it";
  EXPECT_EQ(marks({{1, 1e-3}, {2, 1e-20}, {3, 1e-40}}), 1u);
  EXPECT_EQ(marks({{1, 1e-20}, {2, 1e-3}, {3, 1e-40}}), 2u) << "it comes, and goes";
  EXPECT_EQ(marks({{1, 1e-3}, {2, kNan}, {3, 1e-40}}), 0u) << "a gap crosses nothing";
  EXPECT_EQ(marks({{1, 1e-3}, {2, 1e-20}}, ChartStroke::points), 0u);
}

TEST(Chart, PanelsShareOneLegend) {
  Chart chart = line_chart({{"one", {{1, 2}}}, {"two", {{1, 3, 2, 4}}}});
  chart.panels.push_back(chart.panels.front());
  const std::string svg = chart_svg(chart);
  EXPECT_TRUE(is_well_formed(svg));
  EXPECT_EQ(count_of(svg, ">one</text>"), 1u);
  EXPECT_EQ(count_of(svg, ">bytes</text>"), 2u);
  EXPECT_EQ(count_of(svg, "fill-opacity=\"0.16\""), 2u) << "a band where there is a spread";
}

TEST(Chart, BarsBeginAtZeroOrAreDots) {
  Chart chart{.title = "Accuracy",
              .panels = {{.x = {.label = "held-out sentences", .text = &percent_text, .highest = 1},
                          .bars = {{"concatenation", {{"1 head", 0.5, 0.4, 0.6}, {"8 heads", 0.992}}},
                                   {"average", {{"1 head", 0.25}, {"8 heads", kNan}}}}}}};
  std::string svg = chart_svg(chart);
  EXPECT_TRUE(is_well_formed(svg)) << svg;
  EXPECT_EQ(count_of(svg, "rx=\"1.5\""), 2u + 3u) << "two entries of the legend, three bars";
  for (const char* words : {">99.2 %</text>", ">none</text>", ">8 heads</text>", ">average</text>"}) {
    EXPECT_EQ(count_of(svg, words), 1u) << words;
  }
  chart.panels.front().x.lowest = 0.2;
  svg = chart_svg(chart);
  EXPECT_TRUE(is_well_formed(svg));
  EXPECT_EQ(count_of(svg, "rx=\"1.5\""), 2u);
}

// Whatever is wider than the sheet goes on in the next line, and what stands below moves down.
TEST(Chart, LongWordsHaveAsManyLinesAsTheyNeed) {
  const auto height_of = [](const std::string& svg) { return std::stod(svg.substr(svg.find("height=\"") + 8)); };
  Chart chart{.title = "Norms", .subtitle = "short", .panels = {{}}, .note = "short"};
  const double usual = height_of(chart_svg(chart));
  std::string words = "begin";
  for (int n = 0; n < 30; ++n) words += " longer";
  chart.subtitle = chart.note = words + " end";
  const std::string svg = chart_svg(chart);
  EXPECT_TRUE(is_well_formed(svg)) << svg;
  EXPECT_EQ(count_of(svg, ">begin longer"), 2u);
  EXPECT_EQ(count_of(svg, "longer end</text>"), 2u) << "the end of the words is there, in a line that begins anew";
  EXPECT_EQ(count_of(svg, words + " end"), 0u) << "no line holds them all";
  EXPECT_EQ(height_of(svg), usual + 2 * 17);
}

TEST(Chart, HoldsNothingToo) {
  EXPECT_TRUE(is_well_formed(chart_svg({})));
  EXPECT_TRUE(is_well_formed(chart_svg({.title = "empty", .panels = {{}, {}, {}}, .columns = 0})));
  const std::string nothing =
      chart_svg(line_chart({{"nothing", {}}, {"nowhere", {{kNan, 1}, {1, -kInfinity}, {0, 0}}}}));
  EXPECT_TRUE(is_well_formed(nothing));
  EXPECT_NE(nothing.find("no values"), std::string::npos);
  const std::string one = chart_svg(line_chart({{"alone", {{1024, 4096, kNan, kInfinity}}}}));
  EXPECT_TRUE(is_well_formed(one));
  for (const std::string& svg : {nothing, one}) {
    EXPECT_EQ(svg.find("nan"), std::string::npos) << svg;
    EXPECT_EQ(svg.find("inf"), std::string::npos) << svg;
  }
}

TEST(Chart, WordsStayWords) {
  const std::string words = "</svg><script>alert(1)</script> & \"'\x01\xff";
  const std::string svg = chart_svg({.title = words,
                                     .subtitle = words,
                                     .panels = {{.title = words,
                                                 .x = {.label = words},
                                                 .y = {.label = words},
                                                 .lines = {{words, {{1, 1}}}},
                                                 .guides = {{words, 0, 1, 1}}},
                                                {.bars = {{words, {{words, 1}}}}}},
                                     .note = words});
  EXPECT_TRUE(is_well_formed(svg)) << svg;
  EXPECT_EQ(svg.find("<script"), std::string::npos);
}

TEST(Quantities, HaveThreeDigitsAndAUnit) {
  for (const auto& [value, words] : std::vector<std::pair<double, std::string>>{{0, "0"},
                                                                                {0.25, "0.25"},
                                                                                {999.6, "1,000"},
                                                                                {12345, "12,345"},
                                                                                {-2.5, "−2.5"},
                                                                                {3.1e-7, "3.1×10⁻⁷"},
                                                                                {1e-7, "10⁻⁷"},
                                                                                {9.999e-8, "10⁻⁷"},
                                                                                {1e12, "10¹²"},
                                                                                {0.001, "0.001"},
                                                                                {kNan, "none"},
                                                                                {kInfinity, "∞"}}) {
    EXPECT_EQ(number_text(value), words);
  }
  for (const auto& [value, words] : std::vector<std::pair<double, std::string>>{{0, "0 B"},
                                                                                {1, "1 B"},
                                                                                {1023, "1,023 B"},
                                                                                {1024, "1 KiB"},
                                                                                {1.5 * 1024 * 1024, "1.5 MiB"},
                                                                                {1024.0 * 1024 * 1024, "1 GiB"},
                                                                                {1e18, "909,495 TiB"}}) {
    EXPECT_EQ(bytes_text(value), words);
  }
  for (const auto& [value, words] : std::vector<std::pair<double, std::string>>{{0, "0 s"},
                                                                                {1.17e-7, "117 ns"},
                                                                                {5.02e-6, "5.02 µs"},
                                                                                {0.99999, "1 s"},
                                                                                {75, "1.25 min"},
                                                                                {7200, "2 h"},
                                                                                {1e-12, "0.001 ns"}}) {
    EXPECT_EQ(seconds_text(value), words);
  }
  EXPECT_EQ(percent_text(0.992), "99.2 %");
}

}  // namespace headlight::test::chart_test
