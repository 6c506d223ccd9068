// A still picture for papers: SVG with text as text. Colours of light ground are written on every element; a style for
// dark ground replaces them where a browser shows the file.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "tools/headlight/beams/beams.h"
#include "tools/headlight/pictures/palette.h"
#include "tools/headlight/pictures/svg_parts.h"
#include "tools/headlight/support/display_text.h"
#include "tools/headlight/support/number_text.h"

namespace headlight::program {
namespace {

constexpr double kLight = 520;  // width of what lies between the words
constexpr double kEdge = 34;    // above and below the rows
constexpr double kTip = 4;      // of the prism, from the edges
constexpr double kInset = 9;    // of the points from the words
constexpr double kMargin = 10;  // of bars and their caption from the edge
constexpr double kLongestBar = 64;
constexpr double kLegendRow = 22;
constexpr double kNoteRow = 16;
constexpr double kNoteSize = 12;

// Where everything is, in units of CSS pixels.
class Layout {
 public:
  Layout(const Beams& beams, const BeamView& view, const std::vector<std::string>& said) {
    const std::int64_t length = beams.length();
    row = length <= 14 ? 30 : length <= 24 ? 25 : length <= 48 ? 20 : 14;
    font = std::min(16.0, 0.56 * row);
    double widest = width_of("x", font);
    for (const Word& word : beams.words) widest = std::max(widest, width_of(label(word.text, kWordColumns), font));
    words = widest + 12;
    bars = beams.layers.front().parts.size() > 0 ? kMargin + kLongestBar + 12 : 0;
    left = bars + words;
    right = left + kLight;
    width = right + words;
    bottom = 2 * kEdge + row * static_cast<double>(length);
    legend = left + kInset + 98;
    const auto heads = static_cast<std::int64_t>(view.heads.size());
    const double room = (width - legend - 4) / static_cast<double>(heads);
    step = std::clamp(room, 24.0, 30.0);
    in_row = room < step ? std::max<std::int64_t>(1, static_cast<std::int64_t>((width - legend - 4) / step)) : heads;
    note = bottom + 20 + kLegendRow * static_cast<double>((heads - 1) / in_row + 1);
    for (const std::string& one : said) {
      for (std::string& line : lines_of(one, kNoteSize, width - left - kInset - 4)) notes.push_back(std::move(line));
    }
    height = note + (notes.empty() ? -8 : 10 + kNoteRow * static_cast<double>(notes.size() - 1));
  }

  [[nodiscard]] double y(std::int64_t word) const { return kEdge + row * (static_cast<double>(word) + 0.5); }
  // Of `room`, where a head's light runs beside the others'.
  [[nodiscard]] static double spread(std::int64_t head, std::int64_t heads, double room) {
    return heads == 1 ? 0 : (static_cast<double>(head) / static_cast<double>(heads - 1) - 0.5) * room;
  }
  [[nodiscard]] double half_prism(double at) const {
    return std::min(0.17 * kLight, 0.42 * bottom) * (at - kTip) / (bottom - 2 * kTip);
  }
  [[nodiscard]] double middle() const { return left + 0.31 * kLight; }
  [[nodiscard]] double entry(double at) const { return middle() - half_prism(at); }
  [[nodiscard]] double exit(double at) const { return middle() + half_prism(at); }

  double row = 0, font = 0, words = 0, bars = 0, left = 0, right = 0, width = 0, bottom = 0, height = 0;
  double legend = 0, step = 0;  // where its heads begin, and how far they are from each other
  std::int64_t in_row = 0;      // as many of them
  double note = 0;              // where the first of them stands
  std::vector<std::string> notes;
};

constexpr const char* kDark =
    ".ray{stroke:#fff}.glass{fill:#c8d7ff;fill-opacity:.1;stroke:#c8d7ff;stroke-opacity:.42}"
    ".light{mix-blend-mode:screen}";

// Which words any of the beams touches, on either side.
struct Touched {
  Touched(const Beams& beams, const std::vector<Beam>& shown) : from(beams.words.size()), to(beams.words.size()) {
    for (const Beam& beam : shown) {
      from[static_cast<std::size_t>(beam.from)] = true;
      // The heaviest come first; beside them, what is lighter cannot be seen.
      if (beam.weight > 0.03f * shown.front().weight) to[static_cast<std::size_t>(beam.to)] = true;
    }
  }
  std::vector<bool> from, to;
};

std::string word_elements(const Beams& beams, const BeamView& view, const Layout& layout, const Touched& touched) {
  const bool all = view.from == kAll && view.to == kAll;
  std::string text;
  for (std::int64_t word = 0; word < beams.length(); ++word) {
    const auto at = static_cast<std::size_t>(word);
    const std::string shown = label(beams.words[at].text, kWordColumns);
    for (const bool left : {true, false}) {
      const bool lit = all || (left ? touched.from[at] : touched.to[at]);
      const std::string look = std::string(beams.words[at].special ? kSoft : kInk) +
                               (lit ? "" : " fill-opacity=\"0.4\"") +
                               ((left ? view.from : view.to) == word ? " font-weight=\"650\"" : "");
      text += svg_text(left ? layout.left - 2 : layout.right + 2, layout.y(word) + 0.36 * layout.font, layout.font,
                       left ? "end" : "start", look, shown);
    }
  }
  return text;
}

// What comes back: a bar of the heads' parts before each word that looks.
std::string part_elements(const Beams& beams, const BeamView& view, const Layout& layout) {
  const Tensor<float, 2>& parts = beams.layers[static_cast<std::size_t>(view.layer)].parts;
  std::string text;
  double most = 1e-30;
  std::vector<double> sums;
  for (std::int64_t word = 0; word < beams.length() && parts.size() > 0; ++word) {
    double sum = 0;
    for (std::int64_t head = 0; head < beams.heads; ++head) sum += static_cast<double>(parts(word, head));
    sums.push_back(sum);
    most = std::max(most, sum);
  }
  for (std::size_t word = 0; word < sums.size(); ++word) {
    const double whole = kLongestBar * sums[word] / most;
    double x = kMargin + kLongestBar - whole;
    for (std::int64_t head = 0; head < beams.heads; ++head) {
      const auto number = static_cast<std::int64_t>(word);
      const double piece = whole * static_cast<double>(parts(number, head)) / std::max(sums[word], 1e-30);
      const std::size_t colour = colour_of(head, beams.heads);
      const char* const faded = view.from == kAll || view.from == number ? "" : " fill-opacity=\"0.35\"";
      text += format("<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"5\" class=\"c%zu\" fill=\"%s\"%s/>\n", x,
                     layout.y(number) - 2.5, piece, colour, kOnLight[colour].data(), faded);
      x += piece;
    }
  }
  if (!sums.empty()) text += svg_text(kMargin, layout.bottom + 20, 12, "start", kSoft, "what comes back");
  return text;
}

std::string prism_element(const Layout& layout) {
  const double low = layout.bottom - kTip;
  return format(
      "<polygon class=\"glass\" fill=\"#283c6e\" fill-opacity=\"0.06\" stroke=\"#283c6e\" stroke-opacity=\"0.32\" "
      "points=\"%.1f,%.1f %.1f,%.1f %.1f,%.1f\"/>\n",
      layout.middle(), kTip, layout.exit(low), low, layout.entry(low), low);
}

// Where a head's light leaves the glass. One word alone spreads its colours further than its row.
double exit_y(const Beams& beams, const BeamView& view, const Layout& layout, std::int64_t word, std::int64_t head) {
  const double room = std::min(layout.row, 30.0);
  return layout.y(word) + Layout::spread(head, beams.heads, view.from == word ? std::max(room, 72.0) : 0.86 * room);
}

// The white ray of each word that looks, and its colours on their way through the glass.
std::string ray_elements(const Beams& beams, const BeamView& view, const Layout& layout, const Touched& touched) {
  std::string text;
  for (std::int64_t word = 0; word < beams.length(); ++word) {
    if (!touched.from[static_cast<std::size_t>(word)]) continue;
    const double y = layout.y(word);
    const bool alone = view.from == word;
    text += format(
        "<path class=\"ray\" stroke=\"#262a38\" stroke-width=\"1.3\" stroke-opacity=\"%s\" d=\"M%.1f %.1fH%.1f\"/>\n",
        alone ? "0.9" : "0.55", layout.left + kInset, y, layout.entry(y));
    for (const std::int64_t head : view.heads) {
      const std::size_t colour = colour_of(head, beams.heads);
      const double end = exit_y(beams, view, layout, word, head);
      const double half = 0.35 * (alone ? 72.0 : 0.86 * std::min(layout.row, 30.0)) / static_cast<double>(beams.heads);
      text += format("<path class=\"c%zu\" fill=\"%s\" fill-opacity=\"%s\" d=\"M%.1f %.1fL%.1f %.2fV%.2fz\"/>\n",
                     colour, kOnLight[colour].data(), alone ? "0.85" : "0.4", layout.entry(y), y, layout.exit(y),
                     end - half, end + half);
    }
  }
  return text;
}

// A cone of light from the glass to the word, whose last bit gathers in the point.
std::string beam_element(const Beams& beams, const BeamView& view, const Beam& beam, const Layout& layout) {
  const bool alone = view.from == beam.from;
  const double ax = layout.exit(layout.y(beam.from));
  const double ay = exit_y(beams, view, layout, beam.from, beam.head);
  const double bx = layout.right - kInset;
  const double by = layout.y(beam.to) + Layout::spread(beam.head, beams.heads, 0.3 * std::min(layout.row, 30.0));
  const auto weight = static_cast<double>(beam.weight);
  const double size = std::min(1.0, layout.row / 22);
  const double width = size * (alone ? 1 + 8 * weight : 0.7 + 5.5 * weight);
  const bool dim = beams.words[static_cast<std::size_t>(beam.to)].special ||
                   beams.words[static_cast<std::size_t>(beam.from)].special;
  const double alpha = (alone ? std::pow(weight, 0.65) : 0.9 * std::pow(weight, 0.8)) * (dim ? 0.3 : 1.0);
  if (alpha < 0.004) return "";
  const std::size_t colour = colour_of(beam.head, beams.heads);
  if (const std::string_view line = line_of(beam.head); !line.empty()) {
    return format(
        "<path class=\"s%zu\" stroke=\"%s\" stroke-opacity=\"%.3f\" stroke-width=\"%.2f\" "
        "stroke-dasharray=\"%s\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n",
        colour, kOnLight[colour].data(), alpha, std::max(0.8, 0.6 * width), line.data(), ax, ay, bx, by);
  }
  const double cx = bx - 14 - 2 * width;
  const double cy = ay + (by - ay) * (cx - ax) / (bx - ax);
  const double half = 0.45 * size;
  return format(
      "<path class=\"c%zu\" fill=\"%s\" fill-opacity=\"%.3f\" d=\"M%.1f %.2fL%.1f %.2fL%.1f %.1fL%.1f %.2fL%.1f "
      "%.2fz\"/>\n",
      colour, kOnLight[colour].data(), alpha, ax, ay - half, cx, cy - width / 2, bx, by, cx, cy + width / 2, ax,
      ay + half);
}

std::string point_elements(const Beams& beams, const Layout& layout, const std::vector<Beam>& shown) {
  std::vector<double> received(beams.words.size());
  for (const Beam& beam : shown) received[static_cast<std::size_t>(beam.to)] += static_cast<double>(beam.weight);
  const double most = std::max(1e-9, *std::max_element(received.begin(), received.end()));
  std::string text = "<g class=\"ink\" fill=\"#262a38\">\n";
  const double size = std::min(1.0, layout.row / 24);
  for (std::int64_t word = 0; word < beams.length(); ++word) {
    const double arrives = std::sqrt(received[static_cast<std::size_t>(word)] / most);
    for (const auto& [x, radius] :
         {std::pair{layout.left + kInset, 2.4}, {layout.right - kInset, 1.2 + 3.2 * arrives}}) {
      text += format("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.2f\"/>\n", x, layout.y(word), size * radius);
    }
  }
  return text + "</g>\n";
}

std::string legend(const Beams& beams, const BeamView& view, const Layout& layout) {
  double y = layout.bottom + 20;
  std::string text = svg_text(layout.left + kInset, y, 12, "start", kSoft, "layer " + std::to_string(view.layer));
  text += svg_text(layout.legend - 36, y, 12, "start", kSoft, "head");
  std::int64_t number = 0;
  for (const std::int64_t head : view.heads) {
    y = layout.bottom + 20 + kLegendRow * static_cast<double>(number / layout.in_row);
    const double x = layout.legend + layout.step * static_cast<double>(number % layout.in_row);
    const std::size_t colour = colour_of(head, beams.heads);
    const std::string_view line = line_of(head);
    text += svg_text(x + 10, y, 12, "middle", kInk, std::to_string(head));
    text +=
        format("<path class=\"s%zu\" stroke=\"%s\" stroke-width=\"3.5\"%s d=\"M%.1f %.1fh%.1f\"/>\n", colour,
               kOnLight[colour].data(), line.empty() ? "" : (" stroke-dasharray=\"" + std::string(line) + "\"").c_str(),
               x, y + 6, std::min(20.0, layout.step - 2));
    ++number;
  }
  return text;
}

}  // namespace

std::string beams_still(const Beams& beams, const BeamView& view) {
  std::vector<Beam> shown = beams_in_view(beams, view);
  const std::size_t count = shown.size();
  if (count > kMostBeams) shown.resize(kMostBeams);
  const Touched touched(beams, shown);
  std::vector<std::string> notes = beams.notes;
  if (count > kMostBeams) {
    notes.push_back("the " + grouped(kMostBeams) + " brightest of " + grouped(static_cast<std::int64_t>(count)) +
                    " beams are drawn");
  }
  const Layout layout(beams, view, notes);
  std::string text = svg_begin(layout.width, layout.height, beams.title, kDark);
  text += prism_element(layout) + ray_elements(beams, view, layout, touched) + "<g class=\"light\">\n";
  // The bright ones lie over the others.
  for (auto beam = shown.rbegin(); beam != shown.rend(); ++beam) text += beam_element(beams, view, *beam, layout);
  text += "</g>\n" + point_elements(beams, layout, shown) + part_elements(beams, view, layout);
  text += word_elements(beams, view, layout, touched) + legend(beams, view, layout);
  double y = layout.note;
  for (const std::string& line : layout.notes) {
    text += svg_text(layout.left + kInset, y, kNoteSize, "start", kSoft, line);
    y += kNoteRow;
  }
  return text + "</svg>\n";
}

}  // namespace headlight::program
