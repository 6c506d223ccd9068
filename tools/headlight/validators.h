// What values of options are looked at before anything is done with them.
#pragma once

#include "tools/headlight/command.h"

namespace headlight::program {

// Not empty: that comes from a variable that was not set, and must not pass for an option that was not given.
[[nodiscard]] Validator file_name();

// The same for a file that is written by name alone: "-" is no name, though it stands for standard output elsewhere.
[[nodiscard]] Validator output_name();

// A whole number from 0 to 2⁶⁴ − 1. CLI11 alone takes −1 and numbers beyond for others.
[[nodiscard]] Validator whole_number();

}  // namespace headlight::program
