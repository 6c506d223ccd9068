// Numbers and words as the report writes them.
#pragma once

#include <string>
#include <string_view>

namespace headlight::bench::report {

[[nodiscard]] std::string format(const char* pattern, double value);
// Three digits and the unit that fits: "117 ns", "5.02 µs", "1.20 s".
[[nodiscard]] std::string time_text(double seconds);
// "87.2 %"; "–" for 0, which stands for not measured.
[[nodiscard]] std::string percent_text(double share);
// "2 MiB".
[[nodiscard]] std::string bytes_text(double bytes);

// As one cell of a table: a bar or a new line would end it, and HTML and emphasis must not begin.
[[nodiscard]] std::string markdown_cell(std::string_view text);
// As text or an attribute of XML; control characters that XML cannot hold become '?'.
[[nodiscard]] std::string xml_text(std::string_view text);

}  // namespace headlight::bench::report
