// The types of numbers that products and layers multiply in, for options and for what is said of them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "headlight/engine.h"
#include "headlight/number_type.h"
#include "tools/headlight/support/command.h"

namespace headlight::program {

// The option's value is the name of one of these types, or a short one ("bf16"): what parse_number_type() reads. Help
// and messages list the names.
void take_number_type(Option option, std::span<const NumberType> types);

// What an engine multiplies a B of that type with: the feature "avx512_bf16", where it has one for that, else its
// instruction set, for which it is "widened to float32 on avx2".
[[nodiscard]] std::string instructions_of(const Engine& engine, NumberType type);

// What keys and values of attention may be, and what an engine multiplies them with; queries may be the same but int8.
[[nodiscard]] std::vector<NumberType> cache_types();
[[nodiscard]] std::string attention_instructions_of(const Engine& engine, NumberType type);

}  // namespace headlight::program
