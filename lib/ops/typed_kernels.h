// Kernels for operands whose type the program learns as it runs.
#pragma once

#include "headlight/typed_view.h"
#include "kernels/kernels.h"

namespace headlight::ops {

// Those of float32, but for what touches the operands.
[[nodiscard]] inline kernels::AttentionKernels kernels_of_types(Isa isa) noexcept {
  kernels::AttentionKernels kernels = kernels::attention_kernels(isa);
  const kernels::TypedAttentionKernels& typed = kernels::typed_attention_kernels(isa);
  kernels.attend_sweep = typed.attend_sweep;
  kernels.finish = typed.finish;
  kernels.pack_keys = typed.pack_keys;
  kernels.pack_values = typed.pack_values;
  kernels.copy_rows = typed.copy_rows;
  kernels.all_finite = typed.all_finite;
  kernels.narrow_rows = typed.narrow_rows;
  return kernels;
}

// Whether rows of queries and keys, and values, can be multiplied as pairs of bfloat16.
[[nodiscard]] inline bool are_pairs_of_bfloat16(const TypedView<4>& query, const TypedView<4>& key,
                                                const TypedView<4>& value) noexcept {
  return query.type == NumberType::bfloat16 && key.type == NumberType::bfloat16 && value.type == NumberType::bfloat16 &&
         query.extent(3) % 2 == 0;
}

}  // namespace headlight::ops
