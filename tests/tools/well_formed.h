// Whether a picture is a whole file.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace headlight::test {

// Whether every element ends where it must, and no letter stands where XML does not want it.
inline bool is_well_formed(const std::string& text) {
  std::vector<std::string> open;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (static_cast<unsigned char>(text[at]) < ' ' && text[at] != '\n') return false;
    if (text[at] == '&' && text.find(';', at) > at + 6) return false;
    if (text[at] != '<') continue;
    const std::size_t end = text.find('>', at);
    const std::string tag = text.substr(at + 1, end - at - 1);
    if (tag.find('<') != std::string::npos || std::count(tag.begin(), tag.end(), '"') % 2 != 0) return false;
    const std::string name = tag.substr(0, tag.find_first_of(" \n/", 1));
    if (tag.starts_with('/')) {
      if (open.empty() || open.back() != tag.substr(1)) return false;
      open.pop_back();
    } else if (!tag.ends_with('/')) {
      open.push_back(name);
    }
    at = end;
  }
  return open.empty();
}

}  // namespace headlight::test
