// A sheet to draw on.
#pragma once

#include <sstream>
#include <string>

namespace headlight::bench::report {

enum class Anchor { start, middle, end };

class Svg {
 public:
  Svg(double width, double height, const std::string& title);

  void rectangle(double x, double y, double width, double height, const std::string& colour);
  // Thin, for axes and grids.
  void rule(double x1, double y1, double x2, double y2);
  void text(double x, double y, const std::string& words, Anchor anchor = Anchor::start, bool bold = false);
  // "x,y x,y …"
  void polyline(const std::string& points, const std::string& colour);

  [[nodiscard]] std::string finish() const { return body_.str() + "</svg>\n"; }

 private:
  std::ostringstream body_;
};

// The colour of a series, the same in every picture; headlight's is the beam's.
[[nodiscard]] std::string colour_of(const std::string& series);

}  // namespace headlight::bench::report
