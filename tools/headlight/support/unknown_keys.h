// Keys of a model's files that nobody here knows.
#pragma once

#include <string>
#include <vector>

#include "tools/headlight/support/process.h"

namespace headlight::program {

// One line on standard error that names them; nothing where there are none.
inline void warn_of_unknown_keys(const std::vector<std::string>& keys) {
  std::string names;
  for (const std::string& key : keys) names += (names.empty() ? "" : "; ") + key;
  if (!names.empty()) print_warning("keys that are not known here are passed over: " + names);
}

}  // namespace headlight::program
