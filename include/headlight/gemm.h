// Matrix products: C = activation(α · op(A) · op(B) + β · C + bias) + residual.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "headlight/activation.h"
#include "headlight/engine.h"
#include "headlight/export.h"
#include "headlight/number_type.h"
#include "headlight/tensor.h"
#include "headlight/typed_view.h"

namespace headlight {

namespace ops {
struct RowSource;
}

// How an operand is stored: as it is multiplied, or transposed.
enum class Transpose : bool { no, yes };

// What a product may do beside multiplying.
struct GemmOptions {
  // How A and B are stored, and what their product is multiplied by.
  Transpose transpose_a = Transpose::no;
  Transpose transpose_b = Transpose::no;
  float alpha = 1.0f;
  // With 0, C is written and never read.
  float beta = 0.0f;
  // [N] or empty, added to every row.
  std::span<const float> bias{};
  Activation activation = Activation::none;  // of the sum, before the residual is added
  // [M, N] (for batched products [batch, M, N] with `batched_residual`), added after the activation. May be C itself.
  View<const float, 2> residual{};
  View<const float, 3> batched_residual{};
};

// op(A) [M, K] · op(B) [K, N] → C [M, N]. A is stored [M, K], or [K, M] with transpose_a; B [K, N], or [N, K] with
// transpose_b. Last strides are 1. C must not overlap A, B, the bias or (unless it is C) the residual.
//
// Order of summation: K is cut into ⌈K / 768⌉ blocks of one length (rounded up to 8); within a block an element is one
// chain of multiply-adds over ascending k from +0 (fused, where the instruction set has that), and the sums of blocks
// are added in ascending order. Then α · sum, + β · C, + bias, activation, + residual. So the bits depend on K and the
// instruction set, never on M, N, threads, strides, transposition, batch or whether B was packed (as float32): one row
// equals that row of a large product. Nothing is skipped: K = 0 gives α · 0, and with α = 0 a NaN or infinity in A or B
// still makes NaN.
//
// A B that serves several products (weights) is better packed once: up to five tiles of rows (45 on AVX-512) read it
// where it lies, more rows pack a copy of it each time: many rows a whole one of at most 64 MiB, or panel by panel
// where that much memory cannot be had. Throws std::invalid_argument naming the argument, what it was and what was
// expected; OutOfMemory when scratch memory cannot be had.
HEADLIGHT_API void gemm(Engine& engine, View<const float, 2> a, View<const float, 2> b, View<float, 2> c,
                        const GemmOptions& options = {});

// The same for each of `batch` products; a batch stride of 0 repeats an input.
HEADLIGHT_API void gemm(Engine& engine, View<const float, 3> a, View<const float, 3> b, View<float, 3> c,
                        const GemmOptions& options = {});

// op(B) laid out once in the panels of the engine's instruction set, to be used with any number of products
// (weights). Immutable; may be shared between threads and between engines of the same instruction set.
//
// As bfloat16 it takes half the memory, and products multiply bfloat16 numbers: both B, here, and A, in each product,
// are rounded to the nearest one (ties to even), and all else is float32. A product of two such numbers is exact there,
// so that C has the error of float32 sums over the rounded operands; those themselves are off by 2⁻⁸ of each number at
// most. Blocks of K are rounded up to 32. An element's chain takes the second number of each pair (k, k + 1) before the
// first; its bits are those of every instruction set, unless a number, product or sum is below 2⁻¹²⁶
// (InstructionFeature::avx512_bf16 takes it for 0; without fused multiply-adds products are rounded there) or a product
// reaches 2¹²⁸. Two features add in an order of their own, within the same bounds, and with the same bits for any rows
// beside it: neon_bf16 rounds each pair first, and amx_bf16 cuts all of K into runs of 32 numbers, of which a chain
// over the first numbers of the pairs and one over the second, both from +0, are added to each other, and then to the
// runs before it.
//
// As float16 it takes half the memory, too, and A stays float32: B is rounded to the nearest float16 number (ties to
// even, from 65520 on infinite) and widened again as it is multiplied. C has the bits of gemm() over that B; rounding
// is off by 2⁻¹¹ of each number at most, or by 2⁻²⁵ below 2⁻¹⁴.
//
// As int8 it takes a quarter of the memory and eight bytes a column, and products multiply 8-bit integers: each column
// of B has a scale, and in each product each row of A a scale and a zero point. With every operation a float32 one,
// rounded to nearest even,
//   t_j = max(max_k |b_kj| / 127, 2⁻¹²⁶)                         q_kj = round(b_kj · (1 / t_j))
//   l_i = min(0, min_k a_ik), h_i = max(0, max_k a_ik)           z_i = round(−l_i · (1 / s_i))
//   s_i = max(h_i / 255 − l_i / 255, 2⁻¹²⁶)                      p_ik = min(round(a_ik · (1 / s_i) + z_i), 255)
// where the sum within p_ik is exact and rounded once, to an integer. For each of ⌈K / 16384⌉ blocks of K, cut as those
// of gemm() are and rounded up to 64, D_ij = Σ_k (p_ik − z_i) q_kj, exact in int32 in any order; the block's sum is
// ((float)D_ij · t_j) · s_i, and then everything is as above. So those sums have the bits of every instruction set
// (activations, and α together with β, those of one), and without them C is off by
//   |C_ij − Σ_k a_ik b_kj| ≤ (½ + 2⁻¹⁴) (s_i Σ_k |t_j q_kj| + t_j Σ_k |a_ik|)
// and three roundings of a float, where nothing overflows. A row of A or a column of B with a NaN or infinity makes all
// of its row or column of C NaN.
//
// As int4 it takes 4.5 bits a number, and products multiply integers of 4 bits by ones of 8. Both operands are cut
// along K into groups of 32, counted from k = 0: group g of a column of B has a scale that is a bfloat16 number, and in
// each product group g of a row of A one of float32. As above, round_bfloat16() to the nearest such number,
//   t_gj = round_bfloat16(max(max_k |b_kj| / 7, 2⁻¹²⁶))   q_kj = round(b_kj · (1 / t_gj)), in −7 … 7 by the nearer
//   s_ig = max(max_k |a_ik| / 127, 2⁻¹²⁶)                 p_ik = round(a_ik · (1 / s_ig))
// with k in g. D_igj = Σ_k p_ik q_kj is exact, and so is (float)D_igj · t_gj; times s_ig, rounded, it is added to the
// groups before it in ascending g from +0, rounded again. Longer than 16384, K is cut into ⌈K / 16384⌉ blocks of one
// length (rounded up to 32), whose sums are added in order; then everything is as above. Those sums, too, have the bits
// of every instruction set, C is off by
//   |C_ij − Σ_k a_ik b_kj| ≤ (½ + 2⁻¹⁴) Σ_g (s_ig Σ_k |t_gj q_kj| + t_gj Σ_k |a_ik|)
// and two roundings of a float for each group, and NaN and infinity do as with int8. (A scale of B may be 2⁻⁸ too small
// for the group's largest number, which then loses 7 · 2⁻⁸ of a scale, less than the half that any number may.)
class HEADLIGHT_API PackedMatrix {
 public:
  PackedMatrix() = default;
  // b is [K, N], or [N, K] with Transpose::yes (the layout of nn.Linear weights).
  PackedMatrix(Engine& engine, View<const float, 2> b, Transpose transpose_b = Transpose::no,
               NumberType type = NumberType::float32);

  // B whose columns come a few at a time. For WeightMatrix, which checks what it is made of.
  PackedMatrix(Engine& engine, const ops::RowSource& source, NumberType type);

  [[nodiscard]] std::int64_t rows() const noexcept { return rows_; }        // K
  [[nodiscard]] std::int64_t columns() const noexcept { return columns_; }  // N
  // What it was packed for, as what, into how many bytes that lie where; and whether it was.
  [[nodiscard]] Isa isa() const noexcept { return isa_; }
  [[nodiscard]] NumberType type() const noexcept { return type_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return panels_ ? panels_.get_deleter().bytes : 0; }
  [[nodiscard]] const void* data() const noexcept { return panels_.get(); }
  [[nodiscard]] explicit operator bool() const noexcept { return panels_ != nullptr; }

 private:
  struct HEADLIGHT_API Free {
    void operator()(std::byte* panels) const noexcept;
    std::size_t bytes;
  };

  void allocate(const Engine& engine);

  std::unique_ptr<std::byte[], Free> panels_{nullptr, Free{0}};
  std::int64_t rows_ = 0;
  std::int64_t columns_ = 0;
  Isa isa_ = Isa::scalar;
  NumberType type_ = NumberType::float32;
};

// op(A) [M, K] · B [K, N] → C [M, N]; options.transpose_b is ignored (it was settled when B was packed).
//
// A and C are float32 or bfloat16 each, with the bits that float32 would give, stored in half the memory. An A of
// bfloat16 is widened, which is exact, before it is rounded or quantized, and a B of bfloat16 multiplies it as it is; B
// is bfloat16, int8 or int4 then. A C of bfloat16 is what the whole epilogue makes, rounded once to the nearest such
// number (ties to even, subnormal numbers included); with β it is widened and read. The residual is float32, and not in
// C's memory unless C is float32.
HEADLIGHT_API void gemm(Engine& engine, const TypedView<2>& a, const PackedMatrix& b, const MutableTypedView<2>& c,
                        const GemmOptions& options = {});

// The gradients of C = op(A) · op(B) are products again: dA = dC · op(B)ᵀ and dB = op(A)ᵀ · dC, with beta = 1 to add to
// what is there. That of the bias is a sum over rows: bias_gradient[j] += Σ_i c_gradient[i, j], c_gradient [M, N] of
// float32, bfloat16 or float16, bias_gradient [N]. Rows are added in ascending order within at most 64 runs fixed by M
// alone, then the runs.
HEADLIGHT_API void bias_backward(Engine& engine, const TypedView<2>& c_gradient, std::span<float> bias_gradient);

// How large products are.
struct GemmShape {
  // [M, K] · [K, N] → [M, N], `batch` times.
  std::int64_t batch = 1;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  // Whether B is a PackedMatrix, and of which type.
  bool packed = false;
  NumberType type = NumberType::float32;
};

// Scratch bytes that products of that shape take from the engine, of whatever type A and C may be; and taking them now,
// so that the first call allocates nothing. Where there is no room for them all, reserve() takes the least that the
// call goes on with, as the call does. Throw std::invalid_argument for a shape that 64 bits do not count or a type that
// only a PackedMatrix has; reserve() OutOfMemory.
[[nodiscard]] HEADLIGHT_API std::size_t workspace_bytes(const Engine& engine, const GemmShape& shape);
HEADLIGHT_API void reserve(Engine& engine, const GemmShape& shape);

}  // namespace headlight
