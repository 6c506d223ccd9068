#include "kernels/kernels.h"

#include "runtime/isa_list.h"

#define HEADLIGHT_DECLARE(isa)                              \
  namespace headlight::isa {                                \
  extern const kernels::GemmKernels gemm_kernels;           \
  extern const kernels::AttentionKernels attention_kernels; \
  extern const kernels::RowKernels row_kernels;             \
  }
HEADLIGHT_FOR_EACH_ISA(HEADLIGHT_DECLARE)
#undef HEADLIGHT_DECLARE

namespace headlight::kernels {

const Table& table(Isa isa) noexcept {
  switch (isa) {
#define HEADLIGHT_CASE(name)                                                                              \
  case Isa::name: {                                                                                       \
    static constexpr Table tables = {&headlight::name::gemm_kernels, &headlight::name::attention_kernels, \
                                     &headlight::name::row_kernels};                                      \
    return tables;                                                                                        \
  }
    HEADLIGHT_FOR_EACH_ISA(HEADLIGHT_CASE)
#undef HEADLIGHT_CASE
    default:
      break;
  }
  __builtin_unreachable();
}

}  // namespace headlight::kernels
