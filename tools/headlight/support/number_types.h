// The types of numbers that products multiply in, for options and for what is said of them.
#pragma once

#include <string>
#include <vector>

#include "headlight/engine.h"
#include "headlight/number_type.h"

namespace headlight::program {

// "float32" first.
[[nodiscard]] std::vector<NumberType> product_types();
[[nodiscard]] std::vector<std::string> product_type_names();

// What an engine multiplies numbers of that type with: "avx512_bf16", where its instruction set has a feature for that,
// else the set itself, in which they are "widened to float32 on avx2".
[[nodiscard]] std::string instructions_of(const Engine& engine, NumberType type);

}  // namespace headlight::program
