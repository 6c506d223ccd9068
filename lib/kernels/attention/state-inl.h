// The running state of a row: weighing two of them, merging, ending.
#pragma once

#include "kernels/attention/kernels.h"
#include "kernels/attention/softmax-inl.h"
#include "kernels/attention/values-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// How two states are weighed when they become one.
struct MergeWeights {
  Vec maximum;
  Vec keep;   // of the running state
  Vec share;  // of the block's
};
HEADLIGHT_INLINE MergeWeights merge_weights(Vec running, Vec block) {
  const Vec maximum = max(running, block);
  // −inf − (−inf) would be NaN: where neither has seen anything, both weigh 0.
  const Vec finite = select(equal(maximum, broadcast(-kInfinity)), zero(), maximum);
  if (__builtin_expect(any_of(less(broadcast(kCareful), finite)), 0)) {
    const Vec least = least_beside(neg(finite));
    running = max(least, running);
    block = max(least, block);
  }
  return {maximum, exp2_nonpositive(sub(running, finite)), exp2_nonpositive(sub(block, finite))};
}

inline void merge(const kernels::AttentionState& to, const kernels::AttentionState& from,
                  std::int64_t value_dim) noexcept {
  const MergeWeights weights = merge_weights(broadcast(*to.maximum), broadcast(*from.maximum));
  store_partial(weights.maximum, to.maximum, 1);
  store(fma(load(from.sums), weights.share, mul(load(to.sums), weights.keep)), to.sums);
  for (std::int64_t d = 0; d < value_dim; d += kLanes) {
    store(fma(load(from.out + d), weights.share, mul(load(to.out + d), weights.keep)), to.out + d);
  }
}

template <class Numbers>
float finish(const kernels::AttentionState& state, std::int64_t value_dim, typename Numbers::Storage* out) noexcept {
  const float sum = sum_of_lanes(load(state.sums));
  const RowEnd end = row_end(sum);
  for (std::int64_t d = 0; d < value_dim; d += kLanes) {
    store_numbers<Numbers>(ended(load(state.out + d), end), out + d, static_cast<int>(smaller(kLanes, value_dim - d)));
  }
  return sum;
}

}  // namespace headlight::HEADLIGHT_TARGET
