// Matrix products for operations that split their work themselves: unchecked, on the calling thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "headlight/gemm.h"
#include "kernels/kernels.h"
#include "runtime/built_types.h"
#include "runtime/inner_api.h"
#include "simd/integers.h"

namespace headlight::ops {

// C [M, N] = α · op(A) [M, K] · op(B) [K, N] + β · C as the kernels take it. No pointer is looked at.
[[nodiscard]] HEADLIGHT_INNER_API kernels::GemmBlock gemm_block(const TypedView<2>& a, View<const float, 2> b,
                                                                const MutableTypedView<2>& c,
                                                                Transpose transpose_a = Transpose::no,
                                                                Transpose transpose_b = Transpose::no,
                                                                float alpha = 1.0f, float beta = 0.0f) noexcept;

// Floats of scratch, 64-byte aligned, for every product of that shape, however its B lies.
[[nodiscard]] HEADLIGHT_INNER_API std::int64_t gemm_scratch_floats(Isa isa, std::int64_t m, std::int64_t n,
                                                                   std::int64_t k,
                                                                   Transpose transpose_a = Transpose::no) noexcept;

// Throws std::invalid_argument("operation: argument is …") for a type that no product multiplies in.
void check_product_type(std::string_view operation, std::string_view argument, NumberType type);

// Whether a B of that type is multiplied by an A that is rounded or quantized, and so may be bfloat16 as it comes.
[[nodiscard]] constexpr bool takes_narrow_a(NumberType type) noexcept {
  return type == NumberType::bfloat16 || type == NumberType::int8 || type == NumberType::int4;
}

// Those for a B of that type, which this build has.
[[nodiscard]] inline const kernels::GemmKernels& gemm_kernels(Isa isa, InstructionFeatures features,
                                                              NumberType type) noexcept {
  using runtime::is_built;
  if constexpr (is_built(NumberType::bfloat16)) {
    if (type == NumberType::bfloat16) return kernels::gemm_bfloat16_kernels(isa, features);
  }
  if constexpr (is_built(NumberType::float16)) {
    if (type == NumberType::float16) return kernels::gemm_float16_kernels(isa);
  }
  if constexpr (is_built(NumberType::int8)) {
    if (type == NumberType::int8) return kernels::gemm_int8_kernels(isa, features);
  }
  if constexpr (is_built(NumberType::int4)) {
    if (type == NumberType::int4) return kernels::gemm_int4_kernels(isa, features);
  }
  return kernels::gemm_kernels(isa);
}
[[nodiscard]] inline const kernels::GemmKernels& gemm_kernels(const Engine& engine, NumberType type) noexcept {
  return gemm_kernels(engine.isa(), engine.features(), type);
}

// Computes it here and now, with the bits of gemm(). B is float32.
inline void run_gemm_block(Isa isa, kernels::GemmBlock block, float* scratch) noexcept {
  block.scratch = scratch;
  kernels::gemm_kernels(isa).block(block);
}

// op(B) as the kernels take it.
[[nodiscard]] inline kernels::Operand gemm_operand(const TypedView<2>& b, Transpose transpose_b) noexcept {
  return {.type = b.type,
          .layout = transpose_b == Transpose::yes ? kernels::OperandLayout::columns : kernels::OperandLayout::rows,
          // That of a single row, or of rows without elements, may be any number.
          .stride = b.extent(0) > 1 && b.extent(1) > 0 ? b.stride(0) : 0,
          .data = b.data};
}

// A packed B [depth, columns]. Without rows its columns may be too many to round up.
[[nodiscard]] inline kernels::Operand gemm_panels(const kernels::GemmKernels& kernels, NumberType type,
                                                  std::int64_t depth, std::int64_t columns,
                                                  const void* packed) noexcept {
  return {.type = type,
          .layout = kernels::OperandLayout::panels,
          .stride = depth > 0 ? round_up(columns, kernels.lanes) : 0,
          .data = packed};
}

// B [depth, columns], which is no panels yet, in panels of the engine's instruction set and that type: `packed` has
// room for packed_rows(depth) rows of whole vectors. Returns the operand that they are.
kernels::Operand pack_matrix(Engine& engine, const kernels::Operand& b, NumberType type, std::int64_t depth,
                             std::int64_t columns, float* packed) noexcept;

// The product of gemm() in bfloat16 with a B that changes from call to call, as activations do, and weights in
// training: it is packed into scratch memory, and then the bits are those with a PackedMatrix of bfloat16. Each matrix
// is float32 or bfloat16; a transposed B float32. Unchecked. Throws OutOfMemory, before anything is written.
void gemm_bfloat16(Engine& engine, const TypedView<2>& a, const TypedView<2>& b, const MutableTypedView<2>& c,
                   const GemmOptions& options);

// The way back from panels of float32, bfloat16 or float16: columns first … first + count − 1 of B [K, N], one after
// another, rows[j · K + k] = B[k, first + j].
void unpack_columns(const PackedMatrix& b, std::int64_t first, std::int64_t count, float* rows) noexcept;

// Many products of one shape: item i begins i strides behind the first.
struct GemmBatch {
  kernels::GemmBlock product;  // item 0; its scratch is not used
  std::int64_t count = 1;
  std::int64_t a_stride = 0;
  std::int64_t b_stride = 0;
  std::int64_t c_stride = 0;
  std::int64_t residual_stride = 0;
};

// Bytes of scratch that they take from the engine, and the least that they go on with. Sizes, layouts and β count,
// whether C is its own residual and, of products of one column, strides and the bias; no pointer is followed.
struct GemmBytes {
  std::size_t wanted = 0;
  std::size_t least = 0;
};
[[nodiscard]] HEADLIGHT_INNER_API GemmBytes gemm_batch_bytes(const Engine& engine, const GemmBatch& batch) noexcept;

// Computes them on the engine's workers. Throws OutOfMemory when scratch cannot be had, before anything is written.
void run_gemm_batch(Engine& engine, const GemmBatch& batch);

}  // namespace headlight::ops
