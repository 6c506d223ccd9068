// AMX's tile registers, of which a thread has eight: sixteen rows of sixteen words of four bytes.
//
//   TDPBUSD    C += Σ p q over the words of a row of A and of a column of B, four bytes each, exactly, as long as that
//              fits int32
//   TDPBF16PS  C += (Σ of the first numbers of the pairs) + (Σ of the second): each Σ one chain of fused multiply-adds
//              over ascending k that starts from +0. Numbers and sums below 2⁻¹²⁶ are 0
//
// (Intel's manual, volume 2; rounded to nearest even whatever the thread's mode is.) So an element's bits depend on K
// and its own row and column, not on how many are computed together, nor on which operand is A.
//
// Other machines test this with the instructions emulated (tests/kernels/tile_instructions.h).
#pragma once

#include <cstdint>

#include "simd/integers.h"
#include "simd/vector-inl.h"

// A test has its own in the place of the compiler's.
#if defined(HEADLIGHT_TILE_INSTRUCTIONS)
#include HEADLIGHT_TILE_INSTRUCTIONS
#endif

namespace headlight::HEADLIGHT_TARGET {

// Compilers have these intrinsics with the flags of AMX alone.
#if defined(HEADLIGHT_AMX_PRODUCT)

inline constexpr int kAmxRows = 16;  // of a register
inline constexpr int kAmxWords = 16;
static_assert(kLanes == kAmxWords, "a vector of columns is a row of a tile of B");

// The intrinsics of g++ do not say which memory they read: what was written must be there before them.
HEADLIGHT_INLINE void write_memory() { asm volatile("" ::: "memory"); }

// The thread's tile registers, in use from the first configure() on, and released in the end, so that neither the
// system has to save them nor another function finds them in use. Whatever a caller kept in them is lost, as the ABI
// has it for all vector registers.
class AmxRegisters {
 public:
  AmxRegisters() = default;
  AmxRegisters(const AmxRegisters&) = delete;
  AmxRegisters& operator=(const AmxRegisters&) = delete;
  ~AmxRegisters() {
    if (rows_ != 0) _tile_release();
  }

  // For so many rows of A and C, 1 … 32, and words of A's rows. This takes as long as many products, so it is not done
  // where nothing changes.
  void configure(std::int64_t rows, int words = kAmxWords) noexcept {
    if (rows == rows_ && words == words_) return;
    rows_ = rows;
    words_ = words;
    const auto upper = static_cast<std::uint8_t>(smaller(rows, kAmxRows));
    const auto lower = static_cast<std::uint8_t>(rows - upper);
    Configuration made;
    for (const int tile : {0, 1}) made.set(tile, upper);
    for (const int tile : {2, 3}) made.set(tile, lower);
    made.set(4, upper, words);
    made.set(5, lower, words);
    for (const int tile : {6, 7}) made.set(tile, static_cast<std::uint8_t>(words));
    load(made);
  }

  // Register by register.
  struct Shape {
    std::uint8_t rows = 0;
    std::uint8_t words = 0;  // of each
  };
  void configure(const Shape (&shapes)[8]) noexcept {
    rows_ = kShapes;
    Configuration made;
    for (int tile = 0; tile < 8; ++tile) made.set(tile, shapes[tile].rows, shapes[tile].words);
    load(made);
  }

 private:
  static constexpr std::int64_t kShapes = -1;

  // As LDTILECFG reads it.
  struct alignas(64) Configuration {
    std::uint8_t palette = 1;
    std::uint8_t start_row = 0;
    std::uint8_t reserved[14] = {};
    std::uint16_t bytes_of_row[16] = {};
    std::uint8_t rows[16] = {};

    void set(int tile, std::uint8_t count, int words = kAmxWords) noexcept {
      rows[tile] = count;
      bytes_of_row[tile] = static_cast<std::uint16_t>(count == 0 ? 0 : 4 * words);
    }
  };
  static_assert(sizeof(Configuration) == 64);

  static void load(const Configuration& made) noexcept {
    write_memory();
    _tile_loadconfig(&made);
    write_memory();  // nor is it overwritten before
  }

  std::int64_t rows_ = 0;
  int words_ = 0;
};

// What one or two tiles of rows and one or two of columns are made from. Strides count floats.
struct AmxOperands {
  const float* a;
  std::int64_t a_stride;
  const float* left;
  const float* right;
  std::int64_t b_stride;
};

// Sums in tiles 0 1 over 2 3, A in 4 over 5, B in 6 and 7.
template <bool kLower, bool kRight>
HEADLIGHT_INLINE void amx_iteration(const AmxOperands& at) {
  const std::int64_t a_bytes = at.a_stride * 4, b_bytes = at.b_stride * 4;
  _tile_loadd(6, at.left, b_bytes);
  _tile_stream_loadd(4, at.a, a_bytes);
  HEADLIGHT_AMX_PRODUCT(0, 4, 6);
  if constexpr (kRight) {
    _tile_loadd(7, at.right, b_bytes);
    HEADLIGHT_AMX_PRODUCT(1, 4, 7);
  }
  if constexpr (kLower) {
    _tile_stream_loadd(5, at.a + kAmxRows * at.a_stride, a_bytes);
    HEADLIGHT_AMX_PRODUCT(2, 5, 6);
  }
  if constexpr (kLower && kRight) HEADLIGHT_AMX_PRODUCT(3, 5, 7);
}

// Sums of a tile, or where they go. The stride counts floats.
struct AmxSums {
  float* at;
  std::int64_t stride;

  // Of one row it may be anything.
  [[nodiscard]] std::int64_t bytes() const noexcept {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(stride) * sizeof(float));
  }
};

// Those that were stored; from no memory zeros.
template <bool kLower, bool kRight>
HEADLIGHT_INLINE void amx_begin(const AmxSums& sums) {
  if (sums.at == nullptr) {
    _tile_zero(0);
    if constexpr (kRight) _tile_zero(1);
    if constexpr (kLower) _tile_zero(2);
    if constexpr (kLower && kRight) _tile_zero(3);
    return;
  }
  _tile_loadd(0, sums.at, sums.bytes());
  if constexpr (kRight) _tile_loadd(1, sums.at + kAmxWords, sums.bytes());
  if constexpr (kLower) _tile_loadd(2, sums.at + kAmxRows * sums.stride, sums.bytes());
  if constexpr (kLower && kRight) _tile_loadd(3, sums.at + kAmxRows * sums.stride + kAmxWords, sums.bytes());
}
template <bool kLower, bool kRight>
HEADLIGHT_INLINE void amx_end(const AmxSums& sums) {
  _tile_stored(0, sums.at, sums.bytes());
  if constexpr (kRight) _tile_stored(1, sums.at + kAmxWords, sums.bytes());
  if constexpr (kLower) _tile_stored(2, sums.at + kAmxRows * sums.stride, sums.bytes());
  if constexpr (kLower && kRight) _tile_stored(3, sums.at + kAmxRows * sums.stride + kAmxWords, sums.bytes());
}

#endif

}  // namespace headlight::HEADLIGHT_TARGET
