// Compiled once per feature with tile registers: attention over pairs of bfloat16.
#include "kernels/attention/amx_block-inl.h"
#include "kernels/attention/amx_short-inl.h"
#include "kernels/attention/amx_sweep-inl.h"
#include "kernels/attention/kernels.h"
#include "kernels/attention/probabilities-inl.h"
#include "kernels/attention/typed_rows-inl.h"

namespace headlight::HEADLIGHT_TARGET {
namespace {

constexpr kernels::AttentionKernels tile_kernels() {
  kernels::AttentionKernels kernels = kTileShapes;
  kernels.attend_block = attend_blocks;
  kernels.attend_sweep = sweep_tiles;
  kernels.attend_short = attend_short_tiles;
  kernels.probability_tile = probability_tile<TileScores>;
  kernels.score_tile = score_tile<TileScores>;
  kernels.modify_row = modify_row;
  kernels.merge = merge;
  kernels.finish = finish_typed;
  kernels.pack_keys = pack_key_tiles;
  kernels.pack_values = pack_value_tiles;
  kernels.copy_rows = copy_tile_rows;
  kernels.drop_weights = drop_weights_of_sequence;
  kernels.all_finite = all_typed_finite;
  kernels.narrow_rows = narrow_rows;
  return kernels;
}

}  // namespace

extern const kernels::AttentionKernels pair_attention_kernels;
constinit const kernels::AttentionKernels pair_attention_kernels = tile_kernels();

}  // namespace headlight::HEADLIGHT_TARGET
