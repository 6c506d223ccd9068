// From the sums of a tile to C: α, β, bias, activation, residual, while the tile is in the first-level cache.
#pragma once

#include <cstdint>

#include "kernels/gemm_kernels.h"
#include "simd/math-inl.h"
#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {

template <Activation kActivation>
HEADLIGHT_INLINE Vec gemm_activate(Vec v) {
  if constexpr (kActivation == Activation::relu) return relu(v);
  if constexpr (kActivation == Activation::gelu) return gelu(v);
  if constexpr (kActivation == Activation::gelu_tanh) return gelu_tanh(v);
  return v;
}

struct GemmFinish {
  const float* sums;  // [rows, columns]
  std::int64_t sums_stride;
  std::int64_t rows;
  std::int64_t columns;
  float* c;
  std::int64_t c_stride;
  kernels::GemmEpilogue epilogue;  // bias and residual of this tile
};

template <Activation kActivation>
HEADLIGHT_INLINE Vec gemm_finish_vector(Vec sum, Vec alpha, Vec bias, bool reads_c, Vec beta, Vec c, Vec residual,
                                        bool has_bias, bool has_residual) {
  Vec value = reads_c ? fma(alpha, sum, mul(beta, c)) : mul(alpha, sum);
  if (has_bias) value = add(value, bias);
  value = gemm_activate<kActivation>(value);
  return has_residual ? add(value, residual) : value;
}

template <Activation kActivation>
void gemm_finish(const GemmFinish& tile) noexcept {
  const kernels::GemmEpilogue& epilogue = tile.epilogue;
  const Vec alpha = broadcast(epilogue.alpha);
  const Vec beta = broadcast(epilogue.beta);
  const bool reads_c = epilogue.beta != 0.0f;
  const bool has_bias = epilogue.bias != nullptr;
  const bool has_residual = epilogue.residual != nullptr;
  const std::int64_t whole = tile.columns - tile.columns % kLanes;
  const int rest = static_cast<int>(tile.columns - whole);
  for (std::int64_t row = 0; row < tile.rows; ++row) {
    const float* sums = tile.sums + row * tile.sums_stride;
    float* c = tile.c + row * tile.c_stride;
    const float* residual = has_residual ? epilogue.residual + row * epilogue.residual_row_stride : nullptr;
    for (std::int64_t column = 0; column < whole; column += kLanes) {
      store(
          gemm_finish_vector<kActivation>(load(sums + column), alpha, has_bias ? load(epilogue.bias + column) : zero(),
                                          reads_c, beta, reads_c ? load(c + column) : zero(),
                                          has_residual ? load(residual + column) : zero(), has_bias, has_residual),
          c + column);
    }
    if (rest == 0) continue;
    store_partial(gemm_finish_vector<kActivation>(
                      load(sums + whole), alpha, has_bias ? load_partial(epilogue.bias + whole, rest) : zero(), reads_c,
                      beta, reads_c ? load_partial(c + whole, rest) : zero(),
                      has_residual ? load_partial(residual + whole, rest) : zero(), has_bias, has_residual),
                  c + whole, rest);
  }
}

inline void gemm_finish(const GemmFinish& tile) noexcept {
  switch (tile.epilogue.activation) {
    case Activation::none:
      return gemm_finish<Activation::none>(tile);
    case Activation::relu:
      return gemm_finish<Activation::relu>(tile);
    case Activation::gelu:
      return gemm_finish<Activation::gelu>(tile);
    case Activation::gelu_tanh:
      return gemm_finish<Activation::gelu_tanh>(tile);
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
