// Charts as self-contained SVG: lines over axes, bars and dots with their spread. Text is text, nothing is fetched and
// nothing runs; colours of light ground stand on every element, and a style for dark ground replaces them where a
// browser shows the file.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tools/headlight/support/quantity_text.h"

namespace headlight::program {

// `binary` is logarithmic with powers of two as ticks: lengths, bytes, numbers of heads.
enum class ChartScale { linear, logarithmic, binary };

// How far apart the ticks of a linear axis lie: 1, 2 or 5 times a power of ten; the same from 1 on, for what is counted
// in whole numbers; powers of two, for bytes.
enum class ChartSteps { decimal, whole, binary };

inline constexpr double kNotGiven = std::numeric_limits<double>::quiet_NaN();

struct ChartAxis {
  std::string label{};  // with the unit
  ChartScale scale = ChartScale::linear;
  ChartSteps steps = ChartSteps::decimal;
  std::string (*text)(double) = &number_text;  // how a tick, or a bar's value, is written
  // Where the axis begins and ends; the data choose where it is not given, and a linear axis then begins at 0.
  double lowest = kNotGiven, highest = kNotGiven;
};

// What is not finite, or not above 0 on a logarithmic axis, leaves a gap.
struct ChartPoint {
  double x = 0, y = 0;
  double low = kNotGiven, high = kNotGiven;  // the spread, where there is one
};

enum class ChartStroke { line, dashed, points };

struct ChartLine {
  std::string label;
  std::vector<ChartPoint> points{};  // x ascends
  ChartStroke stroke = ChartStroke::line;
  // Lines of one series have one colour and one shape of mark, in all panels; empty: the label.
  std::string series{};
};

// y = y₀ (x / x₀)^power, thin and without colour: "L²" with power 2, a limit with power 0.
struct ChartGuide {
  std::string label;
  double power = 0, x = 1, y = 1;
};

struct ChartBar {
  std::string series;  // empty in a chart with one bar for each label
  double value = 0;
  double low = kNotGiven, high = kNotGiven;
};

struct ChartBars {
  std::string label;
  std::vector<ChartBar> bars;
};

// Lines and guides over both axes, or bars from the left along the x axis. Bars whose axis does not begin at 0 are
// drawn as dots, since their lengths would lie.
struct ChartPanel {
  std::string title{};
  ChartAxis x{}, y{};
  std::vector<ChartLine> lines{};
  std::vector<ChartGuide> guides{};
  std::vector<ChartBars> bars{};
};

struct Chart {
  std::string title;
  std::string subtitle{};  // what to see
  std::vector<ChartPanel> panels{};
  std::size_t columns = 2;  // panels side by side
  std::string note{};       // below, where the numbers come from
};

// The file. Words in it are escaped, and may come from anywhere.
[[nodiscard]] std::string chart_svg(const Chart& chart);

}  // namespace headlight::program
