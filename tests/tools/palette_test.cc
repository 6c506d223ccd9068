// The colours of heads, as different eyes see them.
#include "tools/headlight/pictures/palette.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace headlight::test::palette_test {

// Colours as people without one kind of cone see them (Machado et al. 2009), compared in OKLab (Ottosson 2020), in
// which 0.02 is a difference that is just seen.
using Triple = std::array<double, 3>;

Triple times(const std::array<Triple, 3>& matrix, const Triple& x) {
  Triple y{};
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t column = 0; column < 3; ++column) y[row] += matrix[row][column] * x[column];
  }
  return y;
}

Triple oklab(const Triple& linear) {
  Triple cones = times({{{.4122214708, .5363325363, .0514459929},
                         {.2119034982, .6806995451, .1073969566},
                         {.0883024619, .2817188376, .6299787005}}},
                       linear);
  for (double& cone : cones) cone = std::cbrt(std::max(cone, 0.0));
  return times({{{.2104542553, .7936177850, -.0040720468},
                 {1.9779984951, -2.4285922050, .4505937099},
                 {.0259040371, .7827717662, -.8086757660}}},
               cones);
}

Triple linear_of(std::string_view colour) {
  Triple linear{};
  for (std::size_t k = 0; k < 3; ++k) {
    const double value = std::stoi(std::string(colour.substr(1 + 2 * k, 2)), nullptr, 16) / 255.0;
    linear[k] = value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
  }
  return linear;
}

TEST(Palette, ColoursStayApartWithoutOneKindOfCone) {
  const std::map<std::string, std::array<Triple, 3>> sights{
      {"all cones", {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}},
      {"no red", {{{.152286, 1.052583, -.204868}, {.114503, .786281, .099216}, {-.003882, -.048116, 1.051998}}}},
      {"no green", {{{.367322, .860646, -.227968}, {.280085, .672501, .047413}, {-.011820, .042940, .968881}}}},
      {"no blue", {{{1.255528, -.076749, -.178779}, {-.078411, .930809, .147602}, {.004733, .691367, .303900}}}}};
  for (const auto& [sight, matrix] : sights) {
    for (const program::Palette& palette : {program::kOnDark, program::kOnLight}) {
      for (std::size_t a = 0; a < program::kColours; ++a) {
        for (std::size_t b = 0; b < a; ++b) {
          Triple one = times(matrix, linear_of(palette[a]));
          Triple other = times(matrix, linear_of(palette[b]));
          for (Triple* colour : {&one, &other}) {
            for (double& part : *colour) part = std::clamp(part, 0.0, 1.0);
          }
          one = oklab(one);
          other = oklab(other);
          EXPECT_GT(std::hypot(one[0] - other[0], one[1] - other[1], one[2] - other[2]), 0.06)
              << sight << ": " << palette[a] << " and " << palette[b];
        }
      }
    }
  }
}

TEST(Palette, NoTwoHeadsShareColourAndLine) {
  for (const std::int64_t heads : {1, 5, 12, 13, 24, 48, 72}) {
    std::set<std::pair<std::size_t, std::string_view>> looks;
    for (std::int64_t head = 0; head < heads; ++head) {
      looks.emplace(program::colour_of(head, heads), program::line_of(head));
    }
    EXPECT_EQ(static_cast<std::int64_t>(looks.size()), heads);
  }
}

}  // namespace headlight::test::palette_test
