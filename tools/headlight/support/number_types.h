// The types of numbers that products and layers multiply in, for options and for what is said of them.
#pragma once

#include <string>
#include <vector>

#include "headlight/engine.h"
#include "headlight/number_type.h"

namespace headlight::program {

// Of kNumberTypes, "float32" first.
[[nodiscard]] std::vector<std::string> number_type_names();

// What an engine multiplies a B of that type with: the feature "avx512_bf16", where it has one for that, else its
// instruction set, for which it is "widened to float32 on avx2".
[[nodiscard]] std::string instructions_of(const Engine& engine, NumberType type);

// What keys and values of attention may be, and what an engine multiplies them with; queries may be the same but int8.
[[nodiscard]] std::vector<NumberType> cache_types();
[[nodiscard]] std::string attention_instructions_of(const Engine& engine, NumberType type);

}  // namespace headlight::program
