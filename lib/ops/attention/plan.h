// How one call of attention() is cut into units of work, and how much scratch memory they take. Speed alone depends on
// it: no choice made here changes a bit of the result.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headlight/engine.h"
#include "kernels/attention/kernels.h"
#include "ops/attention/check.h"
#include "ops/attention/masks.h"
#include "ops/attention/scale.h"
#include "ops/attention/score_modifiers.h"
#include "ops/call_plan.h"
#include "runtime/inner_api.h"
#include "simd/integers.h"

namespace headlight::ops {

// Rows of queries count (query, head of the group) pairs, the heads of a group that share keys and values innermost.
enum class AttentionRoute : std::uint8_t {
  // Few rows: keys and values are read where they lie. Unit: (sample, some key/value heads).
  in_place,
  // Few rows and many keys: unit (sample, some key/value heads, key block), then an ordered merge.
  split_keys,
  // Unit (sample, key/value head, block of rows), which packs one block of keys after the other for itself.
  packed_by_block,
  // The same units, few rows in each: all keys are packed first.
  packed_first,
};

// What the plan depends on beside the sizes.
struct AttentionTraits {
  bool with_probabilities = false;
  // Of them, R.
  std::int64_t probability_rows = 0;
  // Rows of queries may be copied: to multiply or to widen them, or since no one stride leads from row to row.
  bool copies_queries = false;
  bool with_mask = false;
  bool with_bias = false;
  bool with_slopes = false;
  bool with_sinks = false;
  bool with_scores = false;
  bool with_dropout = false;
  // Every row of the values begins at a multiple of the vector size; not so where they have to be widened.
  bool values_aligned = false;
  // Each head of keys and values lies by itself; else side by side at each position ([L, H, D] memory).
  bool heads_apart = false;
  // Those of EngineState.
  bool follows_memory = false;
  bool reads_two_streams = false;
  // Keys come block by block: neither can all be packed first, nor workers be given blocks of their own.
  bool by_block = false;
  // Several sequences follow one another, from any key on.
  bool with_sequences = false;
};

// What has become of the rows of a tile.
enum class TileState : std::uint8_t { empty, sink, kept, finished };

struct AttentionPlan : CallPlan {
  AttentionRoute route;
  std::int64_t rows;        // for each (sample, key/value head): Lq · group
  std::int64_t row_block;   // rows that one pass over the keys serves
  std::int64_t unit_heads;  // key/value heads of a unit, the last one of a sample may have fewer
  std::int64_t key_block;   // keys of a partial result; fixed by the head dims and the instruction set, for the bits
  std::int64_t key_blocks;  // ⌈Lk / key_block⌉
  std::int64_t call_keys;   // keys that are packed, and attended to, together: one block or several
  std::int64_t scores_stride;
  std::int64_t padded_value_dim;
  // Floats of a query row and of a packed key: head_dim, or half of it where they are pairs, and what fills it up.
  std::int64_t key_words;

  bool from_far_memory;  // the keys and values of the call are more than caches hold
  bool follows_memory;   // a sweep takes the values of heads side by side in the order in which they lie
  bool pack_values;
  std::int64_t packed_keys_size;  // floats for the keys that a copy holds: all, or a block
  std::int64_t packed_values_size;
  std::int64_t packed_value_dim;  // floats of one key's packed values, in panels
  std::int64_t value_panel_width;

  // What the call does not use takes no room.
  WorkerPart<float> scores;
  WorkerPart<float> panel;  // for probabilities and scores asked for
  WorkerPart<float> query;
  WorkerPart<float> state_maximum;
  WorkerPart<float> state_sums;
  WorkerPart<float> state_out;
  WorkerPart<float> final_sum;
  WorkerPart<float> value_sums;
  WorkerPart<float> tile_room;
  WorkerPart<KeyInterval> intervals;
  WorkerPart<std::int32_t> seen_begin;
  WorkerPart<std::int32_t> seen_end;
  ModifierParts row_modifiers;
  WorkerPart<kernels::DropoutPlace> dropout_places;
  WorkerPart<TileState> tiles;
  WorkerPart<float> packed_keys;
  WorkerPart<float> packed_values;

  runtime::ScratchPart<float> all_packed_keys;
  runtime::ScratchPart<float> all_packed_values;
  runtime::ScratchPart<float> partial_maximum;  // [B · Hkv · key_blocks · rows]
  runtime::ScratchPart<float> partial_sums;
  runtime::ScratchPart<float> partial_out;
  // For probabilities, of all rows, or of those asked for alone where that takes less than three quarters: then each
  // has to be looked for.
  bool saves_all_rows;
  std::int64_t saved_rows;                        // for each (sample, head): Lq or R
  runtime::ScratchPart<std::int64_t> asked_rows;  // [R] ascending, where not all are saved
  runtime::ScratchPart<float> row_maximum;        // [B · Hq · saved_rows]
  runtime::ScratchPart<float> row_sum;

  // The smallest calls keep their scratch memory on the stack: borrowing a block would show.
  static constexpr std::size_t kStackBytes = 4 << 10;
  // Of them from the engine.
  [[nodiscard]] std::size_t borrowed() const noexcept { return workers == 1 && bytes() <= kStackBytes ? 0 : bytes(); }
};

// n in as few parts of at most `most` as can be, and those as even as can be: the largest.
[[nodiscard]] constexpr std::int64_t even_share(std::int64_t n, std::int64_t most) noexcept {
  const std::int64_t parts = divide_up(n, most);
  return parts == 0 ? most : divide_up(n, parts);
}

// What the options and the scale say; the rest is the caller's to tell.
[[nodiscard]] AttentionTraits traits_of(const AttentionOptions& options, const AttentionSizes& sizes,
                                        const AttentionScale& scale) noexcept;

// Whether the keys and values of some heads are more than the second-level cache holds beside all else, and the
// prefetchers of the hardware bring in time.
[[nodiscard]] constexpr bool reads_memory(const AttentionSizes& sizes, std::int64_t keys, std::int64_t heads) noexcept {
  return keys * heads * (sizes.head_dim + sizes.value_dim) > 32 << 10;
}

// Keys of a block for these head dims.
[[nodiscard]] std::int64_t attention_key_block(const AttentionSizes& sizes) noexcept;

// Of `rows` those that a call of the kernels takes, as even as can be; whole tiles where it takes several.
[[nodiscard]] inline std::int64_t rows_of_call(const kernels::AttentionKernels& kernels, std::int64_t rows) noexcept {
  const std::int64_t share = even_share(rows, kernels.call_rows);
  return kernels.call_rows == kernels.query_rows ? share : round_up(share, std::int64_t{kernels.query_rows});
}

[[nodiscard]] AttentionPlan plan_attention(const Engine& engine, const kernels::AttentionKernels& kernels,
                                           const AttentionSizes& sizes, const AttentionTraits& traits) noexcept;

// What one call borrows, whichever way it takes. `values_aligned`: as in AttentionTraits.
[[nodiscard]] HEADLIGHT_INNER_API std::size_t attention_call_bytes(const Engine& engine, const AttentionSizes& sizes,
                                                                   const AttentionOptions& options,
                                                                   bool values_aligned) noexcept;

// Enough for any call of these sizes.
[[nodiscard]] std::size_t attention_plan_bytes(const Engine& engine, const kernels::AttentionKernels& kernels,
                                               const AttentionSizes& sizes) noexcept;

// Enough for any call with as many queries and keys as these sizes, or fewer of both: a call of fewer may take another
// route, and more memory.
[[nodiscard]] std::size_t attention_bytes_up_to(const Engine& engine, const AttentionSizes& sizes) noexcept;
// The same of such calls by these kernels that have those traits, some of which want no less.
[[nodiscard]] std::size_t most_plan_bytes(const Engine& engine, const kernels::AttentionKernels& kernels,
                                          const AttentionSizes& sizes, const AttentionTraits& traits) noexcept;

}  // namespace headlight::ops
