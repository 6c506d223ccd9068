// Refusals of the engine in the words of headlight attend.
#pragma once

#include <string>
#include <string_view>

namespace headlight::program {

// What attention() and its backward pass say of an argument, with the name of the option that it comes from:
// "attention: sinks has 3 entries, expected Hq = 4" → "--sinks has 3 entries, expected Hq = 4". What begins otherwise
// stays as it is.
[[nodiscard]] std::string in_names_of_options(std::string_view message);

}  // namespace headlight::program
