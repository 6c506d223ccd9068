// The types beside float32 that weights may be packed as.
#pragma once

#include <array>

#include "headlight/number_type.h"

namespace headlight::test {

inline constexpr std::array kNarrow = {NumberType::bfloat16, NumberType::float16, NumberType::int8, NumberType::int4};

}  // namespace headlight::test
