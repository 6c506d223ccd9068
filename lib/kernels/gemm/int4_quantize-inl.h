// Rows of A in 8 bits and columns of B in 4, with a scale for each group of 32 numbers along K.
//
//   a_ik ≈ s_ig p_ik   p in −127 … 127      b_kj ≈ t_gj q_kj   q in −7 … 7      g = ⌊k / 32⌋
//
// headlight/gemm.h has the formulas. A byte of B holds two numbers u = q + 8: in its lower half one of rows k … k + 3,
// in its upper half that of the row four further on; the bytes of a word lie in the order of int8_quantize-inl.h,
// and so do the numbers of A. Behind the words of a row of A lie, for each group, its scale and then −8 Σ p.
#pragma once

#include <cstdint>

#include "kernels/gemm/int8_quantize-inl.h"
#include "simd/integers.h"
#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {

inline constexpr int kInt4Group = kernels::kInt4Group;
inline constexpr int kInt4OfWord = 8;
inline constexpr int kInt4WordsOfGroup = kInt4Group / 4 * kInt8WordsOfA;  // of A
inline constexpr float kInt4Levels = 7;
inline constexpr int kInt4Zero = 8;

constexpr std::int64_t int4_groups(std::int64_t depth) { return divide_up(depth, kInt4Group); }
// Where a row of A holds its scales, behind its words.
constexpr std::int64_t int4_row_scales(std::int64_t depth) {
  return round_up(int4_groups(depth) * kInt4WordsOfGroup, kFloatsOfLine);
}

// p of numbers that share a scale in each lane, as an integer beyond kRoundingOffset.
HEADLIGHT_INLINE Vec int4_quantized_a(Vec v, const Int8Scale& scale) {
  return add(mul(v, scale.inverse), broadcast(kRoundingOffset));
}
HEADLIGHT_INLINE IntVec int4_integers(Vec quantized) {
  return sub_int(as_int(quantized), as_int(broadcast(kRoundingOffset)));
}

// The groups of a row; what lies behind its end is 0.
template <class Numbers>
void store_int4_row(const typename Numbers::Storage* from, std::int64_t depth, float* to) noexcept {
  constexpr int kVectors = kInt4Group / kLanes;
  const std::int64_t groups = int4_groups(depth);
  float* scales = to + int4_row_scales(depth);
  for (std::int64_t group = 0; group < groups; ++group, from += kInt4Group, depth -= kInt4Group, ++scales) {
    Vec numbers[kVectors];
    Int8Range range;
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const std::int64_t left = depth - v * kLanes;
      numbers[v] = left >= kLanes ? Numbers::load(from + v * kLanes)
                   : left > 0     ? Numbers::load_partial(from + v * kLanes, static_cast<int>(left))
                                  : zero();
      range.include(numbers[v]);
    }
    range.high = broadcast(max_of_lanes(max(range.high, neg(range.low))));
    range.finite = broadcast(sum_of_lanes(range.finite));
    const Int8Scale scale = int8_scale_of_b(range);
    IntVec sum = broadcast_int(0);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const IntVec p = int4_integers(int4_quantized_a(numbers[v], scale));
      sum = add_int(sum, p);
      store_int8_words(p, to + group * kInt4WordsOfGroup, v * kLanes);
    }
    store_partial(scale.scale, scales, 1);
    const Vec minus_eight = broadcast(-8.0f * sum_of_lanes(to_float(sum)));
    store_partial(as_float(int4_integers(add(minus_eight, broadcast(kRoundingOffset)))), scales + groups, 1);
  }
}

// The same of a vector of rows of a transposed A. Squares of words reach beyond a group: the next one writes over that,
// and the scales over what is behind the last.
template <class Numbers>
void store_int4_turned_rows(const TurnedRows<Numbers>& numbers, float* to, std::int64_t stride) noexcept {
  const std::int64_t groups = int4_groups(numbers.depth);
  const std::int64_t row_scales = int4_row_scales(numbers.depth);
  const auto scale_of = [&](std::int64_t group) {
    Int8Range range;
    for (std::int64_t k = group * kInt4Group; k < (group + 1) * kInt4Group; ++k) range.include(numbers(k));
    return int8_scale_of_b(range);
  };
  for (std::int64_t group = 0; group < groups; ++group) {
    const Int8Scale scale = scale_of(group);
    store_turned_words(kInt4WordsOfGroup, numbers.rows, to + group * kInt4WordsOfGroup, stride, [&](std::int64_t word) {
      IntVec quantized[kInt8OfWordOfA];
#pragma GCC unroll 4
      for (int i = 0; i < kInt8OfWordOfA; ++i) {
        const Vec number = numbers(group * kInt4Group + word * kInt8OfWordOfA + i);
        quantized[i] = int4_integers(int4_quantized_a(number, scale));
      }
      return int8_word_of_a(quantized);
    });
  }
  alignas(64) float scales[kLanes], sums[kLanes];
  for (std::int64_t group = 0; group < groups; ++group) {
    const Int8Scale scale = scale_of(group);
    IntVec sum = broadcast_int(0);
    for (std::int64_t k = group * kInt4Group; k < (group + 1) * kInt4Group; ++k) {
      sum = add_int(sum, int4_integers(int4_quantized_a(numbers(k), scale)));
    }
    store(scale.scale, scales);
    store(as_float(sub_int(broadcast_int(0), shift_left<3>(sum))), sums);
    for (int r = 0; r < numbers.rows; ++r) {
      float* const of_row = to + r * stride + row_scales;
      of_row[group] = scales[r];
      of_row[groups + group] = sums[r];
    }
  }
}

// A group of a vector of columns of B: its scales, rounded to bfloat16, and its words.
struct Int4Group {
  Vec scale;
  Vec words[kInt4Group / 8];

  HEADLIGHT_INLINE explicit Int4Group(const Vec (&rows)[kInt4Group]) {
    Int8Range range;
    for (const Vec row : rows) range.include(row);
    const Vec greatest = max(range.high, neg(range.low));
    const Vec rounded = round_to_bf16(max(div(greatest, broadcast(kInt4Levels)), broadcast(kLeastScale)));
    scale = add(rounded, range.finite);
    join(rows, div(broadcast(1.0f), rounded), -kInt4Levels);
  }
  // Of numbers that are integers already, −8 … 7, of those scales.
  HEADLIGHT_INLINE Int4Group(const Vec (&rows)[kInt4Group], Vec scales) : scale(round_to_bf16(scales)) {
    join(rows, broadcast(1.0f), -kInt4Zero);
  }

 private:
  HEADLIGHT_INLINE void join(const Vec (&rows)[kInt4Group], Vec inverse, float least) {
    const auto unsigned_number = [&](Vec v) {
      const Vec q = add(mul(v, inverse), broadcast(kRoundingOffset));
      const Vec limited = max(min(q, broadcast(kRoundingOffset + kInt4Levels)), broadcast(kRoundingOffset + least));
      return sub_int(as_int(limited), as_int(broadcast(kRoundingOffset - kInt4Zero)));
    };
    for (int word = 0; word < kInt4Group / 8; ++word) {
      IntVec bytes[4];
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        const IntVec upper = shift_left<4>(unsigned_number(rows[word * 8 + 4 + i]));
        bytes[i] = add_int(unsigned_number(rows[word * 8 + i]), upper);
      }
      words[word] = int8_word(bytes);
    }
  }
};

}  // namespace headlight::HEADLIGHT_TARGET
