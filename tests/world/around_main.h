// Results that objects of static storage compute before main() and after it.
#pragma once

#include <vector>

namespace headlight::world {

// Attention by an engine of two workers, a layer, and (where there are models) ids of a text: a little of each library.
std::vector<float> results();

// What results() gave while the objects of other translation units were not constructed yet.
const std::vector<float>& results_before_main();

}  // namespace headlight::world
