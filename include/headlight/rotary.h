// Rotary position embeddings: which angle each pair of a head's numbers is turned by, and turning it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headlight/engine.h"
#include "headlight/export.h"
#include "headlight/typed_view.h"
#include "headlight/view.h"

namespace headlight {

// Which two of the first `dims` numbers of a head, i in [0, dims / 2), are turned together.
enum class RotaryPairing : std::uint8_t {
  halves,       // (i, i + dims / 2): Llama, GPT-NeoX and most published files
  interleaved,  // (2i, 2i + 1): GPT-J, the original Llama
};

// How the angles are changed for sequences longer than those of training. θ_i = base^(−2i/dims), wavelength 2π / θ_i.
// A sequence of n tokens is one whose largest position is n − 1.
enum class RotaryScalingKind : std::uint8_t {
  none,
  linear,        // θ_i / factor
  dynamic,       // of a sequence of n > original_length tokens: base · (factor · n / original_length − (factor −
                 // 1))^(dims / (dims − 2)) for base
  llama3,        // θ_i / factor for long wavelengths, θ_i for short ones, a blend between (Llama 3.1, 2024)
  yarn,          // the same by the number of turns in original_length; cos and sin by a factor (Peng et al. 2023)
  longrope,      // θ_i / short_factors[i], or long_factors[i] for a sequence of more than original_length tokens; cos
                 // and sin by a factor (Ding et al. 2024)
  proportional,  // θ_i = base^(−2i/head_dim) / factor for i < dims / 2 and 0 behind: pairs are those of head_dim
                 // numbers (Gemma)
};

// The numbers that a kind of scaling asks for; it reads no others.
struct RotaryScaling {
  RotaryScalingKind kind = RotaryScalingKind::none;  // which one
  double factor = 1;                                 // by how much sequences are longer
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
  // ln(original_length)) (longrope), of a factor up to 1: 1.
  double attention_factor = 0;
  // longrope: [dims / 2] each.
  std::vector<double> short_factors{};
  std::vector<double> long_factors{};

  // Whether all fields are equal.
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

  // Whether all fields are equal.
  friend bool operator==(const RotarySpec&, const RotarySpec&) = default;
};

// How many numbers of a head of head_dim are turned: dims, or, with RotaryScalingKind::proportional, head_dim.
[[nodiscard]] HEADLIGHT_API std::int64_t rotary_columns(const RotarySpec& spec, std::int64_t head_dim) noexcept;

// cosines_and_sines [N, rotary_columns()], of one table for all heads and all layers of a spec: row t has cos and sin
// of p_t · θ_i, in the order of Rotation. Rows offsets[s] … offsets[s+1] − 1 are a sequence (offsets [n + 1] ascending
// from 0 to N), and what depends on a length depends on that of a row's own sequence. positions [N], each 0 to 2⁵³ − 1.
// Computed in float64 and rounded once. Throws std::invalid_argument for a spec that is none, naming its field.
HEADLIGHT_API void rotary_angles(Engine& engine, const RotarySpec& spec, std::int64_t head_dim,
                                 std::span<const std::int64_t> positions, std::span<const std::int64_t> offsets,
                                 View<float, 2> cosines_and_sines);

// By which angles the rows of a tensor are turned.
struct Rotation {
  // [N, dims], dims even and at most D, a row for each row of the tensor. halves: the cos of all pairs and then their
  // sin; interleaved: cos and sin of each pair in turn.
  View<const float, 2> cosines_and_sines{};
  RotaryPairing pairing = RotaryPairing::halves;
};

// y = x with the first dims numbers of each head turned; x, y [N, H, D] (head_rows.h, which also normalises heads on
// the way), y may be x. `inverse`: turned back, which is the gradient by x of a sum whose gradient by y is given as x.
HEADLIGHT_API void rotate(Engine& engine, const Rotation& rotation, const TypedView<3>& x, const MutableTypedView<3>& y,
                          bool inverse = false);

}  // namespace headlight
