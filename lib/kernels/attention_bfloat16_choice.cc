#include "kernels/kernels.h"
#include "runtime/isa_list.h"

#define HEADLIGHT_DECLARE(name)                                      \
  namespace headlight::name {                                        \
  extern const kernels::PairAttentionKernels pair_attention_kernels; \
  }
HEADLIGHT_FOR_EACH_BFLOAT16_FEATURE(HEADLIGHT_DECLARE)

namespace headlight::kernels {

const PairAttentionKernels* pair_attention_kernels([[maybe_unused]] InstructionFeatures features) noexcept {
#define HEADLIGHT_CHOOSE(name) \
  if (features.has(InstructionFeature::name)) return &headlight::name::pair_attention_kernels;
  HEADLIGHT_FOR_EACH_BFLOAT16_FEATURE(HEADLIGHT_CHOOSE)
  return nullptr;
}

}  // namespace headlight::kernels
