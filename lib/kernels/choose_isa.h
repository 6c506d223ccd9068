// Defines `const HEADLIGHT_TYPE& HEADLIGHT_FAMILY(Isa)` of kernels.h from the tables that the objects of each
// instruction set hold. One file includes it for each family.
#include "kernels/kernels.h"
#include "runtime/isa_list.h"

#define HEADLIGHT_DECLARE(isa)                           \
  namespace headlight::isa {                             \
  extern const kernels::HEADLIGHT_TYPE HEADLIGHT_FAMILY; \
  }
HEADLIGHT_FOR_EACH_ISA(HEADLIGHT_DECLARE)

namespace headlight::kernels {

const HEADLIGHT_TYPE& HEADLIGHT_FAMILY(Isa isa) noexcept {
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
