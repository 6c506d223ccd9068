// The tile that multiplies words of several numbers, bfloat16 or int8: of vectors, but for features with instructions
// that multiply rows by columns.
#pragma once

#include "kernels/gemm/amx-inl.h"
#include "kernels/gemm/quads-inl.h"
#include "kernels/gemm/tile-inl.h"

namespace headlight::HEADLIGHT_TARGET {

template <class B, class Finish>
#if defined(HEADLIGHT_AMX_BF16) || defined(HEADLIGHT_AMX_INT8)
using GemmTile = AmxTile<B, Finish>;
#elif defined(HEADLIGHT_MULTIPLIES_QUADS)
using GemmTile = QuadTile<B, Finish>;
#else
using GemmTile = RegisterTile<TileRows, B, Finish>;
#endif

}  // namespace headlight::HEADLIGHT_TARGET
