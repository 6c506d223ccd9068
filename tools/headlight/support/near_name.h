// What somebody who mistyped a name meant.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace headlight::program {

// The least number of letters put in, left out, replaced, or exchanged with their neighbour that makes b of a.
inline std::size_t typing_errors(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> errors(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        errors[i][j] = i + j;
        continue;
      }
      errors[i][j] =
          std::min({errors[i - 1][j] + 1, errors[i][j - 1] + 1, errors[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool exchanged = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (exchanged) errors[i][j] = std::min(errors[i][j], errors[i - 2][j - 2] + 1);
    }
  }
  return errors[a.size()][b.size()];
}

// The nearest of the names, empty where none is near: two errors are too many for a name of four letters.
inline std::string near_name(std::string_view typed, const std::vector<std::string>& names) {
  constexpr std::size_t kLongest = 64;  // what is longer is no name
  std::string nearest;
  std::size_t least = 3;
  for (const std::string& name : names) {
    const std::size_t errors = typed.size() > kLongest ? least : typing_errors(typed, name);
    if (errors >= least || (errors == 2 && name.size() < 5)) continue;
    least = errors;
    nearest = name;
  }
  return nearest;
}

}  // namespace headlight::program
