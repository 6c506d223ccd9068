// Philox4x32-10, a counter-based random number generator: the words at a place are a function of the place and a key.
#pragma once

#include <array>
#include <cstdint>

namespace headlight::runtime {

// Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011. Ten rounds; counter (c0, c1, c2,
// c3) and key (k0, k1):
//   (c0, c1, c2, c3) ← (high(M1·c2) ⊕ c1 ⊕ k0, low(M1·c2), high(M0·c0) ⊕ c3 ⊕ k1, low(M0·c0)),
//   (k0, k1) ← (k0 + W0, k1 + W1) between rounds,
// where W0 and W1 are 2³² times the golden ratio's and √3's fractional parts.
constexpr std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                                  std::array<std::uint32_t, 2> key) noexcept {
  constexpr std::uint64_t kM0 = 0xD2511F53, kM1 = 0xCD9E8D57;
  constexpr std::uint32_t kW0 = 0x9E3779B9, kW1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = kM0 * counter[0], product1 = kM1 * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(product0)};
    key = {key[0] + kW0, key[1] + kW1};
  }
  return counter;
}

// The key of a 64-bit seed: its low word first.
constexpr std::array<std::uint32_t, 2> philox_key(std::uint64_t seed) noexcept {
  return {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
}

}  // namespace headlight::runtime
