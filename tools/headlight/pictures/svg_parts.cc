#include "tools/headlight/pictures/svg_parts.h"

#include <sstream>
#include <string_view>

#include "tools/headlight/pictures/palette.h"
#include "tools/headlight/support/display_text.h"
#include "tools/headlight/support/number_text.h"

namespace headlight::program {
namespace {

constexpr std::string_view kSans =
    "system-ui, 'Segoe UI', Roboto, 'Noto Sans', 'PingFang SC', 'Microsoft YaHei', 'Noto Sans CJK SC', sans-serif";

constexpr std::size_t kMostColumns = 200;  // of one line

}  // namespace

std::string fill_of(std::size_t colour) {
  return format("class=\"c%zu\" fill=\"%s\"", colour, kOnLight[colour].data());
}

std::string stroke_of(std::size_t colour) {
  return format("class=\"s%zu\" stroke=\"%s\"", colour, kOnLight[colour].data());
}

std::string svg_begin(double width, double height, const std::string& title, const std::string& dark) {
  std::string text = format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
      "role=\"img\" ",
      width, height, width, height);
  text.append("font-family=\"").append(kSans).append("\">\n<title>").append(escaped(label(title, kMostColumns)));
  text +=
      "</title>\n<style>@media (prefers-color-scheme: dark) {.ground{fill:#0a0c11}.ink{fill:#eceef5}"
      ".soft{fill:#9398a8}" +
      dark;
  for (std::size_t colour = 0; colour < kColours; ++colour) {
    text += format(".c%zu{fill:%s}.s%zu{stroke:%s}", colour, kOnDark[colour].data(), colour, kOnDark[colour].data());
  }
  return text + "}</style>\n" +
         format("<rect class=\"ground\" width=\"%.0f\" height=\"%.0f\" fill=\"#fff\"/>\n", width, height);
}

std::string svg_text(double x, double y, double size, const char* anchor, const std::string& look,
                     const std::string& words) {
  const std::string language = language_of(words);
  return format("<text x=\"%.1f\" y=\"%.1f\" font-size=\"%.1f\" text-anchor=\"%s\" ", x, y, size, anchor) + look +
         (language.empty() ? "" : " lang=\"" + language + "\" xml:lang=\"" + language + "\"") + ">" +
         escaped(label(words, kMostColumns)) + "</text>\n";
}

// 0.58 of the letter height a column is wide enough.
double width_of(const std::string& words, double size) { return 0.58 * size * static_cast<double>(columns_of(words)); }

std::vector<std::string> lines_of(const std::string& words, double size, double width) {
  std::vector<std::string> lines;
  std::istringstream stream(words);
  for (std::string word; stream >> word;) {
    if (lines.empty() || width_of(lines.back() + " " + word, size) > width) {
      lines.push_back(word);
    } else {
      lines.back() += " " + word;
    }
  }
  return lines;
}

}  // namespace headlight::program
