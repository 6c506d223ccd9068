// The types of numbers that products and layers multiply in, for options and for what is said of them.
#pragma once

#include <string>
#include <vector>

#include "headlight/engine.h"
#include "headlight/number_type.h"

namespace headlight::program {

// What B of a product may be packed as, and what the products of layers and models multiply in. "float32" first.
[[nodiscard]] std::vector<NumberType> product_types();
[[nodiscard]] std::vector<NumberType> layer_types();
[[nodiscard]] std::vector<std::string> layer_type_names();

// What an engine multiplies a B of that type with: the feature "avx512_bf16", where it has one for that, else its
// instruction set, for which it is "widened to float32 on avx2".
[[nodiscard]] std::string instructions_of(const Engine& engine, NumberType type);

}  // namespace headlight::program
