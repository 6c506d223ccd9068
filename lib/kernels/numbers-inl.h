// How numbers of a type lie in memory, and how they become floats and come from them: what kernels are told that read
// or write more than one type.
#pragma once

#include <cstdint>

#include "headlight/number_type.h"
#include "runtime/built_types.h"
#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {

inline constexpr std::int64_t kBytesOfLine = 64;  // of a cache line
inline constexpr std::int64_t kFloatsOfLine = kBytesOfLine / 4;

// kOfColumn: how many numbers of a row a kernel takes as one column, a lane. kOfWord: how many columns lie in what
// a lane holds while it is moved about; 2: two numbers that are widened afterwards, first_of() and second_of().
struct StoredFloat32 {
  using Storage = float;
  static constexpr int kOfColumn = 1;
  static constexpr int kOfWord = 1;
  static constexpr int kOfLine = kFloatsOfLine;

  static HEADLIGHT_INLINE Vec load(const float* from) { return headlight::HEADLIGHT_TARGET::load(from); }
  static HEADLIGHT_INLINE Vec load_partial(const float* from, int count) {
    return headlight::HEADLIGHT_TARGET::load_partial(from, count);
  }
  static HEADLIGHT_INLINE void store(Vec v, float* to) { headlight::HEADLIGHT_TARGET::store(v, to); }
  static HEADLIGHT_INLINE void store_partial(Vec v, float* to, int count) {
    headlight::HEADLIGHT_TARGET::store_partial(v, to, count);
  }
};

// Widened exactly; rounded once to nearest even.
struct StoredBFloat16 {
  using Storage = std::uint16_t;
  static constexpr int kOfColumn = 1;
  // Two numbers of each lane are as quickly widened where they are as one. The first lies in the lower half.
  static constexpr int kOfWord = kLanes > 1 ? 2 : 1;
  static HEADLIGHT_INLINE Vec first_of(Vec pairs) { return as_float(shift_left<16>(as_int(pairs))); }
  static HEADLIGHT_INLINE Vec second_of(Vec pairs) {
    return as_float(and_int(as_int(pairs), broadcast_int(kUpperHalf)));
  }

  static constexpr int kOfLine = 2 * kFloatsOfLine;

  static HEADLIGHT_INLINE Vec load(const std::uint16_t* from) { return load_bf16(from); }
  static HEADLIGHT_INLINE Vec load_partial(const std::uint16_t* from, int count) {
    return load_bf16_partial(from, count);
  }
  static HEADLIGHT_INLINE void store(Vec v, std::uint16_t* to) { store_bf16(v, to); }
  static HEADLIGHT_INLINE void store_partial(Vec v, std::uint16_t* to, int count) { store_bf16_partial(v, to, count); }
};
struct StoredFloat16 {
  using Storage = std::uint16_t;
  static constexpr int kOfColumn = 1;
  static constexpr int kOfWord = 1;
  static constexpr int kOfLine = 2 * kFloatsOfLine;

  static HEADLIGHT_INLINE Vec load(const std::uint16_t* from) { return load_f16(from); }
  static HEADLIGHT_INLINE Vec load_partial(const std::uint16_t* from, int count) {
    return load_f16_partial(from, count);
  }
  static HEADLIGHT_INLINE void store(Vec v, std::uint16_t* to) { store_f16(v, to); }
  static HEADLIGHT_INLINE void store_partial(Vec v, std::uint16_t* to, int count) { store_f16_partial(v, to, count); }
};

// Smaller scales would be subnormal, and lose digits; and the inverse of 0 is none.
inline constexpr float kLeastScale = 0x1p-126f;

// Integers; a row's scale, which is beside them, makes floats of them: see scaled().
struct StoredInt8 {
  using Storage = std::int8_t;
  static constexpr int kOfColumn = 1;
  static constexpr int kOfWord = 1;
  static constexpr int kOfLine = 4 * kFloatsOfLine;
  static constexpr bool kScaled = true;

  static HEADLIGHT_INLINE Vec load(const std::int8_t* from) { return load_i8(from); }
  static HEADLIGHT_INLINE Vec load_partial(const std::int8_t* from, int count) { return load_i8_partial(from, count); }
};

// Where kFeature.dots_bfloat16. Never widened: a column is a pair of neighbours, multiplied by a pair of a row as
// vdpbf16ps does it (dot_bf16()).
struct PairsOfBFloat16 {
  using Storage = std::uint16_t;
  static constexpr int kOfColumn = 2;
  static constexpr int kOfWord = 1;
  static constexpr int kOfLine = 2 * kFloatsOfLine;

  static HEADLIGHT_INLINE Vec load(const std::uint16_t* from) {
    return headlight::HEADLIGHT_TARGET::load(reinterpret_cast<const float*>(from));
  }
  static HEADLIGHT_INLINE Vec load_partial(const std::uint16_t* from, int count) {
    return headlight::HEADLIGHT_TARGET::load_partial(reinterpret_cast<const float*>(from), count);
  }
  static HEADLIGHT_INLINE Vec multiply_add(Vec left, Vec right, Vec sum) { return dot_bf16(left, right, sum); }
};

// f(numbers of that type), of all that floats can be stored in.
template <class Function>
HEADLIGHT_INLINE auto with_numbers(NumberType type, const Function& f) {
  if (type == NumberType::bfloat16) return f(StoredBFloat16());
  if (type == NumberType::float16) return f(StoredFloat16());
  return f(StoredFloat32());
}

// The same of rows that may have scales.
template <class Function>
HEADLIGHT_INLINE auto with_rows(NumberType type, const Function& f) {
  if (type == NumberType::int8) return f(StoredInt8());
  return with_numbers(type, f);
}

// Numbers of a row as they are, or times the scale that it has.
template <class Numbers>
inline constexpr bool kHasScales = requires {
  Numbers::kScaled;
};
template <class Numbers>
HEADLIGHT_INLINE Vec scaled_by(Vec v, Vec scales) {
  if constexpr (kHasScales<Numbers>) return mul(v, scales);
  return v;
}
template <class Numbers>
HEADLIGHT_INLINE Vec scaled_by_row(Vec v, const float* scale) {
  if constexpr (kHasScales<Numbers>) return mul(v, broadcast(*scale));
  return v;
}
// Those of `count` ≤ kLanes rows, one to a lane; zeros behind.
template <class Numbers>
HEADLIGHT_INLINE Vec scales_of_rows(const float* scales, std::int64_t stride, int count) {
  if constexpr (!kHasScales<Numbers>) return zero();
  if (stride == 1)
    return count == kLanes ? headlight::HEADLIGHT_TARGET::load(scales)
                           : headlight::HEADLIGHT_TARGET::load_partial(scales, count);
  alignas(64) float of_rows[kLanes] = {};
  for (int j = 0; j < count; ++j) of_rows[j] = scales[j * stride];
  return headlight::HEADLIGHT_TARGET::load(of_rows);
}

// f(numbers of that type), of what products read and write beside weights.
template <class Function>
HEADLIGHT_INLINE auto with_floats_or_bfloat16([[maybe_unused]] NumberType type, const Function& f) {
  if constexpr (runtime::is_built(NumberType::bfloat16)) {
    if (type == NumberType::bfloat16) return f(StoredBFloat16());
  }
  return f(StoredFloat32());
}

// A whole vector, or the `count` < kLanes that are left.
template <class Numbers>
HEADLIGHT_INLINE Vec load_numbers(const typename Numbers::Storage* from, int count) {
  return count == kLanes ? Numbers::load(from) : Numbers::load_partial(from, count);
}
template <class Numbers>
HEADLIGHT_INLINE void store_numbers(Vec v, typename Numbers::Storage* to, int count) {
  if (count == kLanes) {
    Numbers::store(v, to);
  } else {
    Numbers::store_partial(v, to, count);
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
