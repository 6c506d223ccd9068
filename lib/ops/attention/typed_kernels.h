// Kernels for operands whose type the program learns as it runs.
#pragma once

#include "headlight/engine.h"
#include "headlight/typed_view.h"
#include "kernels/kernels.h"
#include "runtime/built_types.h"

namespace headlight::ops {

// Whether rows of queries and keys, and values, can be multiplied as pairs of bfloat16.
[[nodiscard]] inline bool are_pairs_of_bfloat16(const TypedView<4>& query, const TypedView<4>& key,
                                                const TypedView<4>& value) noexcept {
  return query.type == NumberType::bfloat16 && key.type == NumberType::bfloat16 && value.type == NumberType::bfloat16 &&
         query.extent(3) % 2 == 0;
}

// Those of operands of these types: where all are pairs of bfloat16, the kernels that multiply such, if the engine has
// them.
[[nodiscard]] inline const kernels::AttentionKernels& kernels_of_types(const Engine& engine, const TypedView<4>& query,
                                                                       const TypedView<4>& key,
                                                                       const TypedView<4>& value) noexcept {
  const kernels::AttentionKernels* const pairs =
      are_pairs_of_bfloat16(query, key, value) ? kernels::pair_attention_kernels(engine.features()) : nullptr;
  if (pairs != nullptr) return *pairs;
  if constexpr (runtime::kBuildsTypedAttention) return kernels::typed_attention_kernels(engine.isa()).attention;
  return kernels::attention_kernels(engine.isa());
}

}  // namespace headlight::ops
