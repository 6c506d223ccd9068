// Defines `const HEADLIGHT_TYPE& HEADLIGHT_FAMILY(Isa)` of kernels.h from the tables that the objects of each
// instruction set hold. One file includes it for each family. With HEADLIGHT_FEATURES, a list of isa_list.h, the
// family is compiled for those features, too, and the function takes those in use: the table of the first of them
// stands in for that of its set.
#include "kernels/kernels.h"
#include "runtime/isa_list.h"

#define HEADLIGHT_DECLARE(isa)                           \
  namespace headlight::isa {                             \
  extern const kernels::HEADLIGHT_TYPE HEADLIGHT_FAMILY; \
  }
HEADLIGHT_FOR_EACH_ISA(HEADLIGHT_DECLARE)
#if defined(HEADLIGHT_FEATURES)
HEADLIGHT_FEATURES(HEADLIGHT_DECLARE)
#endif

namespace headlight::kernels {

#if defined(HEADLIGHT_FEATURES)
const HEADLIGHT_TYPE& HEADLIGHT_FAMILY(Isa isa, [[maybe_unused]] InstructionFeatures features) noexcept {
#define HEADLIGHT_OVERRIDE(name) \
  if (features.has(InstructionFeature::name)) return headlight::name::HEADLIGHT_FAMILY;
  HEADLIGHT_FEATURES(HEADLIGHT_OVERRIDE)
#else
const HEADLIGHT_TYPE& HEADLIGHT_FAMILY(Isa isa) noexcept {
#endif
  switch (isa) {
#define HEADLIGHT_CASE(name) \
  case Isa::name:            \
    return headlight::name::HEADLIGHT_FAMILY;
    HEADLIGHT_FOR_EACH_ISA(HEADLIGHT_CASE)
    default:
      break;
  }
  __builtin_unreachable();
}

}  // namespace headlight::kernels
