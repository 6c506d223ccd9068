// The vector vocabulary made callable from code that is compiled for any machine: one table per instruction set.
#pragma once

#include <cstdint>

// Every operation by its number of operands; masks come back as 1 and 0.
#define HEADLIGHT_UNARY(X) \
  X(abs)                   \
  X(neg)                   \
  X(sqrt)                  \
  X(round)                 \
  X(is_nan)                \
  X(round_to_bf16)         \
  X(exp2_nonpositive)      \
  X(exp2)                  \
  X(exp)                   \
  X(log)                   \
  X(tanh)                  \
  X(relu)                  \
  X(gelu)                  \
  X(gelu_tanh)             \
  X(silu)                  \
  X(gelu_derivative)       \
  X(gelu_tanh_derivative)  \
  X(silu_derivative)
#define HEADLIGHT_BINARY(X) \
  X(add)                    \
  X(sub)                    \
  X(mul)                    \
  X(div)                    \
  X(max)                    \
  X(min)                    \
  X(copysign)               \
  X(less)                   \
  X(less_equal)             \
  X(equal)                  \
  X(scale_by_power_of_two)
#define HEADLIGHT_TERNARY(X) \
  X(fma)                     \
  X(fnma)

namespace headlight::test {

// Arrays hold `count` elements, a multiple of `lanes`, unless said.
struct VectorProbe {
  const char* target;
  int lanes;
  bool has_fma;

  using Unary = void (*)(const float* a, float* out, std::int64_t count);
  using Binary = void (*)(const float* a, const float* b, float* out, std::int64_t count);
  using Ternary = void (*)(const float* a, const float* b, const float* c, float* out, std::int64_t count);
#define HEADLIGHT_MEMBER(name) Unary name;
  HEADLIGHT_UNARY(HEADLIGHT_MEMBER)
#undef HEADLIGHT_MEMBER
#define HEADLIGHT_MEMBER(name) Binary name;
  HEADLIGHT_BINARY(HEADLIGHT_MEMBER)
#undef HEADLIGHT_MEMBER
#define HEADLIGHT_MEMBER(name) Ternary name;
  HEADLIGHT_TERNARY(HEADLIGHT_MEMBER)
#undef HEADLIGHT_MEMBER
  // select(a < b, a, c)
  Ternary select_less;

  // The rest takes one vector: `lanes` elements (`lanes`² for the transpose), or as many as `count` says.
  void (*load)(const float* from, float* out);
  void (*load_partial)(const float* from, int count, float* out);
  void (*store_partial)(const float* from, float* to, int count);
  void (*load_bf16)(const std::uint16_t* from, float* out);
  void (*load_f16)(const std::uint16_t* from, float* out);
  void (*load_bf16_partial)(const std::uint16_t* from, int count, float* out);
  void (*load_f16_partial)(const std::uint16_t* from, int count, float* out);
  void (*store_bf16)(const float* from, std::uint16_t* to);
  void (*store_f16)(const float* from, std::uint16_t* to);
  void (*store_bf16_partial)(const float* from, int count, std::uint16_t* to);
  void (*store_f16_partial)(const float* from, int count, std::uint16_t* to);
  void (*lane_index)(float* out);
  void (*mask_first)(int count, float* out);
  void (*bytes_not_zero)(const std::uint8_t* from, float* out);
  // first(a) and first(b), first(a) or first(b), not first(a)
  void (*masks)(int a, int b, float* conjunction, float* disjunction, float* negation);
  bool (*any_of)(const std::uint8_t* from);  // of bytes_not_zero
  float (*sum_of_lanes)(const float* from);
  float (*max_of_lanes)(const float* from);
  void (*transpose)(const float* from, float* out);
  // Null in the scalar back end.
  void (*pairs)(const float* from, float* swapped, float* first, float* second);
  // By vectors of int32, carried as the bits of floats: a + b, a − b, a & b, a << 5, a >> 5, all ones (−1).
  void (*integers)(const float* a, const float* b, float* sum, float* difference, float* conjunction, float* left,
                   float* right, float* minus_one);
  // Likewise: a · b, the lanes' even and odd bytes as pairs of int16, dot_i16(a, b, c); and a as a float.
  void (*small_integers)(const float* a, const float* b, const float* c, float* product, float* even, float* odd,
                         float* dot, float* number);
  void (*store_u16)(const float* from, std::uint16_t* to);
  void (*store_i8)(const float* from, std::int8_t* to);
  // kLanes int8 as floats, and the first `count` of them.
  void (*load_i8)(const std::int8_t* from, float* out);
  void (*load_i8_partial)(const std::int8_t* from, int count, float* out);
  // Of every 16 bytes of a and b, [4 · kLanes]; null in the scalar back end.
  void (*interleave_bytes)(const std::uint8_t* a, const std::uint8_t* b, std::uint8_t* lower, std::uint8_t* upper);
};

}  // namespace headlight::test
