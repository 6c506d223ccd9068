// What our still pictures share: the sheet with its two grounds, text as text, the colours of the palette.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace headlight::program {

// Attributes of text and marks without a head's colour.
inline constexpr const char* kInk = "class=\"ink\" fill=\"#23252e\"";
inline constexpr const char* kSoft = "class=\"soft\" fill=\"#6d7080\"";
// The same over lines: with a rim of the ground's colour, for which the dark style has a rule.
inline constexpr const char* kSoftOverLines =
    "class=\"soft halo\" fill=\"#6d7080\" stroke=\"#fff\" stroke-width=\"4\" stroke-linejoin=\"round\" "
    "paint-order=\"stroke\"";

// Attributes in a colour of the palette: the one for light ground, and the class that a dark ground replaces it by.
[[nodiscard]] std::string fill_of(std::size_t colour);
[[nodiscard]] std::string stroke_of(std::size_t colour);

// Where a file begins: its title, and its style on dark ground, to which `dark` adds.
[[nodiscard]] std::string svg_begin(double width, double height, const std::string& title,
                                    const std::string& dark = "");

// `look` is more attributes; `anchor` "start", "middle" or "end". Control characters are spelled out, the rest escaped.
[[nodiscard]] std::string svg_text(double x, double y, double size, const char* anchor, const std::string& look,
                                   const std::string& words);

// About as wide as the usual sans-serif faces set it.
[[nodiscard]] double width_of(const std::string& words, double size);

// Parted at spaces into lines of at most that width; a word that is wider has its line for itself.
[[nodiscard]] std::vector<std::string> lines_of(const std::string& words, double size, double width);

}  // namespace headlight::program
