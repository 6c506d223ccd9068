// Compiled once per instruction set: the way through a block of C, for products of every type of number.
#include "kernels/gemm/block-inl.h"
#include "kernels/gemm/numbers.h"

namespace headlight::HEADLIGHT_TARGET {

void gemm_block(const kernels::GemmNumbers& numbers, const GemmBlock& block) noexcept { compute_block(numbers, block); }
std::int64_t gemm_scratch_floats(const kernels::GemmNumbers& numbers, const GemmBlock& block) noexcept {
  return Plan<kernels::GemmNumbers>(numbers, block).scratch_floats();
}

}  // namespace headlight::HEADLIGHT_TARGET
