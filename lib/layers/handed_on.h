// What type of number a layer hands on from a product to whoever reads the result.
#pragma once

#include "headlight/engine.h"
#include "headlight/number_type.h"
#include "kernels/kernels.h"
#include "ops/gemm/internal.h"

namespace headlight::layers {

// From a product in type `from` to attention, or to a product in type `to` alone.
//
// bfloat16 where the engine multiplies pairs of such numbers. Attention is then faster, and a product of bfloat16 reads
// what it would else have to round, to the same bits. Products of int8 and int4 take their numbers from float32, not to
// round twice.
//
// Without such instructions float32: attention over bfloat16 widens it, and takes as long as over float32. And float32
// from a product that rounds weights alone: whoever chose float16 wants no bfloat16.
inline NumberType handed_to_attention(const Engine& engine, NumberType from) noexcept {
  const bool pairs = kernels::pair_attention_kernels(engine.features()) != nullptr;
  return pairs && ops::takes_narrow_a(from) ? NumberType::bfloat16 : NumberType::float32;
}
inline NumberType handed_to_product(const Engine& engine, NumberType from, NumberType to) noexcept {
  return to == NumberType::bfloat16 ? handed_to_attention(engine, from) : NumberType::float32;
}

}  // namespace headlight::layers
