// One vector of floats: the small vocabulary that every kernel is written in. The two back ends give the same bits on
// the same instruction set (but for the sign and payload of a NaN), so each operation below says exactly what it
// computes.
//
// This file is included only by sources compiled with an instruction set's own flags, with HEADLIGHT_TARGET naming its
// namespace (avx512, avx2, sse4, neon, scalar). Inside it no std:: template may be instantiated (see lib/README.md).
//
//   Vec, IntVec, Mask           kLanes floats, kLanes int32, kLanes truth values
//   zero() broadcast(x)         constants; lane_index() = 0, 1, 2 …
//   load(p) store(v, p)         any alignment
//   load_partial(p, n)          the first n lanes, 0 ≤ n ≤ kLanes, the rest +0; never touches bytes past p[n − 1]
//   store_partial(v, p, n)      the same for stores
//   load_bf16(p) load_f16(p)    kLanes bfloat16 or binary16 numbers, given as uint16, widened exactly; …_partial(p, n)
//   store_bf16(v, p) store_f16(v, p)   the nearest such numbers, ties to even, subnormal ones too; a NaN stays one;
//                               …_partial(v, p, n)
//   load_i8(p)                  kLanes int8, exactly; load_i8_partial(p, n)
//   round_to_bf16(v)            to the nearest bfloat16, ties to even; still a float. Subnormal numbers as all others
//   dot_bf16(a, b, sum)         with AVX512-BF16, of lanes that hold two bfloat16 numbers each: sum + a₁·b₁ + a₀·b₀, a
//                               rounding each; what is below 2⁻¹²⁶ counts as 0. With Arm's BF16: sum + (a₀·b₀ + a₁·b₁),
//                               each rounded to odd
//   narrow_to_bf16(a, b)        with either: a and then b, rounded, two numbers to a lane; subnormal numbers to 0 with
//                               AVX512-BF16
//   pair_to_bf16(a, b)          the same, a in the lower halves of the lanes and b in the upper ones
//   interleave_lower_bf16(a, b) interleave_upper_bf16(a, b)   with AVX512-BF16: of every eight such numbers the first
//                               or the last four, one of a and one of b in turns
//   add sub mul div sqrt        IEEE, round to nearest
//   fma(a, b, c)                a·b + c, one rounding where kValues.has_fma, else two
//   fnma(a, b, c)               c − a·b, likewise
//   max(a, b) min(a, b)         b if either is NaN or both are zero (the x86 rule)
//   abs neg copysign(m, s)      bit operations: they keep NaN and turn −0 as they do any number
//   round(v)                    to the nearest integer, ties to even, any v; the sign of zero stays
//   scale_by_power_of_two(v, n) v · 2ⁿ, rounded once, for integral −252 ≤ n ≤ 254 and ¼ ≤ |v| ≤ 4; NaN if v is
//   less less_equal equal       false when an operand is NaN; is_nan(v)
//   select(mask, yes, no)       lane by lane
//   bytes_not_zero(p)           kLanes bytes as truth values
//   mask_first(n)               the first n lanes, 0 ≤ n ≤ kLanes; mask_and mask_or mask_not
//   any_of(mask)                whether some lane is true
//   sum_of_lanes(v) max_of_lanes(v)   halves are folded: lane i with lane i + kLanes/2, then with i + kLanes/4 …;
//                               the maximum of lanes follows the x86 rule in the same order
//   transpose(rows)             Vec (&)[kLanes] as a matrix, in place
//   swap_pairs(v)               lanes 1, 0, 3, 2 …, where there is more than one, as below
//   first_of_pairs(v) second_of_pairs(v)   lanes 0, 0, 2, 2 … and 1, 1, 3, 3 …
//   as_int(v) as_float(i)       the same bits
//   broadcast_int add_int sub_int mul_int and_int shift_left<k> shift_right<k>
//                               int32, wrapping; the right shift keeps the sign
//   to_float(i)                 int32 to the nearest float, ties to even
//   store_i8(i, p) store_u16(i, p)   the lowest bytes and the lower halves of the lanes
//   interleave_lower_bytes(a, b) interleave_upper_bytes(a, b)   of every 16 bytes the first or the last 8, a byte of a
//                               and a byte of b in turns, where kValues.interleaves_bytes
//   even_bytes(i) odd_bytes(i)  of lanes that hold four int8: numbers 0 and 2, or 1 and 3, as two int16
//   dot_i16(a, b, sum)          of lanes that hold two int16: sum + a₀·b₀ + a₁·b₁ in int32, wrapping; not all of them
//                               −2¹⁵
// and where kFeature.dots_bytes
//   dot_bytes(a, b, sum)        of lanes that hold four bytes, b's int8, and a's uint8 with VNNI and int8 with DotProd:
//                               sum + Σ aᵢ·bᵢ in int32, wrapping
//   store_u8_crossed(i, p)      the lowest bytes of lanes 0, 2, 1, 3, 4, 6, 5, 7, …
// and where kFeature.multiplies_quads, on vectors of four lanes
//   multiply_quads_of_bytes(a, b, sum)   of halves that hold eight int8, two rows' and two columns': to lane 2 r + c of
//                               sum, Σ aᵢ·bᵢ over a's half r and b's half c, in int32, wrapping
//   multiply_quads_of_bf16(a, b, sum)    of halves that hold two pairs of bfloat16 numbers: likewise, with the bits of
//                               dot_bf16() of the first pairs and then of the second
//   load_two_of_each(p, q)      p[0] p[1] q[0] q[1]
//   lower_halves(a, b) upper_halves(a, b)           a₀ a₁ b₀ b₁ and a₂ a₃ b₂ b₃
//   interleave_lower(a, b) interleave_upper(a, b)   a₀ b₀ a₁ b₁ and a₂ b₂ a₃ b₃
//   in_order(sum)               the sum, done where it is written
// and what a compiler is told of registers
//   keep_in_register(sum)       the sum is not moved to memory, and done where it is written, where that gains
//   behind_load(address, v)     the address, known only once v has been loaded
//
// Code that works on both 1 and 16 lanes needs no case of its own: for kLanes = 1 the folds and the transpose are
// empty.
#pragma once

#include HEADLIGHT_TARGET_HEADER

#include "simd/vector_derived-inl.h"

namespace headlight::HEADLIGHT_TARGET {
static_assert(kLanes == kValues.lanes, "the SIMD library took another instruction set than these flags were meant for");
}
