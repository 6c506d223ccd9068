// The tile that multiplies words of several numbers, bfloat16 or int8: of vectors, but for features with instructions
// that multiply rows by columns.
#pragma once

#include <type_traits>

#include "kernels/gemm/amx-inl.h"
#include "kernels/gemm/quads-inl.h"
#include "kernels/gemm/tile-inl.h"

namespace headlight::HEADLIGHT_TARGET {

template <class B, class Finish>
using GemmTile = std::conditional_t<
    kFeature.amx_products != 0, AmxTile<B, Finish>,
    std::conditional_t<kFeature.multiplies_quads, QuadTile<B, Finish>, RegisterTile<TileRows, B, Finish>>>;

}  // namespace headlight::HEADLIGHT_TARGET
