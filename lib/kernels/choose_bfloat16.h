// Defines `const HEADLIGHT_TYPE* HEADLIGHT_FAMILY(InstructionFeatures)` of kernels.h, for a family that only features
// which multiply bfloat16 have, those with tile registers first. One file includes it for each family.
#include "kernels/kernels.h"
#include "runtime/isa_list.h"

#define HEADLIGHT_DECLARE(name)                          \
  namespace headlight::name {                            \
  extern const kernels::HEADLIGHT_TYPE HEADLIGHT_FAMILY; \
  }
HEADLIGHT_FOR_EACH_BFLOAT16_TILES_FEATURE(HEADLIGHT_DECLARE)
HEADLIGHT_FOR_EACH_BFLOAT16_FEATURE(HEADLIGHT_DECLARE)

namespace headlight::kernels {

const HEADLIGHT_TYPE* HEADLIGHT_FAMILY([[maybe_unused]] InstructionFeatures features) noexcept {
#define HEADLIGHT_CHOOSE(name) \
  if (features.has(InstructionFeature::name)) return &headlight::name::HEADLIGHT_FAMILY;
  HEADLIGHT_FOR_EACH_BFLOAT16_TILES_FEATURE(HEADLIGHT_CHOOSE)
  HEADLIGHT_FOR_EACH_BFLOAT16_FEATURE(HEADLIGHT_CHOOSE)
  return nullptr;
}

}  // namespace headlight::kernels
