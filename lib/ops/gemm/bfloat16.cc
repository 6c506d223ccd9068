// Products of bfloat16 numbers whose B is packed for one call.
#include "ops/gemm/internal.h"
#include "runtime/parallel.h"

namespace headlight::ops {

void gemm_bfloat16(Engine& engine, const TypedView<2>& a, const TypedView<2>& b, const MutableTypedView<2>& c,
                   const GemmOptions& options) {
  GemmBatch batch;
  batch.product = gemm_block(a, {}, c, options.transpose_a, Transpose::no, options.alpha, options.beta);
  kernels::GemmBlock& product = batch.product;
  product.epilogue.activation = options.activation;
  if (!options.bias.empty()) product.epilogue.bias = options.bias.data();
  if (options.residual) {
    product.epilogue.residual = options.residual.data;
    product.epilogue.residual_row_stride = options.residual.stride(0);
  }
  if (product.rows == 0 || product.columns == 0) return;
  const kernels::GemmKernels& kernels = gemm_kernels(engine, NumberType::bfloat16);
  const kernels::Operand panels = gemm_panels(kernels, NumberType::bfloat16, product.depth, product.columns, nullptr);
  const std::int64_t words = panels.packed_rows(product.depth) * panels.stride;
  const runtime::Scratch memory(engine, static_cast<std::size_t>(words) * sizeof(float), "gemm");
  product.b = pack_matrix(engine, gemm_operand(b, options.transpose_b), NumberType::bfloat16, product.depth,
                          product.columns, reinterpret_cast<float*>(memory.data()));
  run_gemm_batch(engine, batch);
}

}  // namespace headlight::ops
