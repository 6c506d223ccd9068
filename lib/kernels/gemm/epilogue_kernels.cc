// Compiled once per instruction set: what products of every type of number end with; and once for a feature that
// rounds to bfloat16 by an instruction.
#include "kernels/gemm/epilogue.h"
#include "kernels/rows/sweep-inl.h"
#include "simd/math-inl.h"
#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {
namespace {

template <Activation kActivation>
HEADLIGHT_INLINE Vec gemm_activate(Vec v) {
  if constexpr (kActivation == Activation::relu) {
    return relu(v);
  } else if constexpr (kActivation == Activation::gelu) {
    return gelu(v);
  } else if constexpr (kActivation == Activation::gelu_tanh) {
    return gelu_tanh(v);
  } else if constexpr (kActivation == Activation::silu) {
    return silu(v);
  } else {
    static_assert(kActivation == Activation::none);
    return v;
  }
}

// finish(some, row, column) for each vector of a tile.
template <class Finish>
HEADLIGHT_INLINE void for_each_vector(const kernels::GemmFinish& tile, const Finish& finish) {
  const std::int64_t whole = tile.columns - tile.columns % kLanes;
  const int rest = static_cast<int>(tile.columns - whole);
  for (std::int64_t row = 0; row < tile.rows; ++row) {
    for (std::int64_t column = 0; column < whole; column += kLanes) finish(WholeVector{}, row, column);
    if (rest > 0) finish(PartOfVector{rest}, row, whole);
  }
}

// The functions below are apart from one another, so that each saves the registers that it takes and no more. Each has
// a copy of the tile, which no store to C can change: its fields are read once, and not for every vector.
template <Activation kActivation, class Numbers>
[[gnu::noinline]] void gemm_finish(const kernels::GemmFinish& given) noexcept {
  const kernels::GemmFinish tile = given;
  const kernels::GemmEpilogue& epilogue = tile.epilogue;
  const Vec alpha = broadcast(epilogue.alpha);
  const Vec beta = broadcast(epilogue.beta);
  const bool reads_c = epilogue.beta != 0.0f;
  const bool has_residual = epilogue.residual != nullptr;
  for_each_vector(tile, [&](auto some, std::int64_t row, std::int64_t column) {
    auto* c = static_cast<typename Numbers::Storage*>(tile.c) + row * tile.c_stride + column;
    const Vec sum = load(tile.sums + row * tile.sums_stride + column);
    Vec value = reads_c ? fma(alpha, sum, mul(beta, some.template get<Numbers>(c))) : mul(alpha, sum);
    if (epilogue.bias != nullptr) value = add(value, some.get(epilogue.bias + column));
    value = gemm_activate<kActivation>(value);
    if (has_residual) value = add(value, some.get(epilogue.residual + row * epilogue.residual_row_stride + column));
    some.template put<Numbers>(value, c);
  });
}

// The same of a product alone, or one that is added to C: of a small one, what it lacks takes as long to ask for as all
// the rest.
template <bool kReadsC, class Numbers>
[[gnu::noinline]] void gemm_finish_plain(const kernels::GemmFinish& given) noexcept {
  const kernels::GemmFinish tile = given;
  const Vec alpha = broadcast(tile.epilogue.alpha);
  const Vec beta = broadcast(tile.epilogue.beta);
  for_each_vector(tile, [&](auto some, std::int64_t row, std::int64_t column) {
    auto* c = static_cast<typename Numbers::Storage*>(tile.c) + row * tile.c_stride + column;
    const Vec sum = load(tile.sums + row * tile.sums_stride + column);
    Vec value;
    if constexpr (kReadsC) {
      value = fma(alpha, sum, mul(beta, some.template get<Numbers>(c)));
    } else {
      value = mul(alpha, sum);
    }
    some.template put<Numbers>(value, c);
  });
}

template <class Numbers>
void gemm_finish_as(const kernels::GemmFinish& tile) noexcept {
  switch (tile.epilogue.activation) {
    case Activation::none:
      if (tile.epilogue.bias == nullptr && tile.epilogue.residual == nullptr) {
        return tile.epilogue.beta == 0.0f ? gemm_finish_plain<false, Numbers>(tile)
                                          : gemm_finish_plain<true, Numbers>(tile);
      }
      return gemm_finish<Activation::none, Numbers>(tile);
    case Activation::relu:
      return gemm_finish<Activation::relu, Numbers>(tile);
    case Activation::gelu:
      return gemm_finish<Activation::gelu, Numbers>(tile);
    case Activation::gelu_tanh:
      return gemm_finish<Activation::gelu_tanh, Numbers>(tile);
    case Activation::silu:
      return gemm_finish<Activation::silu, Numbers>(tile);
  }
}

}  // namespace

void gemm_finish(const kernels::GemmFinish& tile) noexcept {
  if constexpr (kFeature.stores_normal_bfloat16) {
    // Floats gain nothing by the feature.
    return tile.c_type == NumberType::bfloat16 ? gemm_finish_as<StoredBFloat16>(tile)
                                               : HEADLIGHT_SET::gemm_finish(tile);
  } else {
    with_floats_or_bfloat16(tile.c_type, [&](auto numbers) { gemm_finish_as<decltype(numbers)>(tile); });
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
