// Random numbers that fill tensors: each a function of seed, stream and place, so neither the number of threads nor the
// order of filling matters.
#pragma once

#include <cstdint>
#include <span>

namespace headlight::runtime {

// Both take words from Philox4x32-10 with the seed as key and the counter
//   (low 32 bits of ⌊j/4⌋, high 32 bits of ⌊j/4⌋, 2³² − 1, stream)
// for element j; the third word keeps them apart from the words of dropout under the same seed, which has batch·heads
// there. Give every tensor a stream of its own.

// values[j] = low + (high − low)·u, u = ⌊word / 2⁸⌋ / 2²⁴ with word j mod 4: uniform in [low, high), or up to `high`
// itself where the sum rounds.
void fill_uniform(std::span<float> values, float low, float high, std::uint64_t seed, std::uint32_t stream);

// values[j] normal with that mean and standard deviation, by Box and Muller ("A note on the generation of random normal
// deviates", 1958) in float64: words (0, 1) of a counter give elements 0 and 1 as r·cos φ and r·sin φ with
// r = √(−2·ln((word 0 + 1) / 2³²)), φ = 2π·(word 1) / 2³²; words (2, 3) give elements 2 and 3. |values[j] − mean|
// ≤ 6.67 σ.
void fill_normal(std::span<float> values, float mean, float standard_deviation, std::uint64_t seed,
                 std::uint32_t stream);

}  // namespace headlight::runtime
