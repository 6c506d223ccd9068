// Which instruction set this translation unit is compiled for, checked against the compiler's flags: with the wrong
// ones both SIMD libraries fall back to a smaller set without a word.
#pragma once

// g++ 12 takes the operands that AVX-512 intrinsics leave undefined on purpose for uninitialised variables.
#if defined(__x86_64__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop
#endif

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__) || \
    (defined(__ARM_FEATURE_DOTPROD) && !defined(HEADLIGHT_SIMD_SCALAR_TARGET))
#define HEADLIGHT_DOTS_BYTES  // an instruction adds products of four bytes and four others to 32 bits: dot_bytes()
#endif

#if defined(__AVX512BF16__) || (defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC) && !defined(HEADLIGHT_SIMD_SCALAR_TARGET))
#define HEADLIGHT_DOTS_BFLOAT16  // one does so with products of two bfloat16 numbers and two others: dot_bf16()
#endif
#if (defined(__ARM_FEATURE_MATMUL_INT8) || defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)) && \
    !defined(HEADLIGHT_SIMD_SCALAR_TARGET)
#define HEADLIGHT_MULTIPLIES_QUADS  // one multiplies two rows by two columns: multiply_quads_of_bytes(), …_of_bf16()
#endif

#define HEADLIGHT_INLINE inline __attribute__((always_inline))

namespace headlight::HEADLIGHT_TARGET {

// A feature is compiled as its set is.
enum class Target {
  scalar,
  sse4,
  avx2,
  avx512,
  neon,
  avx512_bf16 = avx512,
  avx512_vnni = avx512,
  amx_bf16 = avx512,
  amx_int8 = avx512,
  avx_vnni = avx2,
  neon_dotprod = neon,
  neon_i8mm = neon,
  neon_bf16 = neon
};

inline constexpr Target kTarget = Target::HEADLIGHT_TARGET;

#if defined(HEADLIGHT_SIMD_SCALAR_TARGET)
static_assert(kTarget == Target::scalar, "the flags of this file are those of scalar");
#elif defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
static_assert(kTarget == Target::avx512, "the flags of this file are those of avx512");
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
static_assert(kTarget == Target::avx2, "the flags of this file are those of avx2");
#elif defined(__SSE4_2__)
static_assert(kTarget == Target::sse4, "the flags of this file are those of sse4");
#elif defined(__ARM_NEON) && defined(__aarch64__)
static_assert(kTarget == Target::neon, "the flags of this file are those of neon");
#else
#error "these compiler flags name no instruction set that the kernels are written for"
#endif

alignas(64) inline constexpr float kLaneIndices[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

// Whether fma() and fnma() round once. Elsewhere the product is rounded before the sum: an emulation of the single
// rounding would cost more than it is worth.
inline constexpr bool kHasFma = kTarget == Target::avx2 || kTarget == Target::avx512 || kTarget == Target::neon;

}  // namespace headlight::HEADLIGHT_TARGET
