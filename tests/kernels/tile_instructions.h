// AMX's instructions on tiles in plain C++, for a machine without them: what Intel's manual, volume 2, says that they
// compute and refuse. Takes the place of the compiler's where kernels are compiled with HEADLIGHT_TILE_INSTRUCTIONS.
#pragma once

#include <cstdint>

namespace headlight::HEADLIGHT_TARGET {
namespace emulated {

// One tile register of bytes, and its part of the configuration.
struct Tile {
  unsigned char bytes[16][64];
  int rows;
  int bytes_of_row;
};
inline thread_local Tile tiles[8];

inline void expect(bool holds) noexcept {
  if (!holds) __builtin_trap();
}

// Number n of a row, of any type.
template <class T>
T number(const unsigned char* row, int n) noexcept {
  T value;
  __builtin_memcpy(&value, row + n * static_cast<int>(sizeof(T)), sizeof(T));
  return value;
}

inline void load_configuration(const void* from) noexcept {
  const auto* const given = static_cast<const unsigned char*>(from);
  expect(given[0] == 1 && given[1] == 0);
  for (int t = 0; t < 8; ++t) {
    Tile& tile = tiles[t];
    __builtin_memset(tile.bytes, 0, sizeof(tile.bytes));
    tile.rows = given[48 + t];
    tile.bytes_of_row = number<std::uint16_t>(given + 16, t);
    expect(tile.rows <= 16 && tile.bytes_of_row <= 64 && (tile.rows == 0) == (tile.bytes_of_row == 0));
  }
}

inline void release() noexcept {
  for (Tile& tile : tiles) tile.rows = 0;
}

inline void clear(int t) noexcept {
  expect(tiles[t].rows > 0);
  __builtin_memset(tiles[t].bytes, 0, sizeof(tiles[t].bytes));
}

inline void load(int t, const void* from, std::int64_t stride) noexcept {
  clear(t);
  Tile& tile = tiles[t];
  for (int r = 0; r < tile.rows; ++r) {
    __builtin_memcpy(tile.bytes[r], static_cast<const char*>(from) + r * stride,
                     static_cast<std::size_t>(tile.bytes_of_row));
  }
}

inline void store(int t, void* to, std::int64_t stride) noexcept {
  const Tile& tile = tiles[t];
  expect(tile.rows > 0);
  for (int r = 0; r < tile.rows; ++r) {
    __builtin_memcpy(static_cast<char*>(to) + r * stride, tile.bytes[r], static_cast<std::size_t>(tile.bytes_of_row));
  }
}

// C [m, n] += the product of row m of A and column n of B, for which product(row of A, n, sum) adds to the sum.
template <class Sum, class Product>
void multiply(int c, int a, int b, Product product) noexcept {
  Tile& sums = tiles[c];
  expect(sums.rows > 0 && sums.rows == tiles[a].rows && sums.bytes_of_row == tiles[b].bytes_of_row &&
         tiles[a].bytes_of_row == 4 * tiles[b].rows && c != a && c != b && a != b);
  for (int m = 0; m < sums.rows; ++m) {
    for (int n = 0; n < sums.bytes_of_row / 4; ++n) {
      const Sum sum = product(tiles[a].bytes[m], n, number<Sum>(sums.bytes[m], n));
      __builtin_memcpy(sums.bytes[m] + n * 4, &sum, sizeof(sum));
    }
  }
}

// Below 2⁻¹²⁶ it is 0.
inline float normal(float x) noexcept { return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0.0f, x) : x; }

inline float bfloat16(const unsigned char* row, int n) noexcept {
  const std::uint32_t bits = std::uint32_t{number<std::uint16_t>(row, n)} << 16;
  return normal(__builtin_bit_cast(float, bits));
}

inline void dot_bfloat16(int c, int a, int b) noexcept {
  multiply<float>(c, a, b, [&](const unsigned char* row, int n, float sum) {
    float chains[2] = {0.0f, 0.0f};
    for (int k = 0; k < 2 * tiles[b].rows; ++k) {
      float& chain = chains[k % 2];
      chain = normal(__builtin_fmaf(bfloat16(row, k), bfloat16(tiles[b].bytes[k / 2], 2 * n + k % 2), chain));
    }
    return normal(normal(sum) + normal(chains[0] + chains[1]));
  });
}

// Bytes of A of that type by signed ones.
template <class Byte>
void dot_bytes(int c, int a, int b) noexcept {
  multiply<std::int32_t>(c, a, b, [&](const unsigned char* row, int n, std::int32_t sum) {
    for (int k = 0; k < 4 * tiles[b].rows; ++k) {
      sum += number<Byte>(row, k) * number<std::int8_t>(tiles[b].bytes[k / 4], 4 * n + k % 4);
    }
    return sum;
  });
}

}  // namespace emulated
}  // namespace headlight::HEADLIGHT_TARGET

#undef _tile_loadd
#undef _tile_stream_loadd
#undef _tile_stored
#undef _tile_zero
#undef _tile_dpbf16ps
#undef _tile_dpbusd
#undef _tile_dpbssd
#define _tile_loadconfig(from) emulated::load_configuration(from)
#define _tile_release() emulated::release()
#define _tile_zero(tile) emulated::clear(tile)
#define _tile_loadd(tile, from, stride) emulated::load(tile, from, stride)
#define _tile_stream_loadd(tile, from, stride) emulated::load(tile, from, stride)
#define _tile_stored(tile, to, stride) emulated::store(tile, to, stride)
#define _tile_dpbf16ps(sums, a, b) emulated::dot_bfloat16(sums, a, b)
#define _tile_dpbusd(sums, a, b) emulated::dot_bytes<std::uint8_t>(sums, a, b)
#define _tile_dpbssd(sums, a, b) emulated::dot_bytes<std::int8_t>(sums, a, b)
