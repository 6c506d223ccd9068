// Plain C++.
#pragma once

#include "simd/isa/values.h"

namespace headlight::HEADLIGHT_TARGET {

// Tiles are small: larger ones would be code that only machines without vectors run.
inline constexpr Values kValues = {};

}  // namespace headlight::HEADLIGHT_TARGET
