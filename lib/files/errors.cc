#include "headlight/models/errors.h"

#include <utf8proc.h>

#include <array>
#include <cstdio>

namespace headlight::models {
namespace {

constexpr std::size_t kLongestPrinted = 200;

template <class... Value>
void append_formatted(std::string& line, const char* format, Value... value) {
  std::array<char, 24> buffer{};
  const int length = std::snprintf(buffer.data(), buffer.size(), format, value...);
  line.append(buffer.data(), static_cast<std::size_t>(length));
}

bool shows(utf8proc_int32_t codepoint) {
  switch (utf8proc_category(codepoint)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    default:
      return true;
  }
}

}  // namespace

std::string printable(std::string_view text) {
  std::string line;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  for (std::size_t at = 0; at < text.size();) {
    if (at >= kLongestPrinted) return line + "…";
    utf8proc_int32_t codepoint = 0;
    const auto length = utf8proc_iterate(bytes + at, static_cast<utf8proc_ssize_t>(text.size() - at), &codepoint);
    if (length <= 0) {
      append_formatted(line, "\\x%02x", static_cast<unsigned>(bytes[at]));
      ++at;
      continue;
    }
    const auto width = static_cast<std::size_t>(length);
    if (codepoint == '\n') {
      line += "\\n";
    } else if (codepoint == '\t') {
      line += "\\t";
    } else if (shows(codepoint)) {
      line.append(text.substr(at, width));
    } else if (codepoint < 0x100) {
      append_formatted(line, "\\x%02x", static_cast<unsigned>(codepoint));
    } else {
      append_formatted(line, "\\u{%04x}", static_cast<unsigned>(codepoint));
    }
    at += width;
  }
  return line;
}

std::string in_quotes(std::string_view text) {
  std::string line = "'";
  return line.append(printable(text)).append("'");
}

FileError::FileError(std::string_view path, std::string_view message)
    : std::runtime_error(printable(path) + ": " + std::string(message)) {}

}  // namespace headlight::models
