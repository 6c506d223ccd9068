// Scores of a few rows against keys of int8, which memory gives four times as fast as floats. A score is a chain of
// multiply-adds, each of which waits for the last one: so several vectors of keys are scored together, and their
// numbers are turned as bytes, sixteen keys at a time, before they are widened.
#pragma once

#include "kernels/attention/sweep_tile-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// Vectors of keys that are scored together, and for how many rows at most: those of more hide each other's latency.
inline constexpr int kKeyVectors = 4;
inline constexpr int kRowsOfKeyVectors = 2;
inline constexpr int kKeysTogether = kKeyVectors * kLanes;

// SweepScores of kKeysTogether keys and at most kRowsOfKeyVectors rows. Where kValues.interleaves_bytes.
void score_keys_together(const SweepScores<StoredInt8>& tile) noexcept;

}  // namespace headlight::HEADLIGHT_TARGET
