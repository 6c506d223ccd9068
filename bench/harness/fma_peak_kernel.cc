// Compiled once per instruction set: the fastest that its fused multiply-adds can go. And with AVX512-BF16 and with
// VNNI: the fastest that products of pairs of bfloat16 numbers, and of fours of 8-bit integers, can.
#include "harness/fma_peak_kernel.h"

#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {
namespace {

constexpr bool kDotsPairs = kFeature.dots_bfloat16 && !kFeature.multiplies_quads;
constexpr int kProducts = kLanes * (kDotsPairs ? 2 : kFeature.dots_bytes ? 4 : 1);

// chain + factor · factor, of pairs or fours: all of one kind, and no result of use.
HEADLIGHT_INLINE Vec step_of(Vec chain, Vec factor, Vec addend) {
  if constexpr (kDotsPairs) return dot_bf16(factor, factor, chain);
  if constexpr (kFeature.dots_bytes) return as_float(dot_bytes(as_int(factor), as_int(factor), as_int(chain)));
  return fma(chain, factor, addend);
}

}  // namespace

// Two FMA pipes of four or five cycles latency need eight to ten chains in flight; twelve leave slack and, with the two
// operands, fit sixteen registers. The multiplicand is exactly 1 and the addend drives no result out of range, so no
// step can be slowed by denormals; the compiler cannot know that, and keeps every step.
extern const FmaBurst fma_burst;
const FmaBurst fma_burst = {kProducts, kFmaChains, 14'000,
                            [](std::int64_t steps, float one, float small, float* result) noexcept {
                              const Vec factor = broadcast(one);
                              const Vec addend = broadcast(small);
                              Vec chains[kFmaChains];
#pragma GCC unroll 16
                              for (int chain = 0; chain < kFmaChains; ++chain)
                                chains[chain] = broadcast(small * static_cast<float>(chain));
                              for (std::int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 16
                                for (int chain = 0; chain < kFmaChains; ++chain)
                                  chains[chain] = step_of(chains[chain], factor, addend);
                              }
                              Vec sum = zero();
#pragma GCC unroll 16
                              for (int chain = 0; chain < kFmaChains; ++chain) sum = add(sum, chains[chain]);
                              store_partial(sum, result, 1);
                            }};

}  // namespace headlight::HEADLIGHT_TARGET
