// What every target shares. A target is an instruction set, or one with a feature: its name is HEADLIGHT_TARGET, that
// of the set HEADLIGHT_SET, and it begins with HEADLIGHT_TARGET_HEADER, a file of the set's folder in simd/isa/.
#pragma once

#define HEADLIGHT_INLINE inline __attribute__((always_inline))

namespace headlight::HEADLIGHT_TARGET {

alignas(64) inline constexpr float kLaneIndices[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

alignas(64) inline constexpr float kAlternatingSigns[16] = {-1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1};

inline constexpr float kInfinity = __builtin_inff();

// Adding 1.5·2²³ to a float |v| ≤ 2²² rounds it to the nearest integer (ties to even) and leaves that integer in the
// low bits, to be read or shifted without a conversion.
inline constexpr float kRoundingOffset = 0x1.8p23f;

}  // namespace headlight::HEADLIGHT_TARGET
