// Compiled once per instruction set: attention over operands of any type that floats can be stored in.
#include "kernels/attention/float_kernels.h"
#include "kernels/attention/kernels.h"
#include "kernels/attention/short-inl.h"
#include "kernels/attention/sweep-inl.h"
#include "kernels/attention/typed_rows-inl.h"
#include "kernels/numbers-inl.h"

namespace headlight::HEADLIGHT_TARGET {
namespace {

// Values go into sums of their own, from memory or not: the other way in which attend_sweep() has them would double the
// code of this file. Where kNarrowSweepRows is 0 nobody calls it, and there is no code for it.
template <bool kSweeps>
void attend_typed_sweep([[maybe_unused]] const kernels::AttentionSweep& sweep) noexcept {
  if constexpr (kSweeps) {
    const BlockRange range = range_of_sweep(sweep);
    with_rows(sweep.block.keys.key.type, [&](auto numbers) { sweep_scores<decltype(numbers)>(sweep, range); });
    RowFactors factors[kernels::kMaxSweepHeads];
    weigh_heads(sweep, range, factors);
    with_rows(sweep.block.keys.value.type, [&](auto numbers) {
      using Numbers = decltype(numbers);
      if (!wants_exact_values(sweep.block)) return sweep_values<Numbers>(sweep, range, factors);
      for (std::int64_t head = 0; head < sweep.heads; ++head) {
        block_values_exactly<Numbers>(block_of(sweep, head), factors[head]);
      }
    });
  }
}

void pack_typed_keys(const kernels::Operand& key, std::int64_t keys, std::int64_t head_dim, float* panels) noexcept {
  with_rows(key.type, [&](auto numbers) { pack_keys<decltype(numbers)>(key, keys, head_dim, panels); });
}

void pack_typed_values(const kernels::Operand& value, std::int64_t keys, std::int64_t value_dim, float* panels,
                       std::int64_t panel_stride) noexcept {
  with_rows(value.type,
            [&](auto numbers) { pack_values<decltype(numbers)>(value, keys, value_dim, panels, panel_stride); });
}

HEADLIGHT_INLINE void store_first_i8(IntVec v, std::int8_t* to, int count) {
  if (count == kLanes) return store_i8(v, to);
  std::int8_t lanes[kLanes];
  store_i8(v, lanes);
#pragma GCC unroll 1
  for (int i = 0; i < count; ++i) to[i] = lanes[i];
}

// The largest magnitude of a row, and 0, or NaN where one of its numbers is not finite.
template <class Numbers>
void quantize_row(const typename Numbers::Storage* from, std::int64_t columns, std::int8_t* to, float* scale) {
  Vec largest = zero(), finite = zero();
  sweep_row(columns, [&](auto some, int, std::int64_t d) {
    const Vec numbers = some.template get<Numbers>(from + d);
    largest = max(abs(numbers), largest);
    finite = fma(numbers, zero(), finite);
  });
  constexpr float kLargestInteger = 127;
  const float magnitude = max_of_lanes(largest) / kLargestInteger;
  const float positive = magnitude < kLeastScale ? kLeastScale : magnitude;
  *scale = positive + sum_of_lanes(finite);
  if (*scale != *scale) {
    for (std::int64_t d = 0; d < columns; ++d) to[d] = 0;
    return;
  }
  const Vec inverse = broadcast(1.0f / positive);
  walk_columns<1>(columns, [&](auto some, std::int64_t d) {
    const Vec rounded = add(mul(some.template get<Numbers>(from + d), inverse), broadcast(kRoundingOffset));
    store_first_i8(sub_int(as_int(rounded), as_int(broadcast(kRoundingOffset))), to + d, some.count);
  });
}

void quantize_rows(const kernels::Operand& from, std::int64_t rows, std::int64_t columns, std::int8_t* to,
                   std::int64_t stride, float* scales, std::int64_t scale_stride) noexcept {
  with_numbers(from.type, [&](auto numbers) {
    using Numbers = decltype(numbers);
    const auto* row = from.numbers<typename Numbers::Storage>();
    for (std::int64_t r = 0; r < rows; ++r, row += from.stride, to += stride, scales += scale_stride) {
      quantize_row<Numbers>(row, columns, to, scales);
    }
  });
}

}  // namespace

extern const kernels::TypedAttentionKernels typed_attention_kernels;
const kernels::TypedAttentionKernels typed_attention_kernels = {
    .attention = {.lanes = kLanes,
                  .query_rows = kBlockRows,
                  .call_rows = kBlockRows,
                  .call_blocks = 1,
                  .key_block = 0,
                  .key_panel = kKeyPanel,
                  .value_panel = kValuePanel,
                  .wide_rows = kWideRows,
                  .wide_columns = kWideVectors * kLanes,
                  .asks_one_by_one = false,
                  .sweep_rows = kNarrowSweepRows,
                  .narrow_sweep_rows = kNarrowSweepRows,
                  .sweeps_parts = false,
                  .short_rows = kShortRows,
                  .short_keys = kShortKeys,
                  .numbers_of_word = 1,
                  .words_at_once = 1,
                  .keys_at_once = 1,
                  .attend_block = attend_float_block,
                  .attend_sweep = attend_typed_sweep<(kNarrowSweepRows > 0)>,
                  .attend_short = attend_short_floats,
                  .probability_tile = float_probabilities,
                  .score_tile = float_scores,
                  .modify_row = modify_row,
                  .merge = merge,
                  .finish = finish_typed,
                  .pack_keys = pack_typed_keys,
                  .pack_values = pack_typed_values,
                  .copy_rows = copy_typed_rows,
                  .drop_weights = drop_weights_of_sequence,
                  .all_finite = all_typed_finite,
                  .narrow_rows = narrow_rows},
    .quantize_rows = quantize_rows,
};

}  // namespace headlight::HEADLIGHT_TARGET
