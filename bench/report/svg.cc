#include "report/svg.h"

#include <utility>

#include "report/text.h"

namespace headlight::bench::report {
namespace {

std::string number(double value) { return format("%.1f", value); }

}  // namespace

Svg::Svg(double width, double height, const std::string& title) {
  // Where the reader's scheme is known, text follows it; the grey that stands otherwise reads on both.
  body_ << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << number(width) << "\" height=\"" << number(height)
        << "\" viewBox=\"0 0 " << number(width) << ' ' << number(height) << "\" role=\"img\">\n<title>"
        << xml_text(title) << "</title>\n"
        << "<style>text{font:12px 'DejaVu Sans',Helvetica,Arial,sans-serif;fill:#77808a}"
           ".b{font-weight:bold}line{stroke:#8b949e;stroke-width:1;stroke-opacity:.4}"
           "polyline{fill:none;stroke-width:2;stroke-linejoin:round}"
           "@media(prefers-color-scheme:dark){text{fill:#b1bac4}}"
           "@media(prefers-color-scheme:light){text{fill:#4d5661}}</style>\n";
}

void Svg::rectangle(double x, double y, double width, double height, const std::string& colour) {
  body_ << "<rect x=\"" << number(x) << "\" y=\"" << number(y) << "\" width=\"" << number(width) << "\" height=\""
        << number(height) << "\" rx=\"1.5\" fill=\"" << xml_text(colour) << "\"/>\n";
}

void Svg::rule(double x1, double y1, double x2, double y2) {
  body_ << "<line x1=\"" << number(x1) << "\" y1=\"" << number(y1) << "\" x2=\"" << number(x2) << "\" y2=\""
        << number(y2) << "\"/>\n";
}

void Svg::text(double x, double y, const std::string& words, Anchor anchor, bool bold) {
  const char* const anchors[] = {"start", "middle", "end"};
  body_ << "<text x=\"" << number(x) << "\" y=\"" << number(y) << "\" text-anchor=\""
        << anchors[static_cast<int>(anchor)] << '"' << (bold ? " class=\"b\"" : "") << '>' << xml_text(words)
        << "</text>\n";
}

void Svg::polyline(const std::string& points, const std::string& colour) {
  body_ << "<polyline points=\"" << xml_text(points) << "\" stroke=\"" << xml_text(colour) << "\"/>\n";
}

std::string colour_of(const std::string& series) {
  static const std::pair<const char*, const char*> known[] = {{"headlight unfused", "#b08d57"},
                                                              {"headlight, preset", "#8f8a3a"},
                                                              {"headlight", "#e08a1e"},
                                                              {"OpenBLAS", "#3d86c6"},
                                                              {"BLIS", "#2a9d8f"},
                                                              {"oneDNN", "#9a6cc7"},
                                                              {"PyTorch", "#d6546f"},
                                                              {"ONNX Runtime", "#6f9a3e"},
                                                              {"OpenVINO", "#a0705a"}};
  for (const auto& [name, colour] : known) {
    if (series.find(name) != std::string::npos) return colour;
  }
  return "#8b949e";
}

}  // namespace headlight::bench::report
