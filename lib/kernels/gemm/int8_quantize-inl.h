// Rows of A and columns of B as 8-bit integers, several in a word of four bytes.
//
//   a_ik ≈ s_i (p_ik − z_i)   p in 0 … 255      b_kj ≈ t_j q_kj   q in −127 … 127
//
// headlight/gemm.h has the formulas. Four rows k … k + 3 of B lie in a word in the order k, k + 2, k + 1, k + 3, so
// that its even bytes, widened to 16 bits, are two neighbours, and its odd ones the next two: A is then what the
// narrowing of 32 bits to 16 stores.
#pragma once

#include <cstdint>

#include "kernels/gemm/round-inl.h"
#include "kernels/rows/sweep-inl.h"
#include "simd/integers.h"
#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {

inline constexpr float kUnsignedLevels = 255;  // from 0 to the largest
inline constexpr float kSignedLevels = 127;

// The least and the greatest of some numbers and 0; `finite` is 0, or NaN where one of them is infinite or none.
struct Int8Range {
  Vec low = zero();
  Vec high = zero();
  Vec finite = zero();

  HEADLIGHT_INLINE void include(Vec v) {
    low = min(v, low);
    high = max(v, high);
    finite = fma(v, zero(), finite);
  }
};

// v ≈ scale · (q − offset) with q = v · inverse + offset. Of what is not finite the scale is NaN.
struct Int8Scale {
  Vec scale;
  Vec inverse;
};

HEADLIGHT_INLINE Int8Scale int8_scale(Vec scale, Vec finite) {
  scale = max(scale, broadcast(kLeastScale));
  return {add(scale, finite), div(broadcast(1.0f), scale)};
}
HEADLIGHT_INLINE Int8Scale int8_scale_of_a(const Int8Range& range) {
  const Vec levels = broadcast(kUnsignedLevels);
  return int8_scale(sub(div(range.high, levels), div(range.low, levels)), range.finite);
}
HEADLIGHT_INLINE Int8Scale int8_scale_of_b(const Int8Range& range) {
  return int8_scale(div(max(range.high, neg(range.low)), broadcast(kSignedLevels)), range.finite);
}

// What bytes of A have too little where they must be signed; and so has the zero point.
inline constexpr int kInt8Lowered = kFeature.dots_signed_bytes ? 128 : 0;

// Rows of A, one in each lane or the same in all.
struct Int8Rows {
  Vec scale;
  Vec inverse;
  Vec offset;  // the zero point beyond kRoundingOffset

  HEADLIGHT_INLINE explicit Int8Rows(const Int8Range& range) {
    const Int8Scale made = int8_scale_of_a(range);
    scale = made.scale;
    inverse = made.inverse;
    offset = add(headlight::HEADLIGHT_TARGET::round(mul(neg(range.low), inverse)), broadcast(kRoundingOffset));
  }
  // p, in the lowest 16 bits of each lane: the sum is rounded to an integer. It is not below 0, for z is −low · inverse
  // to within a half, and halves go to the even 0; above it may be one too many.
  [[nodiscard]] HEADLIGHT_INLINE IntVec quantized(Vec v) const {
    return lowered(as_int(min(add(mul(v, inverse), offset), broadcast(kRoundingOffset + kUnsignedLevels))));
  }
  [[nodiscard]] HEADLIGHT_INLINE Vec zero_point() const {
    return as_float(lowered(sub_int(as_int(offset), as_int(broadcast(kRoundingOffset)))));
  }
  static HEADLIGHT_INLINE IntVec lowered(IntVec p) {
    if constexpr (kInt8Lowered == 0) return p;
    return sub_int(p, broadcast_int(kInt8Lowered));
  }
};

// Words of A that a word of B is multiplied with, and numbers in each.
inline constexpr int kInt8WordsOfA = kFeature.dots_bytes ? 1 : 2;
inline constexpr int kInt8OfWordOfA = 4 / kInt8WordsOfA;

// Where a row of A holds its scale, behind its words, and in the word after that its zero point, as an integer.
constexpr std::int64_t int8_row_scale(std::int64_t depth) {
  return round_up(divide_up(depth, 4) * kInt8WordsOfA, kFloatsOfLine);
}

// The lowest bytes of four vectors in each lane, in the order of the words.
HEADLIGHT_INLINE Vec int8_word(const IntVec (&k)[4]) {
  const IntVec byte = broadcast_int(0xff);
  const IntVec even = add_int(and_int(k[0], byte), shift_left<16>(and_int(k[1], byte)));
  const IntVec odd = add_int(and_int(k[2], byte), shift_left<16>(k[3]));
  return as_float(add_int(even, shift_left<8>(odd)));
}

HEADLIGHT_INLINE void store_int8_words(IntVec numbers, float* row, std::int64_t k) {
  if constexpr (kFeature.dots_bytes) {
    store_u8_crossed(numbers, reinterpret_cast<std::uint8_t*>(row) + k);
  } else {
    store_u16(numbers, reinterpret_cast<std::uint16_t*>(row) + k);
  }
}
template <int kCount>
HEADLIGHT_INLINE Vec int8_word_of_a(const IntVec (&k)[kCount]) {
  static_assert(kCount == kInt8OfWordOfA);
  if constexpr (kCount == 4) {
    return int8_word(k);
  } else {
    return as_float(add_int(and_int(k[0], broadcast_int(0xffff)), shift_left<16>(k[1])));
  }
}

template <class Numbers>
Int8Rows int8_row(const typename Numbers::Storage* from, std::int64_t depth) noexcept {
  Int8Range ranges[kRowAccumulators];
  sweep_row(depth,
            [&](auto some, int index, std::int64_t k) { ranges[index].include(some.template get<Numbers>(from + k)); });
  Int8Range range = ranges[0];
#pragma GCC unroll 4
  for (int index = 1; index < kRowAccumulators; ++index) {
    range.low = min(ranges[index].low, range.low);
    range.high = max(ranges[index].high, range.high);
    range.finite = add(ranges[index].finite, range.finite);
  }
  range.low = neg(broadcast(max_of_lanes(neg(range.low))));
  range.high = broadcast(max_of_lanes(range.high));
  range.finite = broadcast(sum_of_lanes(range.finite));
  return Int8Rows(range);
}

// What lies behind the row's end is multiplied by zeros of B.
template <class Numbers>
void store_int8_row(const Int8Rows& row, const typename Numbers::Storage* from, std::int64_t depth, float* to,
                    const typename Numbers::Storage* next) noexcept {
  if constexpr (kLanes < kInt8OfWordOfA) {
    // Then a word is written a number at a time. What is left of the last one meets zeros of B, but is read.
    for (std::int64_t word = depth / kInt8OfWordOfA; word < divide_up(depth, 4) * kInt8WordsOfA; ++word) {
      store_partial(zero(), to + word, 1);
    }
  }
  sweep_row(depth, [&](auto some, int, std::int64_t k) {
    ask_for_numbers<Numbers>(next, k);
    store_int8_words(row.quantized(some.template get<Numbers>(from + k)), to, k);
  });
  float* const scale = to + int8_row_scale(depth);
  store_partial(row.scale, scale, 1);
  store_partial(row.zero_point(), scale + 1, 1);
}

// Each row is read twice, for its range and to be stored. Its scale is known only a long chain of folds and divisions
// after its range: meanwhile the row before it is stored.
template <class Numbers>
void round_int8_rows(const kernels::GemmBlock& block, float* to, std::int64_t stride) noexcept {
  const auto* from = static_cast<const typename Numbers::Storage*>(block.a);
  Int8Rows row = int8_row<Numbers>(from, block.depth);
  for (std::int64_t i = 1; i < block.rows; ++i, to += stride) {
    const auto* const next = from + block.a_row_stride;
    const Int8Rows row_of_next = int8_row<Numbers>(next, block.depth);
    store_int8_row<Numbers>(row, from, block.depth, to, i + 1 < block.rows ? next + block.a_row_stride : next);
    from = next;
    row = row_of_next;
  }
  store_int8_row<Numbers>(row, from, block.depth, to, from);
}

// A vector of rows of a transposed A.
template <class Numbers>
void round_int8_turned_rows(const TurnedRows<Numbers>& numbers, float* to, std::int64_t stride) noexcept {
  Int8Range range;
  for (std::int64_t k = 0; k < numbers.depth; ++k) range.include(numbers(k));
  const Int8Rows all(range);
  store_turned_words(divide_up(numbers.depth, 4) * kInt8WordsOfA, numbers.rows, to, stride, [&](std::int64_t word) {
    IntVec quantized[kInt8OfWordOfA];
#pragma GCC unroll 4
    for (int i = 0; i < kInt8OfWordOfA; ++i) quantized[i] = all.quantized(numbers(word * kInt8OfWordOfA + i));
    return int8_word_of_a(quantized);
  });
  alignas(64) float scales[kLanes], zero_points[kLanes];
  store(all.scale, scales);
  store(all.zero_point(), zero_points);
  for (int r = 0; r < numbers.rows; ++r) {
    float* const scale = to + r * stride + int8_row_scale(numbers.depth);
    scale[0] = scales[r];
    scale[1] = zero_points[r];
  }
}

// Columns of B, one in each lane.
struct Int8Columns {
  Int8Scale scale;
  float least = -kSignedLevels;
  IntVec sum = broadcast_int(0);

  HEADLIGHT_INLINE explicit Int8Columns(const Int8Range& range) : scale(int8_scale_of_b(range)) {}
  // Of columns that are integers already, −128 … 127, of those scales.
  HEADLIGHT_INLINE explicit Int8Columns(Vec scales) : scale{scales, broadcast(1.0f)}, least(-kSignedLevels - 1) {}
  // q, in the lowest byte of each lane. What is finite needs no limits.
  HEADLIGHT_INLINE IntVec quantized(Vec v) {
    const Vec rounded = add(mul(v, scale.inverse), broadcast(kRoundingOffset));
    const Vec limited =
        max(min(rounded, broadcast(kRoundingOffset + kSignedLevels)), broadcast(kRoundingOffset + least));
    const IntVec q = sub_int(as_int(limited), as_int(broadcast(kRoundingOffset)));
    sum = add_int(sum, q);
    return q;
  }
};

// The range of each of at most kLanes columns.
inline void include_columns(const kernels::Operand& b, std::int64_t first, std::int64_t depth, std::int64_t column,
                            int count, Int8Range& range) noexcept {
  walk_matrix<1>(b, first, depth, column, count,
                 [&](std::int64_t, std::int64_t, const Vec(&row)[1]) { range.include(row[0]); });
}

}  // namespace headlight::HEADLIGHT_TARGET
