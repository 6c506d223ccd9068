// What values of options are looked at before anything is done with them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace headlight::program {

// What a text should have been, "1 to 4096"; empty where it is right.
using Validator = std::function<std::string(const std::string& text)>;

// Whole numbers from `least` to `most`, both included.
[[nodiscard]] Validator between(std::int64_t least, std::int64_t most);
// Whole numbers from `least` on.
[[nodiscard]] Validator at_least(std::int64_t least);
[[nodiscard]] Validator between_real(double least, double most);
// Numbers from 0 to below 1: weights that are dropped with probability 1 are none.
[[nodiscard]] Validator below_one();
[[nodiscard]] Validator one_of(std::vector<std::string> names);
// "concatenate|average|…", as help lists those names.
[[nodiscard]] std::string alternatives(const std::vector<std::string>& names);
[[nodiscard]] Validator one_of_numbers(std::vector<std::int64_t> numbers);

// Not empty: that comes from a variable that was not set, and must not pass for an option that was not given.
[[nodiscard]] Validator file_name();

// The same for a file that is written by name alone: "-" is no name, though it stands for standard output elsewhere.
[[nodiscard]] Validator output_name();

// A name without the ending of another kind of file, be it no ending at all: `written` is what there will be, "an SVG
// picture".
[[nodiscard]] Validator ends_in(const std::string& ending, const std::string& written);

// How a message calls it: "empty", a number as it is, any other text in quotes.
[[nodiscard]] std::string value_text(const std::string& text);

// Throws UsageError: "NAME is TEXT, expected EXPECTED".
[[noreturn]] void refuse_value(const std::string& name, const std::string& text, const std::string& expected);

}  // namespace headlight::program
