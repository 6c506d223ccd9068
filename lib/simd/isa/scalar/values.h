// Plain C++.
#pragma once

#include "simd/isa/values.h"

namespace headlight::HEADLIGHT_TARGET {

// Tiles are small: it is there for machines without vectors, and code that they alone would miss.
inline constexpr Values kValues = {};

}  // namespace headlight::HEADLIGHT_TARGET
