// AMX's instructions in plain C++ (tile_instructions.h) beside those of a CPU that has them: the same bits.
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "gtest/gtest.h"
#include "headlight/engine.h"
#include "support/random.h"

namespace headlight::test::tile_instructions_test {

// As LDTILECFG reads it: C, A and B in tiles 0, 1 and 2.
struct alignas(64) Configuration {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t bytes_of_row[16] = {};
  std::uint8_t rows[16] = {};

  Configuration(int m, int words) {
    bytes_of_row[0] = bytes_of_row[2] = 64;
    bytes_of_row[1] = static_cast<std::uint16_t>(4 * words);
    rows[0] = rows[1] = static_cast<std::uint8_t>(m);
    rows[2] = static_cast<std::uint8_t>(words);
  }
};

struct alignas(64) Tile {
  std::array<std::uint32_t, 256> words;
};

// The compiler's intrinsics do not say which memory they read.
void write_memory() { asm volatile("" ::: "memory"); }

enum class Product { bfloat16, unsigned_bytes, signed_bytes };

Tile real(const Configuration& configuration, Tile c, const Tile& a, const Tile& b, Product product) {
  write_memory();
  _tile_loadconfig(&configuration);
  _tile_loadd(0, c.words.data(), 64);
  _tile_loadd(1, a.words.data(), 64);
  _tile_loadd(2, b.words.data(), 64);
  if (product == Product::bfloat16) {
    _tile_dpbf16ps(0, 1, 2);
  } else if (product == Product::unsigned_bytes) {
    _tile_dpbusd(0, 1, 2);
  } else {
    _tile_dpbssd(0, 1, 2);
  }
  _tile_stored(0, c.words.data(), 64);
  _tile_release();
  write_memory();
  return c;
}

}  // namespace headlight::test::tile_instructions_test

#define HEADLIGHT_TARGET test
#include "kernels/tile_instructions.h"

namespace headlight::test::tile_instructions_test {

Tile in_plain_code(const Configuration& configuration, Tile c, const Tile& a, const Tile& b, Product product) {
  _tile_loadconfig(&configuration);
  _tile_loadd(0, c.words.data(), 64);
  _tile_loadd(1, a.words.data(), 64);
  _tile_loadd(2, b.words.data(), 64);
  if (product == Product::bfloat16) {
    _tile_dpbf16ps(0, 1, 2);
  } else if (product == Product::unsigned_bytes) {
    _tile_dpbusd(0, 1, 2);
  } else {
    _tile_dpbssd(0, 1, 2);
  }
  _tile_stored(0, c.words.data(), 64);
  _tile_release();
  return c;
}

// Pairs of bfloat16 numbers of any exponent between two, some of which are subnormal with the lowest.
Tile pairs(Random& random, int lowest, int highest) {
  Tile tile{};
  for (std::uint32_t& pair : tile.words) {
    const auto number = [&] {
      const float x = std::ldexp(random.uniform(), static_cast<int>(random.integer(lowest, highest)));
      return std::bit_cast<std::uint32_t>(x) >> 16;
    };
    pair = number() | number() << 16;
  }
  return tile;
}

TEST(TileInstructions, OfPlainCodeHaveTheBitsOfTheCpu) {
  using enum InstructionFeature;
  // Making an engine asks the system for the registers.
  if (!Engine(EngineOptions{.threads = 1}).features().has({amx_bf16, amx_int8})) GTEST_SKIP() << "no AMX here";
  Random random(1);
  for (int repeat = 0; repeat < 600; ++repeat) {
    const int m = static_cast<int>(random.integer(1, 16)), words = static_cast<int>(random.integer(1, 16));
    const Configuration configuration(m, words);
    const bool is_tiny = repeat % 3 == 0;
    Tile c{};
    for (std::uint32_t& sum : c.words) sum = std::bit_cast<std::uint32_t>(random.uniform() * (is_tiny ? 0x1p-126f : 1));
    const Tile a = pairs(random, is_tiny ? -70 : -9, is_tiny ? -58 : 9),
               b = pairs(random, is_tiny ? -66 : -9, is_tiny ? -60 : 9);
    for (const Product product : {Product::bfloat16, Product::unsigned_bytes, Product::signed_bytes}) {
      EXPECT_EQ(real(configuration, c, a, b, product).words, in_plain_code(configuration, c, a, b, product).words)
          << m << " rows, " << words << " words";
    }
  }
}

}  // namespace headlight::test::tile_instructions_test
