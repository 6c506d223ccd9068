#include "keywords.h"

#include <cstddef>
#include <string>
#include <string_view>

#include "errors.h"

namespace headlight::python {
namespace {

// "query, key, value": the names of the arguments of "def attention(query: A, key: Array, *, …) -> A".
std::string arguments_of(std::string_view signature) {
  std::string names;
  int depth = 0;
  bool is_name = false;
  for (const char letter : signature) {
    if ((letter == ')' || letter == ']') && --depth == 0) break;
    if (depth == 1 && (letter == ':' || letter == '=' || letter == '*')) is_name = false;
    if (depth == 1 && is_name && letter != ' ' && letter != ',') names += letter;
    if (letter == '(' || letter == '[') ++depth;
    if (depth != 1 || (letter != '(' && letter != ',')) continue;
    is_name = true;
    if (!names.empty() && !names.ends_with(", ")) names += ", ";
  }
  constexpr std::string_view kSelf = "self, ";
  return names.starts_with(kSelf) ? names.substr(kSelf.size()) : names;
}

}  // namespace

void refuse_keywords(const char* signature, const nb::kwargs& unknown) {
  const std::string_view text = signature;
  const std::size_t begin = text.find(' ') + 1;
  std::string operation(text.substr(begin, text.find('(') - begin));
  if (operation == "__init__") operation = "Engine";
  const auto [keyword, value] = *unknown.begin();
  refuse_type(operation.c_str(), "keyword '" + std::string(nb::str(keyword).c_str()) +
                                     "' is unknown, expected some of " + arguments_of(text));
}

}  // namespace headlight::python
