#include "tools/headlight/validators.h"

#include <charconv>
#include <cstdint>
#include <limits>
#include <string>

#include "headlight/models/errors.h"

namespace headlight::program {

Validator file_name() {
  return checked_by(
      [](const std::string& name) { return name.empty() ? std::string("is empty, expected a name") : std::string(); });
}

Validator output_name() {
  return checked_by([](const std::string& name) {
    if (name.empty()) return std::string("is empty, expected a name");
    return name == "-" ? std::string("is '-', expected the name of a file") : std::string();
  });
}

Validator whole_number() {
  return checked_by([](const std::string& text) {
    std::uint64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error == std::errc() && stop == end) return std::string();
    return "is '" + models::printable(text) + "', expected 0 to " +
           std::to_string(std::numeric_limits<std::uint64_t>::max());
  });
}

}  // namespace headlight::program
