// Products of int4 in tile registers: of each group of 32 numbers along K a product of tiles of eight words, and then
// vectors that scale its sums and add them up, in the order of int4-inl.h and with its bits.
//
// Vectors take four operations to what tile registers multiply in a quarter of that time: they are the limit, and tiles
// multiply meanwhile, two groups ahead. What a piece of a strip has of B is widened to bytes once for all rows.
#pragma once

#include <cstdint>

#include "kernels/gemm/amx_block-inl.h"
#include "kernels/gemm/int4-inl.h"
#include "kernels/gemm/table-inl.h"
#include "kernels/tile_registers-inl.h"
#include "simd/integers.h"
#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {
namespace {  // of the one file that includes this

constexpr kernels::GemmKernels int4_table_of_vectors() { return gemm_table<Int4>(0, kInt8WordsOfA == 1 ? 3 : 1); }

#if defined(HEADLIGHT_AMX_SIGNED_PRODUCT)

// Words of A, or of widened B, in a group.
constexpr std::int64_t kAmxWordsOfGroup = kInt4WordsOfGroup;
static_assert(kAmxWordsOfGroup == 8);

// Groups of a piece, for a tile of rows. Each has eight words of A's rows, and of B eight rows of one vector of columns
// or two, with their scales behind each other.
struct AmxGroups {
  const float* a;
  const float* a_scales;
  std::int64_t a_stride;
  const float* b;
  const float* b_scales;
  std::int64_t count;
};

// Groups whose sums are scaled together.
constexpr int kGroupsTogether = 2;

// The integers of one group, left in registers.
template <bool kLower, bool kRight>
HEADLIGHT_INLINE void sum_group(const AmxGroups& groups, std::int64_t group) {
  constexpr std::int64_t kWidth = (kRight ? 2 : 1) * kAmxWords;
  const float* const a = groups.a + group * kAmxWordsOfGroup;
  const float* const b = groups.b + group * kAmxWordsOfGroup * kWidth;
  amx_begin<kLower, kRight>({nullptr, 0});
  _tile_loadd(6, b, kWidth * 4);
  _tile_loadd(4, a, groups.a_stride * 4);
  HEADLIGHT_AMX_SIGNED_PRODUCT(0, 4, 6);
  if constexpr (kRight) {
    _tile_loadd(7, b + kAmxWords, kWidth * 4);
    HEADLIGHT_AMX_SIGNED_PRODUCT(1, 4, 7);
  }
  if constexpr (kLower) {
    _tile_loadd(5, a + kAmxRows * groups.a_stride, groups.a_stride * 4);
    HEADLIGHT_AMX_SIGNED_PRODUCT(2, 5, 6);
  }
  if constexpr (kLower && kRight) HEADLIGHT_AMX_SIGNED_PRODUCT(3, 5, 7);
}

// to ← from + Σ_g (D · t) · s of some rows and of kCount groups from `group` on. What it reads addresses from lies in
// registers: stores of sums might change it in memory, for all that a compiler knows.
template <int kCount, int kVectors>
HEADLIGHT_INLINE void add_scaled(const AmxGroups& groups, std::int64_t group, const float* sums, std::int64_t first,
                                 std::int64_t end, const AmxSums& from, const AmxSums& to) {
  constexpr std::int64_t kWidth = kVectors * kLanes;
  constexpr std::int64_t kOfGroup = 2 * kAmxRows * kWidth;
  Vec of_columns[kCount][kVectors];
#pragma GCC unroll 4
  for (int g = 0; g < kCount; ++g) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) of_columns[g][v] = load(groups.b_scales + (group + g) * kWidth + v * kLanes);
  }
  const std::int64_t a_stride = groups.a_stride, to_stride = to.stride;
  const bool is_first = from.at == nullptr;
  const std::int64_t from_stride = is_first ? 0 : from.stride;
  const float* of_row = groups.a_scales + first * a_stride + group;
  const float* before = is_first ? sums : from.at + first * from_stride;
  float* after = to.at + first * to_stride;
  const float* of_sums = sums + first * kWidth;
  for (std::int64_t r = first; r < end; ++r) {
    Vec totals[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) totals[v] = is_first ? zero() : load(before + v * kLanes);
#pragma GCC unroll 4
    for (int g = 0; g < kCount; ++g) {
      const Vec scale = broadcast(of_row[g]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        const Vec sum = to_float(as_int(load(of_sums + g * kOfGroup + v * kLanes)));
        totals[v] = add(totals[v], mul(mul(sum, of_columns[g][v]), scale));
      }
    }
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) store(totals[v], after + v * kLanes);
    of_row += a_stride;
    before += from_stride;
    after += to_stride;
    of_sums += kWidth;
  }
}

// All groups of a piece. `sums` has room for those of kGroupsTogether twice, of two vectors.
template <bool kLower, bool kRight>
void multiply_groups(const AmxGroups& groups, std::int64_t rows, AmxAhead ahead, std::int64_t b_rows_at_once,
                     std::int64_t c_rows_at_once, float* sums, AmxSums from, const AmxSums& to) noexcept {
  constexpr int kVectors = kRight ? 2 : 1;
  constexpr std::int64_t kOfGroup = 2 * kAmxRows * kVectors * kAmxWords;
  const std::int64_t part = divide_up(rows, kGroupsTogether);
  for (std::int64_t group = 0; group < groups.count; group += kGroupsTogether) {
    float* const now = sums + group / kGroupsTogether % 2 * kGroupsTogether * kOfGroup;
    const float* const before = sums + (group / kGroupsTogether + 1) % 2 * kGroupsTogether * kOfGroup;
    for (std::int64_t g = 0; g < kGroupsTogether; ++g) {
      ahead.fetch(b_rows_at_once, c_rows_at_once);
      if (group + g < groups.count) sum_group<kLower, kRight>(groups, group + g);
      if (group > 0) {
        add_scaled<kGroupsTogether, kVectors>(groups, group - kGroupsTogether, before, g * part,
                                              smaller((g + 1) * part, rows), from, to);
      }
      if (group + g < groups.count) amx_end<kLower, kRight>({now + g * kOfGroup, kVectors * kAmxWords});
    }
    if (group > 0) from = to;
  }
  const std::int64_t last = (groups.count - 1) / kGroupsTogether * kGroupsTogether;
  const float* const of_last = sums + last / kGroupsTogether % 2 * kGroupsTogether * kOfGroup;
  if (groups.count - last == kGroupsTogether) {
    add_scaled<kGroupsTogether, kVectors>(groups, last, of_last, 0, rows, from, to);
  } else {
    add_scaled<1, kVectors>(groups, last, of_last, 0, rows, from, to);
  }
}

// Bytes of numbers from their halves of bytes, u = q + 8. Of each byte 8 is taken away without a borrow from the next.
HEADLIGHT_INLINE Vec signed_bytes(IntVec halves) {
  const IntVec u = and_int(halves, broadcast_int(0x0f0f0f0f));
  const IntVec eights = and_int(u, broadcast_int(0x08080808));
  return as_float(sub_int(add_int(u, broadcast_int(static_cast<std::int32_t>(0xf8f8f8f8))), shift_left<5>(eights)));
}

struct AmxInt4Numbers {
  using Finish = GemmSums;
  static constexpr std::int64_t of_word = kInt4OfWord;
  static constexpr std::int64_t a_of_word = 2;
  static constexpr std::int64_t longest = kernels::kInt8Depth;
  static constexpr std::int64_t depth_unit = kInt4Group;
  static constexpr bool joins_blocks = false;
  static constexpr std::int64_t iteration_words = kInt4Group / kInt4OfWord;
  static constexpr std::int64_t most_piece_words = 16 * iteration_words;
  static constexpr std::int64_t most_span_words = 768;
  static constexpr int tile_words = kAmxWordsOfGroup;
  static constexpr std::int64_t tile_rows = 2 * kAmxRows;
  static constexpr bool finds_scales = false;

  // Floats of scratch, for one piece of a strip: bytes of B, its scales, and sums.
  static constexpr std::int64_t kPieceGroups = most_piece_words / iteration_words;
  static constexpr std::int64_t bytes = kPieceGroups * kAmxWordsOfGroup * 2 * kLanes;
  static constexpr std::int64_t scales = kPieceGroups * 2 * kLanes;
  static constexpr std::int64_t unpacked = bytes + scales + 2 * kGroupsTogether * tile_rows * 2 * kLanes;

  // A piece of B: words of a strip, `of_columns` the scales of its first group; rows of both lie `stride` apart.
  template <int kVectors>
  static void unpack(const float* const (&words)[2], const std::uint16_t* const (&of_columns)[2], std::int64_t stride,
                     std::int64_t count, float* to) noexcept {
    const std::int64_t groups = divide_up(count, iteration_words);
    for (std::int64_t word = 0; word < groups * iteration_words; ++word) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        // u = 8 stands for 0.
        const IntVec both = word < count ? as_int(load(words[v] + word * stride))
                                         : broadcast_int(static_cast<std::int32_t>(0x88888888));
        store(signed_bytes(both), to + (2 * word * kVectors + v) * kLanes);
        store(signed_bytes(shift_right<4>(both)), to + ((2 * word + 1) * kVectors + v) * kLanes);
      }
    }
    for (std::int64_t group = 0; group < groups; ++group) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        store(load_bf16(of_columns[v] + group * stride), to + bytes + (group * kVectors + v) * kLanes);
      }
    }
  }

  template <bool kLower, bool kRight>
  static void multiply(const AmxRows& rows, const WordRange& piece, float* b, const AmxAhead& ahead,
                       std::int64_t b_rows_at_once, std::int64_t c_rows_at_once, const AmxSums& from,
                       const AmxSums& to) noexcept {
    const AmxGroups groups{rows.a + piece.first * a_of_word,
                           rows.a + int4_row_scales(rows.depth) + piece.first / iteration_words,
                           rows.stride,
                           b,
                           b + bytes,
                           divide_up(piece.count(), iteration_words)};
    multiply_groups<kLower, kRight>(groups, rows.count, ahead, b_rows_at_once, c_rows_at_once, b + bytes + scales, from,
                                    to);
  }
};

// Tiles of fewer rows are no faster than vectors, and have the same bits.
constexpr std::int64_t kLeastRowsOfInt4Tiles = 32;

// The table of vectors with that of tiles in its place where they are faster.
constexpr kernels::GemmKernels int4_table() {
  kernels::GemmKernels table = int4_table_of_vectors();
  table.tile_rows = AmxInt4Numbers::tile_rows;
  table.products = 4;
  table.block = [](const kernels::GemmBlock& block) noexcept {
    if (block.rows < kLeastRowsOfInt4Tiles) return int4_table_of_vectors().block(block);
    AmxBlock<AmxInt4Numbers>(block).run();
  };
  // Blocks of one product differ in their rows.
  table.scratch_floats = [](const kernels::GemmBlock& block) noexcept {
    return larger(int4_table_of_vectors().scratch_floats(block), AmxPlan<AmxInt4Numbers>(block).scratch_floats());
  };
  return table;
}

#else

constexpr kernels::GemmKernels int4_table() { return int4_table_of_vectors(); }

#endif

}  // namespace
}  // namespace headlight::HEADLIGHT_TARGET
