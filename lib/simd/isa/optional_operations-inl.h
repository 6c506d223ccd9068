// Operations that not every target has, declared for all of them, so that code behind `if constexpr` on a value of
// kValues or kFeature may name them. A set or a feature that has them defines them. simd/vector-inl.h says what they
// compute.
#pragma once

#include <cstdint>

#include "simd/vector_library-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// kLanes > 1
Vec swap_pairs(Vec v);
Vec first_of_pairs(Vec v);
Vec second_of_pairs(Vec v);

// kValues.interleaves_bytes
IntVec interleave_lower_bytes(IntVec a, IntVec b);
IntVec interleave_upper_bytes(IntVec a, IntVec b);

// kFeature.dots_bytes
IntVec dot_bytes(IntVec a, IntVec b, IntVec sum);
void store_u8_crossed(IntVec v, std::uint8_t* to);

// kFeature.dots_bfloat16
Vec dot_bf16(Vec a, Vec b, Vec sum);
Vec narrow_to_bf16(Vec first, Vec second);

// kFeature.clears_subnormal
Vec pair_to_bf16(Vec first, Vec second);

// kFeature.stores_normal_bfloat16
bool store_normal_bf16(Vec v, std::uint16_t* to);

// kFeature.multiplies_quads
IntVec multiply_quads_of_bytes(IntVec a, IntVec b, IntVec sum);
Vec multiply_quads_of_bf16(Vec a, Vec b, Vec sum);
Vec load_two_of_each(const float* first, const float* second);
Vec lower_halves(Vec a, Vec b);
Vec upper_halves(Vec a, Vec b);
Vec interleave_lower(Vec a, Vec b);
Vec interleave_upper(Vec a, Vec b);
Vec in_order(Vec sum);

}  // namespace headlight::HEADLIGHT_TARGET
