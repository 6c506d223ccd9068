// Names of cases, put together from words and numbers.
#pragma once

#include <sstream>
#include <string>

namespace headlight::bench {

// case_name("full/H", 12, "/L", 512): "full/H12/L512".
template <class... Parts>
[[nodiscard]] std::string case_name(const Parts&... parts) {
  std::ostringstream name;
  (name << ... << parts);
  return name.str();
}

}  // namespace headlight::bench
