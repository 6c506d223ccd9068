// Rotary position embeddings: which angle each pair of a head's numbers is turned by.
#pragma once

#include <cstdint>
#include <vector>

namespace headlight {

// Which two of the first `dims` numbers of a head, i in [0, dims / 2), are turned together.
enum class RotaryPairing : std::uint8_t {
  halves,       // (i, i + dims / 2): Llama, GPT-NeoX and most published files
  interleaved,  // (2i, 2i + 1): GPT-J, the original Llama
};

// How the angles are changed for sequences longer than those of training. θ_i = base^(−2i/dims), wavelength 2π / θ_i.
enum class RotaryScalingKind : std::uint8_t {
  none,
  linear,        // θ_i / factor
  dynamic,       // of a sequence of n > original_length tokens: base · (factor · n / original_length − (factor −
                 // 1))^(dims / (dims − 2)) for base
  llama3,        // θ_i / factor for long wavelengths, θ_i for short ones, a blend between (Llama 3.1, 2024)
  yarn,          // the same by the number of turns in original_length; cos and sin by a factor (Peng et al. 2023)
  longrope,      // θ_i / short_factors[i], or long_factors[i] for a sequence of more than original_length tokens; cos
                 // and sin by a factor (Ding et al. 2024)
  proportional,  // θ_i = base^(−2i/head_dim) / factor for the first dims of head_dim (Gemma)
};

struct RotaryScaling {
  RotaryScalingKind kind = RotaryScalingKind::none;
  double factor = 1;
  // Positions of training.
  std::int64_t original_length = 0;
  // llama3: wavelengths above original_length / low_frequency_factor are long, below original_length /
  // high_frequency_factor short.
  double low_frequency_factor = 1;
  double high_frequency_factor = 4;
  // yarn: pairs that turn more than fast_turns times in original_length keep θ_i, fewer than slow_turns take θ_i /
  // factor; whether the numbers of those pairs are rounded to whole ones.
  double fast_turns = 32;
  double slow_turns = 1;
  bool whole_pairs = true;
  // yarn, longrope: cos and sin are multiplied by it; 0: 0.1 · ln(factor) + 1 (yarn), √(1 + ln(factor) /
  // ln(original_length)) (longrope).
  double attention_factor = 0;
  // longrope: [dims / 2] each.
  std::vector<double> short_factors{};
  std::vector<double> long_factors{};

  friend bool operator==(const RotaryScaling&, const RotaryScaling&) = default;
};

// A row at position p has the pair (a, b) of each head turned by p · θ_i: (a cos − b sin, a sin + b cos). (Su et al.
// 2021)
struct RotarySpec {
  // Numbers of a head that are turned, from the first on; even. 0: none.
  std::int64_t dims = 0;
  RotaryPairing pairing = RotaryPairing::halves;
  double base = 10000;
  RotaryScaling scaling{};

  friend bool operator==(const RotarySpec&, const RotarySpec&) = default;
};

}  // namespace headlight
