// Kernels for operands whose type the program learns as it runs.
#pragma once

#include "headlight/engine.h"
#include "headlight/typed_view.h"
#include "kernels/kernels.h"
#include "runtime/built_types.h"

namespace headlight::ops {

// Those of float32, but for what touches the operands.
[[nodiscard]] inline kernels::AttentionKernels kernels_of_types(Isa isa) noexcept {
  kernels::AttentionKernels kernels = kernels::attention_kernels(isa);
  if constexpr (runtime::kBuildsTypedAttention) {
    const kernels::TypedAttentionKernels& typed = kernels::typed_attention_kernels(isa);
    kernels.attend_sweep = typed.attend_sweep;
    kernels.finish = typed.finish;
    kernels.pack_keys = typed.pack_keys;
    kernels.pack_values = typed.pack_values;
    kernels.copy_rows = typed.copy_rows;
    kernels.all_finite = typed.all_finite;
    kernels.narrow_rows = typed.narrow_rows;
  }
  return kernels;
}

// Whether rows of queries and keys, and values, can be multiplied as pairs of bfloat16.
[[nodiscard]] inline bool are_pairs_of_bfloat16(const TypedView<4>& query, const TypedView<4>& key,
                                                const TypedView<4>& value) noexcept {
  return query.type == NumberType::bfloat16 && key.type == NumberType::bfloat16 && value.type == NumberType::bfloat16 &&
         query.extent(3) % 2 == 0;
}

// Those of operands of these types: where all are pairs of bfloat16, the kernels that multiply such, if the engine has
// them.
[[nodiscard]] inline kernels::AttentionKernels kernels_of_types(const Engine& engine, const TypedView<4>& query,
                                                                const TypedView<4>& key,
                                                                const TypedView<4>& value) noexcept {
  kernels::AttentionKernels kernels = kernels_of_types(engine.isa());
  const kernels::PairAttentionKernels* const pairs =
      are_pairs_of_bfloat16(query, key, value) ? kernels::pair_attention_kernels(engine.features()) : nullptr;
  if (pairs == nullptr) return kernels;
  kernels.numbers_of_word = 2;
  kernels.attend_block = pairs->attend_block;
  kernels.attend_sweep = pairs->attend_sweep;
  kernels.attend_short = pairs->attend_short;
  kernels.probability_tile = pairs->probability_tile;
  kernels.score_tile = pairs->score_tile;
  kernels.pack_keys = pairs->pack_keys;
  kernels.pack_values = pairs->pack_values;
  kernels.copy_rows = pairs->copy_rows;
  return kernels;
}

}  // namespace headlight::ops
