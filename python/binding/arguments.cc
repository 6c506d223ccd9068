#include "arguments.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "errors.h"

namespace headlight::python {
namespace {

struct Parameter {
  std::string_view name;
  bool by_position;
  bool is_required;
};

struct Signature {
  std::string operation;
  bool is_method = false;
  std::vector<Parameter> parameters;  // without self
};

Signature signature_of(std::string_view text) {
  const std::size_t begin = text.find(' ') + 1, open = text.find('(');
  Signature signature;
  signature.operation = text.substr(begin, open - begin);
  if (signature.operation == "__init__") signature.operation = "Engine";
  bool by_position = true;
  int depth = 0;
  std::size_t from = open + 1;
  for (std::size_t at = open; at < text.size(); ++at) {
    if (text[at] == '(' || text[at] == '[') ++depth;
    if (text[at] == ')' || text[at] == ']') --depth;
    if (depth > 1 || (depth == 1 && text[at] != ',')) continue;
    std::string_view one = text.substr(from, at - from);
    from = at + 1;
    one.remove_prefix(std::min(one.find_first_not_of(' '), one.size()));
    if (one == "*") {
      by_position = false;
    } else if (one == "self") {
      signature.is_method = true;
    } else if (!one.empty()) {
      signature.parameters.push_back({one.substr(0, one.find(':')), by_position, one.find('=') == one.npos});
    }
    if (depth == 0) break;
  }
  return signature;
}

// The names of those that fit, "query, key, value".
template <class Fits>
std::string names_of(const Signature& signature, const Fits& fits) {
  std::string names;
  for (const Parameter& one : signature.parameters) {
    if (fits(one)) names += (names.empty() ? "" : ", ") + std::string(one.name);
  }
  return names;
}

}  // namespace

void refuse_call(const char* text, const nb::args& given, const nb::kwargs& named) {
  const Signature signature = signature_of(text);
  const auto refuse = [&](const std::string& message) { refuse_type(signature.operation.c_str(), message); };
  const std::vector<Parameter>& parameters = signature.parameters;

  for (const auto& [keyword, value] : named) {
    const std::string name = nb::str(keyword).c_str();
    const auto is_it = [&](const Parameter& one) { return one.name == name; };
    if (std::any_of(parameters.begin(), parameters.end(), is_it)) continue;
    refuse("keyword '" + name + "' is unknown, expected some of " +
           names_of(signature, [](const Parameter&) { return true; }));
  }

  const auto by_position = [](const Parameter& one) { return one.by_position; };
  const auto most = static_cast<std::size_t>(std::count_if(parameters.begin(), parameters.end(), by_position));
  const std::size_t self = signature.is_method && given.size() > 0 ? 1 : 0, count = given.size() - self;
  if (count > most) {
    refuse(std::to_string(count) + (count == 1 ? " argument is" : " arguments are") + " given by position, expected " +
           (most == 0 ? "none" : "at most " + std::to_string(most) + ": " + names_of(signature, by_position)));
  }
  for (std::size_t number = 0; number < parameters.size(); ++number) {
    const Parameter& one = parameters[number];
    const std::string name(one.name);
    const bool is_named = named.contains(name.c_str());
    if (number < count && is_named) refuse(name + " is given by position and by its name, expected once");
    if (number < count || is_named || !one.is_required) continue;
    refuse(name + " is missing, expected " +
           names_of(signature, [](const Parameter& each) { return each.is_required; }));
  }
  refuse_type(signature.operation.c_str(),
              "is called on " + (self == 0 ? "nothing" : kind_of(given[0])) + ", which has no such method");
}

}  // namespace headlight::python
