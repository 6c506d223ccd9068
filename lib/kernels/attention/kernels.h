// What the attention kernels of one instruction set compute, and the shapes they are made for.
//
// The running state of a query row is (maximum, sums, out): the largest score so far in units of log 2, the sum of
// exp2(score − maximum) kept apart by lane, and the unnormalised Σ exp2(score − maximum)·value. A block of keys gives a
// state of its own, which is then merged into the running one:
//   m' = max(m, m_block), a = exp2(m − m'), b = exp2(m_block − m'), sums' = sums·a + sums_block·b, out' = out·a +
//   out_block·b.
// Blocks lie on an absolute grid and are merged in ascending order, so a row's bits depend on its keys alone: neither
// on the rows beside it nor on who computed which block.
#pragma once

#include <cstdint>

#include "kernels/operand.h"

namespace headlight::kernels {

// Masks that are not intervals, and biases, one pointer for each row. A key stride is 1, or 0 for one entry that holds
// for all keys.
struct AttentionRowMasks {
  // Bytes; visible where (entry ≠ 0) == attend. Null: no boolean mask.
  const std::uint8_t* const* mask;
  std::int64_t mask_key_stride;
  bool attend;
  // Added to the scaled scores. Null: no additive mask.
  const float* const* bias;
  std::int64_t bias_key_stride;
};

// ALiBi of a row: slope · |position − key| is taken from its scores, both counted in the masks' rows.
struct RowSlope {
  float slope;
  std::int64_t position;
};

// What may lie between a product q·k and its score; as bits of one number. With s = scale · q·k, in this order:
//   s ← cap · tanh(s / cap),  s ← s + bias,  s ← s − slope · distance,  s ← −∞ where the mask hides the key.
enum class ScoreModifier : unsigned { softcap = 1, bias = 2, slope = 4, mask = 8 };
// Inlined always: see simd/integers.h.
[[gnu::always_inline]] constexpr bool asks_for(unsigned modifiers, ScoreModifier modifier) noexcept {
  return (modifiers & static_cast<unsigned>(modifier)) != 0;
}

// cap · tanh(scale · q) of a product q; for |q| < bound, that is |scale · q| < ½, it is q (c₀ + c₁ q² + …). The bound
// is 0 where a coefficient would not be a normal number (for a scale of 2⁻¹⁶ or 2¹⁷, say).
struct ScoreCap {
  static constexpr int kCoefficients = 5;
  float cap;
  float scale;
  float bound;
  float coefficients[kCoefficients];
};

struct ScoreModifiers {
  unsigned asked;  // 0: products are scores
  // exp(s) = exp2(exponent_scale · score); > 0 and normal. A score is the product, or what the last modifier that is
  // asked for makes of it: cap, bias and slope leave it in units of e, the mask as it is.
  float exponent_scale;
  float product_scale;  // s = product_scale · q·k
  ScoreCap cap;         // its scale is product_scale / cap
  const RowSlope* slopes;
  AttentionRowMasks masks;
  // Whether bias or slope may make scores so low that they overflow where they change their unit.
  bool may_be_low;
  std::int64_t first_key;  // of the block, in the masks' rows, and its position
};

// Dropout of the weights (see AttentionOptions), and what of a counter a row fixes.
struct AttentionDropout {
  std::uint64_t seed;
  std::uint32_t stream;
  std::uint32_t threshold;
  float scale;
};
struct DropoutPlace {
  std::uint32_t row;   // within its sequence
  std::uint32_t head;  // sample · query heads + head
};
struct BlockDropout {
  const AttentionDropout* numbers;  // null: none
  const DropoutPlace* places;       // one for each row
  std::int64_t first_key;           // of the block, within its sequence
};

// Rows of queries of one head, [count][head_dim].
struct QueryRows {
  const float* data;
  std::int64_t stride;
  std::int64_t count;
  std::int64_t head_dim;
};

// Keys of one head and their values: rows, or panels as pack_keys() and pack_values() leave them.
struct KeyValueBlock {
  Operand key;    // K [count, head_dim]; panels are those of Kᵀ
  Operand value;  // V [count, value_dim]
  std::int64_t count;
  std::int64_t head_dim;
  std::int64_t value_dim;
  // Whether a hidden value may be NaN or infinite, so that a weight of 0 does not silence it. Tiles of registers leave
  // out what an interval hides: there it is said for boolean masks alone.
  bool values_not_finite;
};

// Row r sees the keys begin[r] ≤ j < end[r], counted from the block's first; 0 ≤ begin ≤ end ≤ its keys.
struct SeenKeys {
  const std::int32_t* begin;
  const std::int32_t* end;
  bool same_for_all;  // every row sees what row 0 sees
};

// The running state of a block's rows.
struct RowStates {
  bool first;      // nothing is in it yet
  bool sink_only;  // a sink's maximum is, and nothing else: its sum is 1, its values are zeros
  float* maximum;  // [rows]
  float* sums;     // [rows][lanes]
  float* out;      // [rows][padded value_dim]
  std::int64_t out_stride;
};

// Where rows end that no later block concerns, as finish() would end them; final_out is null for all others.
struct RowEnds {
  float* out;  // [rows][value_dim]
  std::int64_t out_stride;
  float* sum;  // [rows], over all lanes
};

// At most `query_rows` rows against one block of at most `key_block` keys: packed for attend_block, where
// values may be packed too; rows for attend_sweep.
struct AttentionBlock {
  QueryRows query;
  KeyValueBlock keys;
  SeenKeys seen;
  ScoreModifiers modifiers;
  BlockDropout dropout;
  // Room for the scores, [query_rows][key_block].
  float* scores;
  std::int64_t scores_stride;
  RowStates state;
  RowEnds ends;
};

// The same for a few rows of several heads, whose keys and values are read where they lie. The heads see the same keys
// and differ in where their data is.
inline constexpr int kMaxSweepHeads = 32;
struct AttentionSweep {
  AttentionBlock block;  // of the first head
  std::int64_t heads;    // at most kMaxSweepHeads
  // From one head to the next: in numbers, but for queries, in words, and for the states and the masks' pointers, in
  // rows.
  std::int64_t query_head_stride;
  std::int64_t key_head_stride;
  std::int64_t value_head_stride;
  std::int64_t key_scale_head_stride;  // of the scales of int8, else 0
  std::int64_t value_scale_head_stride;
  std::int64_t out_head_stride;  // of the ends
  std::int64_t state_head_stride;
  std::int64_t mask_head_stride;  // and of ends.sum and dropout.places; scores are [heads][rows] of this block
  float* value_sums;              // [heads][rows] as `state.out`: room for the block's own sums
  float* tile_room;               // of floats_of_tile_sweep(): see amx_shapes.h
  bool from_memory;      // more than the first cache levels hold: keys and values are asked for before they are read
  bool from_far_memory;  // more than any cache holds
  bool follows_memory;   // heads lie side by side: a few keys' values of each, then the next few keys'
};

// One head's rows, at most `short_rows`, that see some of at most `short_keys` keys, from products to output; neither
// modifiers nor dropout.
struct AttentionShort {
  QueryRows query;
  KeyValueBlock keys;  // rows
  SeenKeys seen;
  bool all_seen;  // by every row
  float exponent_scale;
  float* out;  // [rows][value_dim]
  std::int64_t out_stride;
  float* columns;  // [head_dim][short_rows]: room for the queries, one to a lane; and then [lanes][short_keys] weights
  float* maximum;  // [short_rows], in units of log 2: given back, as is
  float* sum;      // [short_rows]
};

// A whole state merged into another.
struct AttentionState {
  float* maximum;
  float* sums;
  float* out;
};

// Probabilities of at most `query_rows` rows over one panel of at most `key_panel` keys.
struct ProbabilityTile {
  QueryRows query;
  const float* panel;  // of keys, packed as pack_keys() does
  std::int64_t keys;
  SeenKeys seen;
  ScoreModifiers modifiers;
  // Each row's final state: p = exp2(score − maximum) / sum, and zeros for a sum of 0.
  const float* maximum;
  const float* sum;
  // Where each row's `keys` probabilities go; either may be null.
  float* const* per_head;
  // Their mean over heads, which come one call after another: the first one writes, the others add, and the last one
  // multiplies by `average_factor` (1 / heads; 1 in the calls before).
  float* const* averaged;
  bool first_head;
  float average_factor;
};

// The scores of such a tile: what the modifiers leave, times `factor`, and −∞ where a row does not see a key.
struct ScoreTile {
  QueryRows query;
  const float* panel;
  std::int64_t keys;
  SeenKeys seen;
  ScoreModifiers modifiers;
  float factor;
  float* const* rows;  // where each row's `keys` scores go
};

// n filled up to a multiple of `of`, a power of two. (A division would show in the smallest calls.)
[[nodiscard]] constexpr std::int64_t filled_up(std::int64_t n, int of) noexcept {
  return (n + of - 1) & -static_cast<std::int64_t>(of);
}

struct AttentionKernels {
  int lanes;
  int query_rows;  // rows of a tile
  // attend_block() takes so many rows, a tile or several, and so many blocks of keys. Of these the size is key_block,
  // or where that is 0 follows from the head dims. Where blocks are several, a call wants tile_block_floats() in the
  // place of scores.
  int call_rows;
  int call_blocks;
  int key_block;
  int key_panel;    // keys of a panel
  int value_panel;  // columns of a value panel
  // A sweep over one head keeps the sums of so many rows and columns of values in registers from key to key.
  int wide_rows;
  int wide_columns;
  // Where such a sweep reads far memory, it asks for it line by line, and gains nothing by a second head.
  bool asks_one_by_one;
  // Up to so many rows are swept where keys and values lie, and more have them packed; and how many the table of
  // operands that are not floats sweeps, which never sweeps values that end within a vector.
  int sweep_rows;
  int narrow_sweep_rows;
  bool sweeps_parts;
  int short_rows;  // most rows of attend_short
  int short_keys;  // and most keys
  // Neighbours of a query or key row that a product takes at once, and keys whose values it does. Where it is 2, they
  // lie in one float, a word: rows of queries and panels are of words, head_dim / 2 of a row, and of the values of
  // ⌈keys / 2⌉ pairs of keys, and head_dim counts words wherever a tile is given one. For the operand they are floats.
  int numbers_of_word;
  // Rows of queries and of packed keys are filled with zeros to whole multiples of so many words, and packed keys and
  // values to so many keys: what a tile register takes at once. Else 1.
  int words_at_once;
  int keys_at_once;

  void (*attend_block)(const AttentionBlock& block) noexcept;
  void (*attend_sweep)(const AttentionSweep& sweep) noexcept;
  void (*attend_short)(const AttentionShort& head) noexcept;

  void (*probability_tile)(const ProbabilityTile& tile) noexcept;
  void (*score_tile)(const ScoreTile& tile) noexcept;
  // `keys` products of a row that begins with key modifiers.first_key and is row 0 of `modifiers` become its scores,
  // times `factor`; where room is given, the derivatives of capped scores by raw ones are worked out instead.
  void (*modify_row)(const ScoreModifiers& modifiers, std::int64_t keys, float factor, float* scores,
                     float* cap_derivatives) noexcept;

  // One row's state `from` into `to`, both of value_dim rounded up to whole vectors.
  void (*merge)(const AttentionState& to, const AttentionState& from, std::int64_t value_dim) noexcept;

  // out[d] = state.out[d] / Σ sums, zeros where the sum is 0, as numbers of that type; returns the sum.
  float (*finish)(const AttentionState& state, std::int64_t value_dim, NumberType type, void* out) noexcept;

  // Rows [keys][head_dim] → panels [⌈keys/key_panel⌉][head_dim][key_panel], the last one only as wide as keys are left.
  // One block of rows of Kᵀ.
  void (*pack_keys)(const Operand& key, std::int64_t keys, std::int64_t head_dim, float* panels) noexcept;

  // Rows [keys][value_dim] → [keys][width], once for each `value_panel` columns, panel_stride apart; width is
  // value_dim rounded up to whole vectors, at most value_panel, and what lies past value_dim is zero. As a block of
  // rows of V where panel_stride is keys · width.
  void (*pack_values)(const Operand& value, std::int64_t keys, std::int64_t value_dim, float* panels,
                      std::int64_t panel_stride) noexcept;

  // to[r][d] = from[r][d] · factor, [rows][columns]
  void (*copy_rows)(const Operand& from, float factor, std::int64_t rows, std::int64_t columns, float* to) noexcept;

  // weights[j] ← weights[j] · (0 or 1 / (1 − probability)), j < keys the keys of a sequence.
  void (*drop_weights)(const AttentionDropout& dropout, const DropoutPlace& place, std::int64_t keys,
                       float* weights) noexcept;

  // Whether every one of rows · columns numbers is finite.
  bool (*all_finite)(const Operand& from, std::int64_t rows, std::int64_t columns) noexcept;

  // Rows of floats become rows of another type, rounded. Null where out is float32: nobody asks.
  void (*narrow_rows)(const float* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns,
                      NumberType type, void* to, std::int64_t stride) noexcept;
};

// Those of operands of any type that floats can be stored in, which say themselves what they are. Sums, and what is
// between the operands, are float32's: a number of 16 bits is widened as it is read, which is exact, one of 8
// multiplied by its row's scale, and out is rounded as it is written.
struct TypedAttentionKernels {
  AttentionKernels attention;
  // scales[r] = max_d |from[r][d]| / 127, at least 2⁻¹²⁶, NaN where a number is infinite or NaN; to[r][d] = from[r][d]
  // · (1 / scales[r]) to nearest even, 0 where that is NaN.
  void (*quantize_rows)(const Operand& from, std::int64_t rows, std::int64_t columns, std::int8_t* to,
                        std::int64_t stride, float* scales, std::int64_t scale_stride) noexcept;
};

// A third table multiplies bfloat16 by bfloat16, for queries, keys and values that are, and an even head_dim: pairs of
// neighbours, added as vdpbf16ps does, where a product was widened before. The weights are rounded once they are
// summed. pack_keys(): [⌈keys / key_panel⌉][head_dim / 2][key_panel] words; pack_values(): [⌈keys / 2⌉][width] words a
// panel, zeros for a key that is not there; copy_rows(): [rows][columns / 2] words, for a factor of ±1 or 0.
// attend_short() takes rows of queries and keys and panels of values as they make them.
//
// A fourth does so in tile registers, whose order of sums is another: amx-inl.h. A hidden value that is NaN or infinite
// is in the way of its tiles, whatever hides it: values_not_finite says so for packed keys. attend_short() reads keys
// and values where they lie.

}  // namespace headlight::kernels
