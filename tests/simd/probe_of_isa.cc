// Compiled once for each instruction set, which HEADLIGHT_TEST_ISA names.
#include "simd/probe_of_isa.h"

namespace headlight::HEADLIGHT_TEST_ISA {
extern const test::VectorProbe vector_probe;
}

namespace headlight::test {

Isa probed_isa() { return Isa::HEADLIGHT_TEST_ISA; }
const VectorProbe& probe() { return HEADLIGHT_TEST_ISA::vector_probe; }

}  // namespace headlight::test
