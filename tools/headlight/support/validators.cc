#include "tools/headlight/support/validators.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <limits>
#include <utility>

#include "headlight/models/errors.h"
#include "tools/headlight/support/number_parse.h"
#include "tools/headlight/support/number_text.h"
#include "tools/headlight/support/process.h"

namespace headlight::program {
namespace {

// "a, b or c"
std::string in_one(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t n = 0; n < names.size(); ++n)
    text += (n == 0 ? "" : n + 1 == names.size() ? " or " : ", ") + names[n];
  return text;
}

// Of numbers that are too large to be held.
std::string most_text() { return "at most " + std::to_string(std::numeric_limits<std::int64_t>::max()); }

// A number of any size, so that it needs no quotes in a message.
bool is_number(const std::string& text) {
  const auto is_digit = [](char letter) { return letter >= '0' && letter <= '9'; };
  const std::size_t first = text.starts_with('-') ? 1 : 0;
  return parse_number<double>(text) ||
         (first < text.size() && text.size() < 40 &&
          std::all_of(text.begin() + static_cast<std::ptrdiff_t>(first), text.end(), is_digit));
}

}  // namespace

Validator between(std::int64_t least, std::int64_t most) {
  return [least, most](const std::string& text) {
    const auto number = parse_number<std::int64_t>(text);
    if (number && *number >= least && *number <= most) return std::string();
    return std::to_string(least) + " to " + std::to_string(most);
  };
}

Validator at_least(std::int64_t least) {
  return [least](const std::string& text) {
    if (is_too_large<std::int64_t>(text)) return most_text();
    const auto number = parse_number<std::int64_t>(text);
    return number && *number >= least ? "" : "a whole number, at least " + std::to_string(least);
  };
}

Validator between_real(double least, double most) {
  return [least, most](const std::string& text) {
    const auto number = parse_number<double>(text);
    return number && *number >= least && *number <= most ? "" : format("a number from %g to %g", least, most);
  };
}

Validator below_one() {
  return [](const std::string& text) {
    const auto number = parse_number<float>(text);
    return number && *number >= 0 && *number < 1 ? "" : "a number from 0 to less than 1";
  };
}

std::string alternatives(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : "|") + name;
  return text;
}

Validator one_of(std::vector<std::string> names) {
  return [names = std::move(names)](const std::string& text) {
    return std::find(names.begin(), names.end(), text) != names.end() ? std::string() : in_one(names);
  };
}

Validator one_of_numbers(std::vector<std::int64_t> numbers) {
  std::vector<std::string> names;
  for (const std::int64_t number : numbers) names.push_back(std::to_string(number));
  return one_of(std::move(names));
}

Validator file_name() {
  return [](const std::string& name) { return name.empty() ? "a name" : ""; };
}

Validator output_name() {
  return [](const std::string& name) { return name.empty() ? "a name" : name == "-" ? "the name of a file" : ""; };
}

Validator ends_in(const std::string& ending, const std::string& written) {
  return [ending, written](const std::string& name) -> std::string {
    static const std::vector<std::string> known{".png", ".jpg", ".jpeg", ".gif",  ".webp", ".bmp", ".tif",  ".tiff",
                                                ".pdf", ".eps", ".ps",   ".html", ".htm",  ".svg", ".json", ".npy"};
    std::string own = std::filesystem::path(name).extension().string();
    for (char& letter : own) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    const bool other = std::find(known.begin(), known.end(), own) != known.end() && !ending.starts_with(own);
    return other ? "a name that ends in " + ending + ": what is written is " + written : "";
  };
}

std::string value_text(const std::string& text) {
  return text.empty() ? "empty" : is_number(text) ? text : models::in_quotes(text);
}

void refuse_value(const std::string& name, const std::string& text, const std::string& expected) {
  throw UsageError(name + " is " + value_text(text) + ", expected " + expected);
}

}  // namespace headlight::program
