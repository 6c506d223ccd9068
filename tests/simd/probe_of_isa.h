// The instruction set that a test program is for, and its probe.
#pragma once

#include "headlight/engine.h"
#include "simd/vector_probe.h"

namespace headlight::test {

[[nodiscard]] Isa probed_isa();
[[nodiscard]] const VectorProbe& probe();

}  // namespace headlight::test
