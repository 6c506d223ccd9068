// The operands of a random case of attention, each stored in the type that the case has for it.
#pragma once

#include "headlight/engine.h"
#include "support/attention_case.h"
#include "support/stored.h"

namespace headlight::test {

struct TypedOperands {
  TypedOperands(const AttentionCase& c, const AttentionInputs& in)
      : query(c.types[0], in.query), key(c.types[1], in.key), value(c.types[2], in.value) {}
  Stored query, key, value;
};

// Whether the engine multiplies pairs of bfloat16 in such a call.
[[nodiscard]] inline bool multiplies_pairs(const Engine& engine, const AttentionCase& c) {
  for (std::size_t operand = 0; operand < 3; ++operand) {
    if (c.types[operand] != NumberType::bfloat16) return false;
  }
  return engine.features().has(InstructionFeature::avx512_bf16) && c.head_dim % 2 == 0;
}

// Rows first … first + count − 1.
template <class AnyView>
[[nodiscard]] AnyView part(AnyView view, std::int64_t first, std::int64_t count) {
  view.data =
      static_cast<std::byte*>(view.data) + static_cast<std::size_t>(first * view.stride(1)) * bytes_of(view.type);
  view.shape[1] = count;
  return view;
}

}  // namespace headlight::test
