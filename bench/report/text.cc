#include "report/text.h"

#include <cctype>
#include <cstddef>
#include <cstdio>

namespace headlight::bench::report {

std::string format(const char* pattern, double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, pattern, value);
  return buffer;
}

std::string time_text(double seconds) {
  const char* const units[] = {"s", "ms", "µs", "ns"};
  int unit = 0;
  while (unit < 3 && seconds < 1) {
    seconds *= 1000;
    ++unit;
  }
  const char* const pattern = seconds < 9.995 ? "%.2f " : seconds < 99.95 ? "%.1f " : "%.0f ";
  return format(pattern, seconds) + units[unit];
}

std::string percent_text(double share) { return share == 0 ? "–" : format("%.1f %%", 100 * share); }

std::string bytes_text(double bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB"};
  int unit = 0;
  while (unit < 3 && bytes >= 1024) {
    bytes /= 1024;
    ++unit;
  }
  return format(bytes == static_cast<double>(static_cast<long>(bytes)) ? "%.0f " : "%.1f ", bytes) + units[unit];
}

std::string markdown_cell(std::string_view text) {
  std::string cell;
  const auto is_word = [&](std::size_t at) {
    return at < text.size() && std::isalnum(static_cast<unsigned char>(text[at]));
  };
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\n' || c == '\r' || c == '\t') {
      cell += ' ';
    } else if (c == '&') {
      cell += "&amp;";
    } else if (c == '<') {
      cell += "&lt;";
    } else if (c == '>') {
      cell += "&gt;";
    } else {
      // An underscore inside a word is no emphasis.
      const bool inside = c == '_' && at > 0 && is_word(at - 1) && is_word(at + 1);
      if (!inside && std::string_view("\\`*_[]|").find(c) != std::string_view::npos) cell += '\\';
      cell += c;
    }
  }
  return cell;
}

std::string xml_text(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        safe += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? '?' : c;
    }
  }
  return safe;
}

}  // namespace headlight::bench::report
