// A failing case made small.
#pragma once

#include <functional>
#include <string>

#include "sweep/fields.h"

namespace headlight::sweep {

// Of lines: whether the case still fails.
using Fails = std::function<bool(const std::string& line)>;

// The line of a case that fails, too, with fewer words and smaller numbers: none of the cases that lack one word more,
// or have one number halved, lessened by one, or made 0 or 1, fails. The seed and the machine stay. Stops after
// `most_tries` cases.
[[nodiscard]] std::string minimised(const std::string& line, const Fails& fails, int most_tries = 3000);

}  // namespace headlight::sweep
