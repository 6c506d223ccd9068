// Quantities as people read them, in three digits.
#pragma once

#include <string>

namespace headlight::program {

// "12,500", "0.25", "3.1×10⁻⁷".
[[nodiscard]] std::string number_text(double value);
// "2 MiB", "1.5 GiB".
[[nodiscard]] std::string bytes_text(double bytes);
// "117 ns", "5.02 µs", "2 min", "1.5 h".
[[nodiscard]] std::string seconds_text(double seconds);
// "99.2 %".
[[nodiscard]] std::string percent_text(double share);

}  // namespace headlight::program
