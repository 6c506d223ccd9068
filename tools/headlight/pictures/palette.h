// A colour for each head, in the order of the rainbow, and a kind of line where colours run out.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace headlight::program {

// Twelve colours each for dark and for light ground, drawn by a search that held them as far apart as they go for
// normal sight and for people without red, green or blue cones at once; a test simulates those. More heads begin anew,
// with another line.
constexpr std::size_t kColours = 12;
using Palette = std::array<std::string_view, kColours>;

constexpr Palette kOnDark{"#ef9f75", "#b48918", "#fef553", "#c4d311", "#8afeef", "#26b7bb",
                          "#6ad5f9", "#567fc8", "#9fa2fe", "#b614fe", "#db1c9d", "#bd605f"};
constexpr Palette kOnLight{"#df1131", "#8c1e06", "#ca8007", "#baaf23", "#5ca358", "#00c7a1",
                           "#02aabf", "#0683c0", "#1913f9", "#4b33a3", "#7b1979", "#b25599"};

// Few heads are spread over the whole rainbow.
constexpr std::size_t colour_of(std::int64_t head, std::int64_t heads) {
  const auto number = static_cast<std::size_t>(head);
  const auto count = static_cast<std::size_t>(heads);
  return count >= kColours ? number % kColours : number * kColours / count;
}

// Dashes and gaps in pixels, as SVG's stroke-dasharray has them; the first line has no gaps. With the colours they tell
// 72 heads apart.
constexpr std::array<std::string_view, 6> kLines{"", "7 5", "2 4", "10 4 2 4", "12 3", "8 3 2 3 2 3"};

constexpr std::string_view line_of(std::int64_t head) {
  return kLines[static_cast<std::size_t>(head) / kColours % kLines.size()];
}

}  // namespace headlight::program
