// Ways to combine heads: MultiHeadAttentionOptions and AttentionSpec name one.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "headlight/export.h"

namespace headlight {

// How the H heads, each [N, D], become one representation again. x is what the queries are projected from.
enum class Merge : std::uint8_t {
  concatenate,        // Concat(head_1 … head_H) W_Oᵀ (Vaswani et al. 2017)
  average,            // (Σ_h head_h / H) W_upᵀ
  weighted,           // (Σ_h α_h head_h) W_upᵀ, α = softmax(a), a learned
  weighted_by_input,  // the same, a = x W_aᵀ for each token
  gated_by_head,      // Concat(g_h head_h) W_Oᵀ, g = σ(x W_gᵀ): one gate a head
  gated_by_element    // Concat(g_h ∘ head_h) W_Oᵀ: one gate an element (Qiu et al. 2025)
};

// "concatenate", "weighted-by-input"; and back.
[[nodiscard]] HEADLIGHT_API std::string_view name(Merge merge) noexcept;
[[nodiscard]] HEADLIGHT_API std::optional<Merge> parse_merge(std::string_view name) noexcept;

}  // namespace headlight
